//! Back-ends and times of kernels.

use std::time::{Duration, Instant};

use relampago::{Backend, GpuCommandBatch, GpuDevice, Program};

use crate::{device, devices};

/// A matmul of `size` rows, columns and k, the softmax of its rows, and the sum of all elements.
fn matmul_softmax_sum(device: &GpuDevice, size: usize) -> Program {
    let mut batch = GpuCommandBatch::new(device.clone());
    let x = batch.placeholder(size * size);
    let y = batch.matmul(x, x, size, size, size);
    let shares = batch.softmax_rows(y, size, size);
    let total = batch.sum(shares);
    batch.compile(&[total]).unwrap()
}

#[test]
fn kernels_name_their_back_end() {
    for backend in [Backend::Simd, Backend::Gpu] {
        let mut batch = GpuCommandBatch::new(device(backend));
        let x = batch.placeholder(4);
        let y = batch.softmax(x);
        let explanation = batch.explain();
        assert_eq!(explanation.kernels[0].backend, backend);
        assert_eq!(explanation.kernels[0].time, None);
        let text = explanation.to_string();
        assert!(text.ends_with(&format!("bytes, {backend}\n")), "{text}");
        let program = batch.compile(&[y]).unwrap();
        assert_eq!(program.explain(), explanation);
    }
}

#[test]
fn times_of_kernels_add_up_to_less_than_the_run() {
    let size = 128;
    for device in devices() {
        let program = matmul_softmax_sum(&device, size);
        let x = vec![0.5; size * size];
        let start = Instant::now();
        let timed = program.time(&[(&x).into()]).unwrap();
        let elapsed = start.elapsed();
        assert_eq!(timed.kernels.len(), 3);
        let times: Vec<Duration> = timed.kernels.iter().filter_map(|k| k.time).collect();
        assert_eq!(times.len(), 3, "{timed}");
        assert!(times.iter().all(|time| !time.is_zero()), "{timed}");
        assert!(times.iter().sum::<Duration>() <= elapsed, "{timed}");
        assert_eq!(timed.to_string().matches(" ms\n").count(), 3, "{timed}");
        // But for the times it is what `explain` returns, and later results are not affected.
        let mut plain = timed;
        plain
            .kernels
            .iter_mut()
            .for_each(|kernel| kernel.time = None);
        assert_eq!(plain, program.explain());
        let values = program.read(&[(&x).into()]).unwrap();
        assert!((values[0][0] - size as f32).abs() < 1e-2, "{values:?}");
    }
}

#[test]
fn kernels_without_elements_take_no_time_on_a_gpu() {
    let mut batch = GpuCommandBatch::new(device(Backend::Gpu));
    let (x, y) = (batch.placeholder(0), batch.placeholder(4));
    let outputs = [batch.relu(x), batch.softmax(y)];
    let program = batch.compile(&outputs).unwrap();
    let timed = program.time(&[(&[]).into(), (&[1.0; 4]).into()]);
    let kernels = timed.unwrap().kernels;
    assert_eq!(kernels[0].time, Some(Duration::ZERO));
    assert!(kernels[1].time > Some(Duration::ZERO), "{kernels:?}");
}

#[test]
fn timing_checks_arguments() {
    for device in devices() {
        let program = matmul_softmax_sum(&device, 2);
        let refused = |arguments: &[_]| program.time(arguments).unwrap_err().code();
        assert_eq!(refused(&[]), "LENGTH_MISMATCH");
        assert_eq!(refused(&[(&[1.0]).into()]), "LENGTH_MISMATCH");
        let foreign = crate::device(Backend::Simd).upload(&[0.0; 4]).unwrap();
        assert_eq!(refused(&[(&foreign).into()]), "FOREIGN");
    }
}

#[test]
fn info_counts_threads() {
    let builder = GpuDevice::builder().backend(Backend::Simd);
    assert_eq!(builder.threads(1).build().unwrap().info().threads, 1);
    assert!(device(Backend::Simd).info().threads >= 1);
}
