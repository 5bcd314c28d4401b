//! `Backend::Cuda`: every operation as the op table states it, where there is an NVIDIA GPU.

#![cfg(all(feature = "cuda", not(target_arch = "wasm32")))]

mod support;

use relampago::{Backend, Error, GpuCommandBatch, GpuDevice};
use support::{Summary, all_cases};

/// The device, or nothing where the lack of a GPU was reported as it should be.
fn device() -> Option<GpuDevice> {
    match GpuDevice::builder().backend(Backend::Cuda).build() {
        Ok(device) => Some(device),
        Err(Error::NoGpu { reason }) => {
            assert!(reason.starts_with("no NVIDIA"), "{reason}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn cuda_conforms() {
    let Some(device) = device() else { return };
    let mut summary = Summary::default();
    let mut complaints = Vec::new();
    for case in all_cases(1_000_003) {
        let result = device.run(&case.op, &case.inputs()).expect("a valid case");
        match case.judge(&result, false) {
            Ok(error) => summary.note(&case, error),
            Err(complaint) => complaints.push(complaint),
        }
    }
    println!("{}", summary.line(&format!("CUDA, {}", device.info())));
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

#[test]
fn cuda_backend_is_reported_and_used() {
    let Some(device) = device() else { return };
    assert_eq!(device.backend(), Backend::Cuda);
    assert_eq!(device.info().api.as_deref(), Some("cuda"));
    let simd = GpuDevice::builder().backend(Backend::Simd).build().unwrap();
    let (m, k, n) = (100, 1000, 100);
    let a: Vec<f32> = (0..m * k).map(|i| (i as f32 * 0.7).sin()).collect();
    let [mut on_gpu, mut on_cpu] = [0; 2].map(|_| vec![0.0; m * n]);
    device.matmul(&a, &a, &mut on_gpu, m, k, n).unwrap();
    simd.matmul(&a, &a, &mut on_cpu, m, k, n).unwrap();
    // Two orders of adding up: the same numbers would be the same back-end.
    assert_ne!(on_gpu, on_cpu);
    let wrong = device.matmul(&a, &a, &mut on_gpu, m, k, n + 1);
    assert!(matches!(wrong, Err(Error::LengthMismatch { .. })));
    let empty = device.mean(&[]);
    assert!(matches!(empty, Err(Error::Empty { .. })), "{empty:?}");
}

#[test]
fn batches_run_on_simd_with_cuda_backend() {
    let Some(device) = device() else { return };
    let mut batch = GpuCommandBatch::new(device.clone());
    let x = batch.upload(&[1.0, -2.0]);
    let y = batch.relu(x);
    batch.execute_sync().unwrap();
    assert_eq!(batch.read_sync(y).unwrap(), [1.0, 0.0]);
    assert!(device.rebuild().unwrap().backend() == Backend::Cuda);
}
