//! Tests of the GPU back-end alone: loss, caches, threads, futures; `devices`, `limits`, `profile` and `sharing` have their
//! own files.

#![cfg(all(not(target_arch = "wasm32"), feature = "gpu"))]

mod devices;
mod limits;
mod profile;
mod sharing;
#[path = "../support/mod.rs"]
mod support;

use relampago::{Backend, Conv2d, GpuCommandBatch, GpuDevice, Op, wgpu};
use support::{Case, opened};

fn judge(device: &GpuDevice, case: &Case) {
    let result = device.run(&case.op, &case.inputs()).expect("a valid case");
    if let Err(complaint) = case.judge(&result, true) {
        panic!("{complaint}");
    }
}

#[test]
fn device_loss_fails_work_in_flight() {
    let x = vec![1.0; 100_000];
    for round in 0..10 {
        let (device, raw) = opened(|_| ());
        let loss = std::thread::spawn(move || {
            std::thread::sleep(std::time::Duration::from_millis(5 + round));
            raw.destroy();
        });
        let mut y = vec![0.0; x.len()];
        let error = loop {
            y.fill(0.0);
            if let Err(error) = device.softmax(&x, &mut y) {
                break error;
            }
        };
        assert_eq!(error.code(), "DEVICE_LOST", "{error}");
        assert!(y.iter().all(|&y| y == 0.0), "nothing is written");
        loss.join().unwrap();
    }
}

/// Sums that llvmpipe would end half-way must be refused there.
#[test]
fn very_long_sums_are_correct_or_refused() {
    let (device, _) = opened(|_| ());
    for k in [100_000, 300_001] {
        let ones = vec![1.0; k];
        match device.run(&Op::Matmul { m: 1, k, n: 1 }, &[&ones, &ones]) {
            Ok(sum) => assert_eq!(sum, [k as f32]),
            Err(error) => assert_eq!((error.code(), k), ("LIMIT_EXCEEDED", 300_001)),
        }
    }
    for (rows, cols, few) in [
        (100, 200, true),
        (10_000, 1, true),
        (20_000, 1, false),
        (250, 260, false),
    ] {
        let ones = vec![1.0; rows * cols];
        let options = Conv2d::valid(rows, cols, rows, cols);
        match device.run(&Op::Convolve2d { options }, &[&ones, &ones]) {
            Ok(sum) => assert_eq!(sum, [(rows * cols) as f32]),
            Err(error) => assert_eq!((error.code(), few), ("LIMIT_EXCEEDED", false)),
        }
    }
}

/// Zeros would look like a result.
#[test]
fn norms_with_overflowing_squares_are_nan_or_correct() {
    let (device, _) = opened(|_| ());
    for cols in [4, 5_000, 70_000] {
        let x: Vec<f32> = (0..cols)
            .map(|i| if i % 2 == 0 { 2e19 } else { -2e19 })
            .collect();
        let gain = vec![1.0; cols];
        let (rows, epsilon) = (1, 1e-5);
        let y = device
            .run(
                &Op::RmsNorm {
                    rows,
                    cols,
                    epsilon,
                },
                &[&x, &gain],
            )
            .unwrap();
        let right = y
            .iter()
            .zip(&x)
            .all(|(y, x)| y.is_nan() || (y - x.signum()).abs() < 1e-5);
        assert!(right, "{cols}: {:?}", &y[..4]);
    }
}

#[test]
fn lost_device_returns_error_and_can_be_rebuilt() {
    let (device, raw) = opened(|_| ());
    let resident = device.upload(&[1.0, 2.0]).unwrap();
    let mut batch = GpuCommandBatch::new(device.clone());
    let id = batch.input(&resident);
    batch.execute_sync().unwrap();

    raw.destroy();
    let mut y = [7.0];
    let error = device.relu(&[1.0], &mut y).unwrap_err();
    assert_eq!(error.code(), "DEVICE_LOST", "{error}");
    assert_eq!(y, [7.0], "nothing is written on an error");
    assert_eq!(resident.read().unwrap_err().code(), "DEVICE_LOST");
    assert_eq!(batch.read_sync(id).unwrap_err().code(), "DEVICE_LOST");
    let mut late = GpuCommandBatch::new(device.clone());
    late.upload(&[1.0]);
    assert_eq!(late.execute_sync().unwrap_err().code(), "DEVICE_LOST");

    let rebuilt = device.rebuild().expect("there is still an adapter");
    rebuilt.relu(&[-1.0], &mut y).unwrap();
    assert_eq!(y, [0.0]);
}

#[test]
fn second_call_allocates_nothing() {
    let (device, raw) = opened(|_| ());
    let (a, b) = (vec![1.0; 5_000], vec![2.0; 5_000]);
    let mut y = vec![0.0; 5_000];
    let mut all = || {
        device.vec_add(&a, &b, &mut y).unwrap();
        device.softmax(&a, &mut y).unwrap();
        device.matmul(&a, &b, &mut y[..2_500], 50, 100, 50).unwrap();
        device.dot(&a, &b).unwrap();
    };
    let count = || {
        let hal = raw.get_internal_counters().hal;
        [
            &hal.buffers,
            &hal.bind_groups,
            &hal.compute_pipelines,
            &hal.shader_modules,
        ]
        .map(wgpu::wgt::InternalCounter::read)
    };
    all();
    let after_first = count();
    for _ in 0..20 {
        all();
    }
    assert_eq!(
        count(),
        after_first,
        "buffers, bind groups, pipelines, shaders"
    );
}

#[test]
fn cached_plans_serve_identical_calls_only() {
    let (device, _) = opened(|_| ());
    let x: Vec<f32> = (0..50).map(|value| value as f32 - 9.5).collect();
    // More lengths and parameters than are kept, each of them twice.
    for _ in 0..2 {
        for len in 1..x.len() {
            let mut y = vec![0.0; len];
            for factor in [len as f32, 0.0, -0.0] {
                device.scale(&x[..len], &mut y, factor).unwrap();
                let bits = |values: &[f32]| values.iter().map(|y| y.to_bits()).collect::<Vec<_>>();
                let expected: Vec<f32> = x[..len].iter().map(|x| x * factor).collect();
                assert_eq!(bits(&y), bits(&expected), "{len} values times {factor}");
            }
            let sum: f32 = x[..len].iter().sum();
            assert_eq!(device.sum(&x[..len]).unwrap(), sum, "{len} values");
        }
    }
}

#[test]
fn futures_complete_on_other_executors() {
    // Nothing here is `runtime::block_on`: the device is watched by a thread of its own.
    let (device, _) = opened(|_| ());
    let mut y = [0.0; 3];
    let future = device.relu_async(&[1.0, -1.0, 2.0], &mut y);
    pollster::block_on(future).unwrap();
    assert_eq!(y, [1.0, 0.0, 2.0]);
}

#[test]
fn dropped_future_leaves_the_device_usable() {
    use std::task::{Context, Waker};
    let (device, _) = opened(|_| ());
    for _ in 0..50 {
        let mut y = [0.0; 1_000];
        let x = [1.0; 1_000];
        let mut future = Box::pin(device.exp_async(&x, &mut y));
        let _ = future
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()));
    }
    assert_eq!(device.sum(&[1.0; 1_000]).unwrap(), 1_000.0);
}

#[test]
fn threads_share_a_device() {
    let (device, _) = opened(|_| ());
    std::thread::scope(|scope| {
        for n in 1..9 {
            let device = &device;
            scope.spawn(move || {
                let x = vec![n as f32; 1_000 * n];
                for _ in 0..20 {
                    assert_eq!(device.sum(&x).unwrap(), (n * n * 1_000) as f32);
                }
            });
        }
    });
}

#[test]
fn operands_in_flight_are_not_overwritten() {
    use std::task::{Context, Waker};
    // Its own device: kernels may read the host's memory there, where the adapter lets them.
    let device = GpuDevice::builder().backend(Backend::Gpu).build().unwrap();
    for round in 1..30 {
        let (mut y, mut z) = ([0.0; 4_000], [0.0; 4_000]);
        let (x, w) = ([round as f32; 4_000], [-1.0; 4_000]);
        let mut abandoned = Box::pin(device.neg_async(&w, &mut y));
        let _ = abandoned
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()));
        device.scale(&x, &mut z, 2.0).unwrap();
        assert_eq!(z, [2.0 * round as f32; 4_000]);
    }
}

#[test]
fn warmup_checks_lengths_and_changes_no_result() {
    let (device, _) = opened(|_| ());
    let product = Op::Matmul { m: 3, k: 5, n: 7 };
    let softmax = Op::SoftmaxRows { rows: 4, cols: 9 };
    device
        .warmup(&[
            (Op::Relu, &[1_000]),
            (product.clone(), &[15, 35]),
            (softmax.clone(), &[36]),
            (Op::Sum, &[100_000]),
            (Op::Relu, &[0]),
        ])
        .unwrap();
    let error = device.warmup(&[(product.clone(), &[15, 34])]).unwrap_err();
    assert_eq!(error.code(), "LENGTH_MISMATCH");
    for (op, lens) in [(product, vec![15, 35]), (softmax, vec![36])] {
        let noise = |len: usize| {
            (0..len)
                .map(|i| (i * 37 % 101) as f32 / 50.0 - 1.0)
                .collect()
        };
        let inputs = lens.into_iter().map(noise).collect();
        judge(&device, &Case { op, inputs });
    }
}

#[test]
fn pipeline_cache_persists_and_damaged_files_are_ignored() {
    let folder = std::env::temp_dir().join(format!("relampago-pipelines-{}", std::process::id()));
    let build = || {
        let builder = GpuDevice::builder().backend(Backend::Gpu);
        builder.pipeline_cache(&folder).build().unwrap()
    };
    let files = || -> Vec<std::path::PathBuf> {
        let entries = std::fs::read_dir(&folder).into_iter().flatten();
        entries.map(|entry| entry.unwrap().path()).collect()
    };
    let device = build();
    let has_caches = device.as_wgpu().is_some_and(|device| {
        let feature = wgpu::Features::PIPELINE_CACHE;
        device.features().contains(feature)
    });
    device.warmup(&[(Op::Gelu, &[1_000])]).unwrap();
    assert_eq!(files().len(), usize::from(has_caches));
    for damage in [false, true] {
        for file in files().iter().filter(|_| damage) {
            let mut content = std::fs::read(file).unwrap();
            content.truncate(content.len() / 2);
            std::fs::write(file, content).unwrap();
        }
        let again = build();
        assert_eq!(again.run(&Op::Abs, &[&[-2.0, 3.0]]).unwrap(), [2.0, 3.0]);
    }
    drop(device);
    assert_eq!(
        files().len(),
        usize::from(has_caches),
        "no partial file is left"
    );
    if has_caches {
        std::fs::remove_dir_all(folder).unwrap();
    }
}
