//! Tests of the GPU back-end alone: limits, folding of large dispatches, caches, loss.

#![cfg(all(not(target_arch = "wasm32"), feature = "gpu"))]

mod support;

use relampago::{Backend, BufferId, Conv2d, Error, GpuCommandBatch, GpuDevice, Op, runtime, wgpu};
use support::{Case, adopted, adopted_as, all_cases};

fn judge(device: &GpuDevice, case: &Case) {
    let result = device.run(&case.op, &case.inputs()).expect("a valid case");
    if let Err(complaint) = case.judge(&result, true) {
        panic!("{complaint}");
    }
}

#[test]
fn dispatches_wider_than_the_limit_are_folded() {
    // 3 × 3 workgroups at most, where 65,535 × 65,535 would need gigabytes to fill one row.
    let (device, _) = adopted(|limits| limits.max_compute_workgroups_per_dimension = 3);
    for case in all_cases(1_000) {
        match device.run(&case.op, &case.inputs()) {
            Ok(result) => drop(
                case.judge(&result, true)
                    .unwrap_or_else(|complaint| panic!("{complaint}")),
            ),
            Err(error) => assert_eq!(error.code(), "LIMIT_EXCEEDED", "{:?}: {error}", case.op),
        }
    }
    let x = vec![-1.0; 9 * 1024];
    assert_eq!(device.run(&Op::Abs, &[&x]).unwrap(), vec![1.0; x.len()]);
    let x = vec![1.0; 1_000_003];
    assert_eq!(
        device.sum(&x).unwrap(),
        1_000_003.0,
        "reductions use fewer workgroups instead"
    );
}

#[test]
fn workgroup_sides_respect_the_limit() {
    let (device, _) = adopted(|limits| limits.max_compute_workgroup_size_x = 256);
    let (rows, cols) = (2, 8_192);
    let x: Vec<f32> = (0..rows * cols).map(|i| (i % 7) as f32).collect();
    let op = Op::SoftmaxRows { rows, cols };
    let inputs = vec![x];
    judge(&device, &Case { op, inputs });
}

#[test]
fn dispatch_beyond_65535_workgroups_is_correct() {
    let (device, _) = adopted(|_| ());
    // One workgroup a row of the softmax: 70,000 of them.
    let (rows, cols) = (70_000, 3);
    let x: Vec<f32> = (0..rows * cols).map(|i| (i % 7) as f32).collect();
    let case = Case {
        op: Op::SoftmaxRows { rows, cols },
        inputs: vec![x],
    };
    judge(&device, &case);
}

/// The sum of ten arrays, all of them ones.
fn ten(batch: &mut GpuCommandBatch, first: BufferId) -> BufferId {
    (1..10).fold(first, |sum, _| {
        let ones = batch.upload(&[1.0; 1_024]);
        batch.vec_add(sum, ones)
    })
}

type Record = fn(&mut GpuCommandBatch, BufferId) -> BufferId;

#[test]
fn fused_kernels_respect_the_binding_limit() {
    let (device, _) = adopted(|limits| limits.max_storage_buffers_per_shader_stage = 8);
    let records: [(Record, f32); 4] = [
        (ten, 10.0),
        (
            |batch, x| {
                let sum = ten(batch, x);
                batch.softmax(sum)
            },
            1.0 / 1_024.0,
        ),
        (
            |batch, x| {
                let sum = ten(batch, x);
                batch.dot(sum, x)
            },
            10_240.0,
        ),
        (
            |batch, x| {
                let product = batch.matmul(x, x, 32, 32, 32);
                ten(batch, product)
            },
            41.0,
        ),
    ];
    for (record, expected) in records {
        let mut batch = GpuCommandBatch::new(device.clone());
        let ones = batch.upload(&[1.0; 1_024]);
        let last = record(&mut batch, ones);
        let values = runtime::block_on(async {
            batch.execute_async().await?;
            batch.read_async(last).await
        });
        assert!(
            values
                .unwrap()
                .iter()
                .all(|&y| (y / expected - 1.0).abs() < 1e-6)
        );
    }
}

#[test]
fn elementwise_inputs_beyond_a_binding_are_split() {
    let (device, _) = adopted(|limits| limits.max_storage_buffer_binding_size = 1 << 16);
    assert_eq!(device.info().max_buffer_len, Some(1 << 14));
    let x: Vec<f32> = (0..100_001).map(|i| i as f32 - 50_000.0).collect();
    judge(
        &device,
        &Case {
            op: Op::Gelu,
            inputs: vec![x.clone()],
        },
    );
    judge(
        &device,
        &Case {
            op: Op::Sub,
            inputs: vec![x.clone(), x],
        },
    );
}

#[test]
fn other_inputs_beyond_a_binding_are_refused() {
    let (device, _) = adopted(|limits| limits.max_storage_buffer_binding_size = 1 << 16);
    let x = vec![1.0; (1 << 14) + 1];
    for op in [Op::Sum, Op::Softmax, Op::Argmax] {
        let error = device.run(&op, &[&x]).unwrap_err();
        let expected = Error::LimitExceeded {
            what: "the length of a GPU buffer",
            value: (1 << 14) + 1,
            limit: 1 << 14,
        };
        assert_eq!(error, expected);
    }
    assert_eq!(device.upload(&x).unwrap_err().code(), "LIMIT_EXCEEDED");
    assert_eq!(
        device.sum(&x[1..]).unwrap(),
        (1 << 14) as f32,
        "the device still works"
    );
}

#[test]
fn oversized_products_run_on_simd() {
    let (device, _) = adopted_as(Backend::Auto, |limits| {
        limits.max_storage_buffer_binding_size = 1 << 16;
    });
    // The operands fit, their product does not.
    let (m, k, n) = (512, 32, 512);
    let op = Op::Matmul { m, k, n };
    assert!(device.policy().prefers_gpu(&op, &[m * k, k * n]));
    let product = device.run(&op, &[&vec![1.0; m * k], &vec![1.0; k * n]]);
    assert_eq!(product.unwrap(), vec![k as f32; m * n]);
}

#[test]
fn batches_with_oversized_buffers_run_on_simd() {
    let limit = 1 << 16;
    let (device, _) = adopted_as(Backend::Auto, |limits| {
        limits.max_storage_buffer_binding_size = 4 << 16;
    });
    let side = 256;
    let fits = Op::Matmul {
        m: side,
        k: side,
        n: side,
    };
    assert!(side * side <= limit && device.policy().prefers_gpu(&fits, &[side * side; 2]));
    let mut batch = GpuCommandBatch::new(device);
    let a = batch.upload(&vec![1.0; side * side]);
    let product = batch.matmul(a, a, side, side, side);
    let long = batch.upload(&vec![-1.0; limit + 1]);
    let long = batch.relu(long);
    batch.execute_sync().unwrap();
    assert_eq!(
        batch.read_sync(product).unwrap(),
        vec![side as f32; side * side]
    );
    assert_eq!(batch.read_sync(long).unwrap(), vec![0.0; limit + 1]);
}

#[test]
fn device_with_low_limits_is_not_used() {
    let (device, _) = adopted(|limits| limits.max_storage_buffers_per_shader_stage = 4);
    let info = device.info();
    assert_eq!(info.backend, Backend::Simd);
    let lack = "4 storage buffers a shader where 8 are needed";
    assert!(info.reason.contains(lack), "{}", info.reason);
    assert_eq!(device.relu(&[-1.0, 2.0], &mut [0.0; 2]), Ok(()));
}

#[test]
fn adopted_device_is_not_used_for_simd() {
    let (device, _) = adopted_as(Backend::Simd, |_| ());
    assert_eq!(device.backend(), Backend::Simd);
    assert!(device.as_wgpu().is_none());
}

#[test]
fn device_below_webgpu_limits_is_not_used() {
    let changes: [fn(&mut wgpu::Limits); 7] = [
        |limits| limits.max_compute_workgroup_size_x = 64,
        |limits| limits.max_compute_workgroup_size_y = 1,
        |limits| limits.max_bindings_per_bind_group = 4,
        |limits| limits.max_uniform_buffer_binding_size = 128,
        |limits| limits.max_dynamic_uniform_buffers_per_pipeline_layout = 0,
        |limits| limits.max_storage_buffer_binding_size = 0,
        |limits| limits.max_bind_groups = 0,
    ];
    for change in changes {
        let (device, _) = adopted(change);
        assert_eq!(device.backend(), Backend::Simd);
        assert_eq!(device.run(&Op::Relu, &[&[-1.0, 2.0]]).unwrap(), [0.0, 2.0]);
    }
}

#[test]
fn oversized_operations_are_not_tuned() {
    let device = GpuDevice::builder().backend(Backend::Gpu).build().unwrap();
    let (m, k, n) = (1 << 24, 1, 1 << 24);
    let (rows, cols) = (1 << 44, 1 << 6);
    for (op, lens) in [
        (Op::Matmul { m, k, n }, &[m, n][..]),
        (Op::SoftmaxRows { rows, cols }, &[rows * cols]),
    ] {
        let error = device.tune(&[(op, lens)]).unwrap_err();
        assert_eq!(error.code(), "LIMIT_EXCEEDED");
    }
}

#[test]
fn device_loss_fails_work_in_flight() {
    let x = vec![1.0; 100_000];
    for round in 0..10 {
        let (device, raw) = adopted(|_| ());
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
    let (device, _) = adopted(|_| ());
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
    let (device, _) = adopted(|_| ());
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
    let (device, raw) = adopted(|_| ());
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
    let (device, raw) = adopted(|_| ());
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
    let (device, _) = adopted(|_| ());
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
    let (device, _) = adopted(|_| ());
    let mut y = [0.0; 3];
    let future = device.relu_async(&[1.0, -1.0, 2.0], &mut y);
    pollster::block_on(future).unwrap();
    assert_eq!(y, [1.0, 0.0, 2.0]);
}

#[test]
fn dropped_future_leaves_the_device_usable() {
    use std::task::{Context, Waker};
    let (device, _) = adopted(|_| ());
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
    let (device, _) = adopted(|_| ());
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
    let (device, _) = adopted(|_| ());
    assert_eq!(device.profile().unwrap_err().code(), "GPU");
    let simd = GpuDevice::builder().backend(Backend::Simd).build().unwrap();
    assert_eq!(simd.profile().unwrap_err().code(), "NO_GPU");
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
    let (device, _) = adopted(|_| ());
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

#[test]
fn threads_can_end_while_others_close_devices() {
    for _ in 0..4 {
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let device = GpuDevice::builder().backend(Backend::Gpu).build().unwrap();
                    assert_eq!(device.sum(&[1.0; 4_096]).unwrap(), 4_096.0);
                });
            }
        });
    }
}
