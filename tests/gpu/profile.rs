//! Times of kernels.

use relampago::{Backend, GpuCommandBatch, GpuDevice};

use crate::support::opened;

#[test]
fn profile_names_and_times_every_kernel() {
    let device = GpuDevice::builder().backend(Backend::Gpu).build().unwrap();
    let profiler = device.profile().expect("llvmpipe keeps timestamps");
    let x = vec![1.0; 100_000];
    let mut y = vec![0.0; x.len()];
    device.relu(&x, &mut y).unwrap();
    device.softmax(&x, &mut y).unwrap();
    let profile = profiler.finish().unwrap();
    let names: Vec<_> = profile.kernels.iter().map(|time| time.kernel).collect();
    assert_eq!(names, ["elementwise", "softmax_partial", "softmax_apply"]);
    for pair in profile.kernels.windows(2) {
        assert!(
            pair[0].start + pair[0].duration <= pair[1].start,
            "{pair:?}"
        );
        assert!(!pair[0].duration.is_zero(), "{pair:?}");
    }
    assert!(
        profile.to_string().contains("| softmax_apply | 1 |"),
        "{profile}"
    );
    assert_eq!(profile.chrome_trace().matches("\"ph\":\"X\"").count(), 3);
    // Afterwards nothing is timed.
    device.relu(&x, &mut y).unwrap();
    assert_eq!(device.profile().unwrap().finish().unwrap().kernels, []);
}

#[test]
fn profile_excludes_untimed_work() {
    let device = GpuDevice::builder().backend(Backend::Gpu).build().unwrap();
    let Ok(profiler) = device.profile() else {
        return; // The adapter keeps no timestamps.
    };
    let start = std::time::Instant::now();
    drop(profiler);
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !done.load(std::sync::atomic::Ordering::Relaxed) {
                    device.relu(&[1.0; 200], &mut [0.0; 200]).unwrap();
                }
            });
        }
        for _ in 0..300 {
            let profiler = device.profile().unwrap();
            std::thread::sleep(std::time::Duration::from_micros(300));
            for time in profiler.finish().unwrap().kernels {
                assert!(time.start < start.elapsed(), "{time:?}");
                assert!(!time.duration.is_zero(), "{time:?}");
            }
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}

#[test]
fn last_profiler_gets_any_number_of_kernels() {
    let device = GpuDevice::builder().backend(Backend::Gpu).build().unwrap();
    let Ok(first) = device.profile() else {
        return; // The adapter keeps no timestamps.
    };
    let second = device.profile().unwrap();
    // As long as the other one lives, and after it.
    device.sum(&[1.0; 8]).unwrap();
    assert_eq!(first.finish().unwrap().kernels, []);
    // More than a query set has room for.
    let mut batch = GpuCommandBatch::new(device.clone());
    let mut x = batch.upload(&[1.0, 2.0]);
    for _ in 0..2_500 {
        x = batch.softmax(x);
    }
    batch.execute_sync().unwrap();
    assert_eq!(second.finish().unwrap().kernels.len(), 2_501);
}

#[test]
fn profiling_without_timestamps_returns_error() {
    let (device, _) = opened(|_| ());
    assert_eq!(device.profile().unwrap_err().code(), "GPU");
    let mut batch = GpuCommandBatch::new(device);
    let x = batch.placeholder(4);
    let y = batch.softmax(x);
    let program = batch.compile(&[y]).unwrap();
    let refused = program.time(&[(&[1.0; 4]).into()]).unwrap_err();
    assert!(
        refused.to_string().ends_with("keeps no timestamps"),
        "{refused}"
    );
    let simd = GpuDevice::builder().backend(Backend::Simd).build().unwrap();
    assert_eq!(simd.profile().unwrap_err().code(), "NO_GPU");
}
