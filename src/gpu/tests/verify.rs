//! Tests of the checks of a GPU's results, on kernels with injected faults.

use std::sync::Arc;

use super::{any, open};
use crate::batch::GpuCommandBatch;
use crate::device::buffer::DeviceBuffer;
use crate::device::executor::Executor;
use crate::device::{Backend, GpuDevice, OnFault, Verification};
use crate::error::Error;
use crate::gpu::Gpu;
use crate::ops::{HalfPrecision, Op};

/// Opens a device with the kernels of hardware adapters, after a change to the back-end.
fn device(change: impl FnOnce(&mut Gpu)) -> GpuDevice {
    let mut gpu = open(&any()).expect("the tests need an adapter, llvmpipe for one");
    let only = Arc::get_mut(&mut gpu).expect("nothing else holds it yet");
    only.adapter.software = false;
    change(only);
    let builder = GpuDevice::builder().backend(Backend::Gpu);
    builder.finish(Some(Executor::Gpu(gpu)), "a test".to_owned())
}

/// Opens a device whose kernels' texts are changed.
fn faulty(fault: fn(&str, String) -> String) -> GpuDevice {
    device(|gpu| gpu.pipelines.fault = Some(fault))
}

/// Checks a device, and returns the report and the names of what was turned off.
fn verified(device: &GpuDevice) -> (Verification, Vec<&'static str>) {
    let report = device.verify(OnFault::TurnOff).unwrap();
    for case in &report.cases {
        println!("{case}");
    }
    assert!(device.info().turned_off.ends_with(&report.turned_off));
    let names = report.turned_off.iter().map(|off| off.what).collect();
    (report, names)
}

/// The names of the operations that failed.
fn failed(report: &Verification) -> Vec<&'static str> {
    let failed = report.cases.iter().filter(|case| !case.passed());
    failed.map(|case| case.op).collect()
}

#[test]
fn correct_kernels_pass() {
    for software in [false, true] {
        let device = device(|gpu| gpu.adapter.software = software);
        let (report, turned_off) = verified(&device);
        assert_eq!(failed(&report), [""; 0]);
        assert!(turned_off.is_empty() && report.cases.len() > 20);
        assert!(device.verify(OnFault::Fail).is_ok());
    }
}

#[test]
fn devices_without_a_gpu_have_nothing_to_check() {
    let builder = GpuDevice::builder().backend(Backend::Simd);
    let report = builder.build().unwrap().verify(OnFault::Fail).unwrap();
    assert_eq!(report, Verification::default());
}

/// The right values of an earlier check may still be in the memory that such a kernel leaves as it is.
#[test]
fn kernels_that_write_nothing_are_found() {
    let nothing = |name: &str, text: String| {
        let (start, body) = text.split_once("fn main(").unwrap();
        let (parameters, body) = body.split_once('{').unwrap();
        let returns = if name.starts_with("matmul_32") {
            "if true { return; }"
        } else {
            ""
        };
        format!("{start}fn main({parameters}{{ {returns} {body}")
    };
    let device = faulty(nothing);
    for _ in 0..2 {
        let report = device.verify(OnFault::Fail);
        let Err(Error::WrongResults { what }) = report else {
            panic!("{report:?}");
        };
        assert!(what.starts_with("matmul by matmul_32"), "{what}");
    }
    assert!(device.info().turned_off.is_empty());
    let (_, turned_off) = verified(&device);
    assert_eq!(turned_off, ["matmul"]);
}

/// Kernels without subgroups take over.
#[test]
fn wrong_subgroup_sizes_are_found() {
    for size in [16, 32] {
        let device = device(|gpu| {
            assert_ne!(gpu.limits.subgroups, [size; 2], "what the driver reports");
            gpu.limits.subgroups = [size; 2];
        });
        let (_, turned_off) = verified(&device);
        assert_eq!(turned_off, ["subgroups"], "{size}");
        assert_eq!(failed(&verified(&device).0), [""; 0]);
    }
}

/// No adapter without cooperative matrices compiles the kernel, so that its refusal stands for a wrong result.
#[test]
fn matmuls_in_f16_fall_back_to_f32() {
    let device = device(|gpu| gpu.half_precision = HalfPrecision::Used);
    let info = device.info();
    assert_eq!(info.half_precision, HalfPrecision::Used);
    let (_, turned_off) = verified(&device);
    assert_eq!(turned_off, ["f16"]);
    let info = device.info();
    assert_eq!(info.half_precision, HalfPrecision::WrongResults);
    assert!(info.to_string().contains("f16 is off: matmul"), "{info}");
    assert_eq!(failed(&verified(&device).0), [""; 0]);
}

#[test]
fn overflow_of_f16_is_found() {
    let device = faulty(|_, text| {
        text.replace(
            "mean_square + epsilon",
            "quantizeToF16(mean_square) + epsilon",
        )
    });
    let (report, turned_off) = verified(&device);
    assert_eq!(turned_off, ["softmax"]);
    assert_eq!(failed(&report), ["layer_norm", "rms_norm"]);
}

#[test]
fn dropped_barriers_are_found() {
    let device = faulty(|_, text| text.replace("workgroupBarrier();", ""));
    let (report, _) = verified(&device);
    for op in [
        "sum",
        "dot",
        "softmax_rows",
        "layer_norm",
        "matmul",
        "transpose",
    ] {
        assert!(failed(&report).contains(&op), "{op}");
    }
}

/// A result is right or there is an error, however the GPU was used before.
#[test]
fn classes_that_are_off_run_on_simd() {
    let device = faulty(|name, text| match name {
        "transpose" => text.replace("workgroupBarrier();", ""),
        _ => text,
    });
    let (rows, cols) = (35, 70);
    let x: Vec<f32> = (0..rows * cols).map(|i| i as f32).collect();
    let wanted: Vec<f32> = (0..rows * cols)
        .map(|i| x[i % rows * cols + i / rows])
        .collect();
    let values = || x.as_slice().into();
    let record = |x: Option<&DeviceBuffer>| {
        let mut batch = GpuCommandBatch::new(device.clone());
        let x = match x {
            Some(buffer) => batch.input(buffer),
            None => batch.placeholder(rows * cols),
        };
        let y = batch.transpose(x, rows, cols);
        (batch, y)
    };
    let (batch, y) = record(None);
    let before = batch.compile(&[y]).unwrap();
    let resident = device.upload(&x).unwrap();
    assert_ne!(before.read(&[values()]).unwrap()[0], wanted, "the fault");
    assert_eq!(verified(&device).1, ["movement"]);
    // An earlier program, and a batch of values on the GPU, would need the kernel.
    let error = before.read(&[values()]).unwrap_err();
    assert_eq!(error.code(), "WRONG_RESULTS", "{error}");
    let (mut batch, _) = record(Some(&resident));
    assert_eq!(batch.execute_sync().unwrap_err().code(), "FOREIGN");
    // All others run on SIMD.
    let op = Op::Transpose { rows, cols };
    assert_eq!(device.run(&op, &[&x]).unwrap(), wanted);
    let (batch, y) = record(None);
    let after = batch.compile(&[y]).unwrap();
    assert_eq!(after.read(&[values()]).unwrap(), [wanted]);
}

/// A kernel without effect, for any layout of bindings.
const NOTHING: &str = "@compute @workgroup_size(1) fn main() {}";

#[test]
fn wrong_matmuls_in_f16_are_found() {
    let device = device(|gpu| {
        gpu.half_precision = HalfPrecision::Used;
        gpu.pipelines.fault = Some(|name, text| match name {
            "matmul_halves" | "halves" => NOTHING.to_owned(),
            _ => text,
        });
    });
    assert_eq!(verified(&device).1, ["f16"]);
    assert_eq!(device.info().half_precision, HalfPrecision::WrongResults);
}

#[cfg(feature = "llm-core")]
#[test]
fn models_fall_back_to_f32() {
    use super::noise;
    use crate::graph::steps::StepBackend;
    use crate::tensor::ggml::WeightType;

    let refused = |_: &str, text: String| text;
    let wrong = |name: &str, text: String| match name {
        "multiply_floats_f16" => NOTHING.to_owned(),
        _ => text,
    };
    for fault in [refused as fn(&str, String) -> String, wrong] {
        let device = device(|gpu| {
            gpu.half_precision = HalfPrecision::Used;
            gpu.pipelines.fault = Some(fault);
        });
        let Executor::Gpu(gpu) = device.executor() else {
            panic!("a GPU was opened");
        };
        let values = noise(128 * 64, 1);
        let blocks: Vec<u8> = values
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect();
        let matrices = [&blocks[..]];
        let weights = StepBackend::weights(gpu, WeightType::F32, &matrices, 64);
        let weights = crate::runtime::block_on(weights).unwrap();
        crate::runtime::block_on(gpu.check_f16(&[&weights])).unwrap();
        assert_eq!(device.info().half_precision, HalfPrecision::WrongResults);
    }
}
