//! Limits of devices: work beyond them is divided, runs on SIMD or is refused.

use relampago::{Backend, BufferId, Error, GpuCommandBatch, GpuDevice, Op, runtime, wgpu};

use crate::judge;
use crate::support::{Case, adapter, all_cases, opened, opened_as};

#[test]
fn dispatches_wider_than_the_limit_are_folded() {
    // 3 × 3 workgroups at most, where 65,535 × 65,535 would need gigabytes to fill one row.
    let (device, _) = opened(|limits| limits.max_compute_workgroups_per_dimension = 3);
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
    let (device, _) = opened(|limits| limits.max_compute_workgroup_size_x = 256);
    let (rows, cols) = (2, 8_192);
    let x: Vec<f32> = (0..rows * cols).map(|i| (i % 7) as f32).collect();
    let op = Op::SoftmaxRows { rows, cols };
    let inputs = vec![x];
    judge(&device, &Case { op, inputs });
}

#[test]
fn dispatch_beyond_65535_workgroups_is_correct() {
    let (device, _) = opened(|_| ());
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
    let (device, _) = opened(|limits| limits.max_storage_buffers_per_shader_stage = 8);
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
    let (device, _) = opened(|limits| limits.max_storage_buffer_binding_size = 1 << 16);
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
    let (device, _) = opened(|limits| limits.max_storage_buffer_binding_size = 1 << 16);
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
    let device = opened_as(Backend::Auto, |limits| {
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
    let device = opened_as(Backend::Auto, |limits| {
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
fn explain_names_the_backend_that_runs_a_batch() {
    let device = opened_as(Backend::Auto, |_| ());
    let backend = |record: fn(&mut GpuCommandBatch)| {
        let mut batch = GpuCommandBatch::new(device.clone());
        record(&mut batch);
        batch.explain().kernels[0].backend
    };
    let few = |batch: &mut GpuCommandBatch| {
        let x = batch.upload(&[1.0, 2.0]);
        batch.relu(x);
    };
    let resident = |batch: &mut GpuCommandBatch| {
        let buffer = batch.device().upload(&[1.0, 2.0]).unwrap();
        let x = batch.input(&buffer);
        batch.relu(x);
    };
    let of_a_program = |batch: &mut GpuCommandBatch| {
        let x = batch.placeholder(2);
        batch.relu(x);
    };
    assert_eq!(backend(few), Backend::Simd);
    assert_eq!(backend(resident), Backend::Gpu);
    assert_eq!(backend(of_a_program), Backend::Gpu);
}

#[test]
fn device_with_low_limits_is_not_used() {
    let device = opened_as(Backend::Gpu, |limits| {
        limits.max_storage_buffers_per_shader_stage = 4;
    });
    let info = device.info();
    assert_eq!(info.backend, Backend::Simd);
    let lack = "4 storage buffers a shader where 8 are needed";
    assert!(info.reason.contains(lack), "{}", info.reason);
    assert_eq!(device.relu(&[-1.0, 2.0], &mut [0.0; 2]), Ok(()));
}

#[test]
fn a_callers_device_is_adopted_unless_it_has_no_use() {
    let raw = || {
        let adapter = adapter();
        let descriptor = wgpu::DeviceDescriptor {
            required_limits: adapter.limits(),
            ..Default::default()
        };
        runtime::block_on(adapter.request_device(&descriptor)).expect("a device")
    };
    let adopted = |backend: Backend| {
        let (device, queue) = raw();
        let builder = GpuDevice::builder().backend(backend);
        (builder.adopt(device.clone(), queue), device)
    };
    let (device, raw) = adopted(Backend::Gpu);
    assert!(device.as_wgpu() == Some(&raw));
    assert_eq!(device.sum(&[1.0; 4_000]), Ok(4_000.0));
    let (device, _) = adopted(Backend::Simd);
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
        let device = opened_as(Backend::Gpu, change);
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
