//! Pools of several logical devices: results that do not depend on how many there are, and jobs
//! that outlive a device.

#![cfg(all(not(target_arch = "wasm32"), feature = "gpu"))]

mod support;

use std::time::Duration;

use relampago::{
    Argument, Backend, BufferId, Conv2d, ConvLayer, GpuCommandBatch, GpuDevice, GpuDevicePool,
    Matmul, Op, PoolProgram, wgpu,
};
use support::{Random, opened};

/// Returns a device with its wgpu handle, so that a test can destroy it.
fn logical() -> (GpuDevice, wgpu::Device) {
    opened(|_| ())
}

fn simd() -> GpuDevice {
    GpuDevice::builder().backend(Backend::Simd).build().unwrap()
}

/// A pool that divides whatever it can.
fn pool(devices: &[GpuDevice]) -> GpuDevicePool {
    let pool = GpuDevicePool::from_devices(devices.iter().cloned());
    pool.unwrap().least_values(1)
}

/// Operations that go by rows, with inputs, and into how many parts.
fn divided(random: &mut Random) -> Vec<(Op, Vec<Vec<f32>>, usize)> {
    let mut values = |lens: &[usize]| lens.iter().map(|&len| random.values(len)).collect();
    let product = Matmul::new(700, 33, 9).transpose_b();
    let image = Conv2d::valid(1_301, 70, 5, 3);
    let strided = Conv2d::valid(1_301, 70, 2, 3).with_stride(4, 3);
    let layer = ConvLayer::new(Conv2d::same(4, 5, 3, 3), 2, 6)
        .with_groups(2)
        .with_batch(300);
    vec![
        (Op::Gelu, values(&[70_001]), 15),
        (Op::VecAdd, values(&[300, 300]), 2),
        (Op::BiasAdd { rows: 257, cols: 5 }, values(&[1_285, 5]), 2),
        (
            Op::SoftmaxRows {
                rows: 600,
                cols: 31,
            },
            values(&[18_600]),
            4,
        ),
        (
            Op::Matmul {
                m: 300,
                k: 70,
                n: 50,
            },
            values(&[21_000, 3_500]),
            2,
        ),
        (
            Op::Matmul {
                m: 2_500,
                k: 64,
                n: 1,
            },
            values(&[160_000, 64]),
            9,
        ),
        (
            Op::MatmulWith { options: product },
            values(&[23_100, 297]),
            5,
        ),
        (Op::Convolve2d { options: image }, values(&[91_070, 15]), 10),
        (Op::Convolve2d { options: strided }, values(&[91_070, 6]), 2),
        (
            Op::ConvolveLayer { options: layer },
            values(&[12_000, 54]),
            2,
        ),
    ]
}

/// Operations that need all of an operand for each value.
fn undivided(random: &mut Random) -> Vec<(Op, Vec<Vec<f32>>)> {
    let product = Matmul::new(300, 20, 30).transpose_a();
    let padded = Conv2d::same(400, 20, 3, 3);
    vec![
        (Op::Sum, vec![random.values(70_001)]),
        (Op::Softmax, vec![random.values(5_000)]),
        (
            Op::Transpose { rows: 300, cols: 7 },
            vec![random.values(2_100)],
        ),
        (
            Op::MatmulWith { options: product },
            vec![random.values(6_000), random.values(600)],
        ),
        (
            Op::Convolve2d { options: padded },
            vec![random.values(8_000), random.values(9)],
        ),
    ]
}

/// A program of one operation.
fn program(pool: &GpuDevicePool, op: &Op, inputs: &[Vec<f32>]) -> PoolProgram {
    let mut batch = GpuCommandBatch::new(simd());
    let inputs: Vec<BufferId> = inputs
        .iter()
        .map(|input| batch.placeholder(input.len()))
        .collect();
    let y = batch.record(op.clone(), &inputs);
    pool.compile(&batch, &[y]).unwrap()
}

fn slices(inputs: &[Vec<f32>]) -> Vec<&[f32]> {
    inputs.iter().map(Vec::as_slice).collect()
}

fn arguments(inputs: &[Vec<f32>]) -> Vec<Argument<'_>> {
    inputs.iter().map(Into::into).collect()
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

#[test]
fn results_do_not_depend_on_the_number_of_devices() {
    let gpus: Vec<GpuDevice> = (0..3).map(|_| logical().0).collect();
    for kind in [gpus, vec![simd(), simd(), simd()]] {
        let mut random = Random(5);
        for (op, inputs, parts) in divided(&mut random) {
            let inputs = slices(&inputs);
            let whole = bits(&kind[0].run(&op, &inputs).unwrap());
            for devices in 1..=3 {
                let pool = pool(&kind[..devices]);
                assert_eq!(bits(&pool.run(&op, &inputs).unwrap()), whole, "{op:?}");
            }
            let inputs: Vec<Vec<f32>> = inputs.iter().map(|input| input.to_vec()).collect();
            assert_eq!(program(&pool(&kind), &op, &inputs).parts(), parts, "{op:?}");
        }
        for (op, inputs) in undivided(&mut random) {
            let program = program(&pool(&kind), &op, &inputs);
            assert_eq!(program.parts(), 1, "{op:?}");
            let whole = kind[0].run(&op, &slices(&inputs)).unwrap();
            assert_eq!(
                bits(&program.read(&arguments(&inputs)).unwrap()[0]),
                bits(&whole)
            );
        }
    }
}

/// A perceptron on many rows, and its bias alone: weights of the batch and of its device.
fn perceptron(device: &GpuDevice) -> (GpuCommandBatch, [BufferId; 2]) {
    let mut random = Random(11);
    let mut batch = GpuCommandBatch::new(device.clone());
    let resident = device.upload(&random.values(16 * 24)).unwrap();
    let x = batch.placeholder(900 * 16);
    let (first, bias) = (batch.input(&resident), batch.upload(&random.values(24)));
    let hidden = batch.matmul(x, first, 900, 16, 24);
    let hidden = batch.bias_add(hidden, bias, 900, 24);
    let hidden = batch.gelu(hidden);
    let second = batch.upload(&random.values(4 * 24));
    // Turned around by each device for itself.
    let second = batch.transpose(second, 4, 24);
    let y = batch.matmul(hidden, second, 900, 24, 4);
    (batch, [hidden, y])
}

#[test]
fn divided_graphs_have_their_weights_on_every_device() {
    let gpus: Vec<GpuDevice> = (0..2).map(|_| logical().0).collect();
    let x = Random(12).values(900 * 16);
    for kind in [gpus, vec![simd(), simd()]] {
        let (batch, outputs) = perceptron(&kind[0]);
        let whole = batch.compile(&outputs).unwrap();
        let whole = whole.read(&[(&x).into()]).unwrap();
        let program = pool(&kind).compile(&batch, &outputs).unwrap();
        assert_eq!(program.parts(), 7);
        for _ in 0..3 {
            assert_eq!(program.read(&[(&x).into()]).unwrap(), whole);
            // On another executor nothing waits but a thread of the crate's.
            assert_eq!(
                pollster::block_on(program.read_async(&[(&x).into()])).unwrap(),
                whole
            );
        }
    }
}

#[test]
fn job_survives_a_lost_device() {
    let x = Random(12).values(900 * 16);
    for after in [0, 50, 200, 500, 1_000, 2_000, 4_000, 8_000] {
        let (lost, raw) = logical();
        let devices = [lost, logical().0, logical().0];
        let (batch, outputs) = perceptron(&devices[1]);
        let program = pool(&devices).compile(&batch, &outputs).unwrap();
        let whole = batch.compile(&outputs).unwrap();
        let whole = whole.read(&[(&x).into()]).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_micros(after));
                raw.destroy();
            });
            for _ in 0..10 {
                assert_eq!(
                    program.read(&[(&x).into()]).unwrap(),
                    whole,
                    "after {after} µs"
                );
            }
        });
        assert_eq!(
            pollster::block_on(program.read_async(&[(&x).into()])).unwrap(),
            whole
        );
    }
}

#[test]
fn work_of_a_failing_device_moves_to_another() {
    let ((lost, raw), (last, raw_last)) = (logical(), logical());
    let pool = pool(&[lost, last.clone()]);
    let (op, x) = (Op::Sum, vec![vec![1.0; 100]]);
    let sum = program(&pool, &op, &x);
    let relu = program(&pool, &Op::Relu, &[vec![0.0; 1_000]]);
    raw.destroy();
    assert_eq!(sum.read(&arguments(&x)).unwrap(), [[100.0]]);
    assert_eq!(
        relu.read(&[(&[-1.0; 1_000]).into()]).unwrap(),
        [[0.0; 1_000]]
    );
    assert!(pool.device().unwrap().same_device(&last));
    // Neither is a device needed that was lost before.
    assert_eq!(
        program(&pool, &op, &x).read(&arguments(&x)).unwrap(),
        [[100.0]]
    );
    raw_last.destroy();
    for error in [
        sum.read(&arguments(&x)).unwrap_err(),
        relu.read(&[(&[-1.0; 1_000]).into()]).unwrap_err(),
        pool.run(&op, &slices(&x)).unwrap_err(),
        pool.device().unwrap_err(),
    ] {
        assert_eq!(error.code(), "DEVICE_LOST");
        assert!(error.to_string().contains("all 2 devices"), "{error}");
    }
}

#[test]
fn pool_returns_the_least_busy_device() {
    let devices = [simd(), simd(), simd()];
    let pool = pool(&devices);
    let leases = [(); 3].map(|()| pool.device().unwrap());
    for device in &devices {
        assert!(leases.iter().any(|lease| lease.same_device(device)));
    }
    let [first, second, third] = leases;
    let again = pool.device().unwrap();
    drop(second);
    let next = pool.device().unwrap();
    assert!(
        next.same_device(&devices[1]),
        "the only one that nobody has"
    );
    drop((first, third, again, next));
    assert_eq!(pool.devices().count(), 3);
}

#[test]
fn threads_share_a_pool() {
    let gpus: Vec<GpuDevice> = (0..2).map(|_| logical().0).collect();
    let pool = pool(&gpus);
    let sum = program(&pool, &Op::Sum, &[vec![0.0; 1_000]]);
    let double = program(&pool, &Op::Scale { factor: 2.0 }, &[vec![0.0; 1_000]]);
    std::thread::scope(|scope| {
        for n in 1..5 {
            let (sum, double) = (&sum, &double);
            scope.spawn(move || {
                let x = vec![n as f32; 1_000];
                for _ in 0..10 {
                    assert_eq!(sum.read(&[(&x).into()]).unwrap(), [[n as f32 * 1_000.0]]);
                    assert_eq!(
                        double.read(&[(&x).into()]).unwrap(),
                        [vec![2.0 * n as f32; 1_000]]
                    );
                }
            });
        }
    });
}

#[test]
fn invalid_arguments_return_errors() {
    let none = GpuDevicePool::from_devices([]).unwrap_err();
    assert_eq!(none.code(), "INVALID_ARGUMENT");
    let pool = pool(&[simd()]);
    let relu = program(&pool, &Op::Relu, &[vec![0.0; 1_000]]);
    assert_eq!(relu.read(&[]).unwrap_err().code(), "LENGTH_MISMATCH");
    assert_eq!(
        relu.read(&[(&[0.0; 999]).into()]).unwrap_err().code(),
        "LENGTH_MISMATCH"
    );
    let wrong = pool.run(&Op::VecAdd, &[&[1.0], &[1.0, 2.0]]).unwrap_err();
    assert_eq!(wrong.code(), "LENGTH_MISMATCH");
    let gather = Op::GatherRows { rows: 2, cols: 1 };
    let beyond = pool.run(&gather, &[&[1.0, 2.0], &[2.0]]).unwrap_err();
    assert_eq!(beyond.code(), "INVALID_ARGUMENT");
    // The position is that in the whole argument, not in a part of it.
    let table = vec![1.0; 2];
    let mut indices = vec![0.0; 5_000];
    indices[4_321] = 2.0;
    let gathered = program(&pool, &gather, &[table.clone(), indices.clone()]);
    let beyond = gathered.read(&[(&table).into(), (&indices).into()]);
    let beyond = beyond.unwrap_err().to_string();
    assert!(
        beyond.contains("`indices` is 2 at position 4321"),
        "{beyond}"
    );
    let mut batch = GpuCommandBatch::new(simd());
    let x = batch.placeholder(4);
    batch.matmul(x, x, 3, 3, 3);
    assert!(
        pool.compile(&batch, &[x])
            .unwrap_err()
            .to_string()
            .contains(file!())
    );
    let other = GpuCommandBatch::new(simd());
    assert_eq!(pool.compile(&other, &[x]).unwrap_err().code(), "FOREIGN");
}

#[test]
fn small_graphs_are_not_divided() {
    let pool = pool(&[simd(), simd()]).least_values(usize::MAX);
    let x = vec![-1.0; 10_000];
    assert_eq!(pool.run(&Op::Relu, &[&x]).unwrap(), vec![0.0; 10_000]);
}

#[test]
fn oversized_arguments_are_divided() {
    let most = isize::MAX as usize / size_of::<f32>();
    for (least, parts) in [(1, (most >> 22) + 1), (usize::MAX, 1)] {
        let pool = pool(&[simd()]).least_values(least);
        let mut batch = GpuCommandBatch::new(simd());
        let x = batch.placeholder(most);
        let y = batch.relu(x);
        let program = pool.compile(&batch, &[y]).unwrap();
        assert!(program.parts().abs_diff(parts) <= 1, "{}", program.parts());
        assert_eq!(
            program.read(&[(&[]).into()]).unwrap_err().code(),
            "LENGTH_MISMATCH"
        );
    }
}

#[test]
fn empty_inputs_and_outputs_are_accepted() {
    let pool = pool(&[simd(), simd()]);
    assert_eq!(pool.run(&Op::Relu, &[&[]]).unwrap(), Vec::<f32>::new());
    let empty = Op::Matmul { m: 5, k: 0, n: 4 };
    assert_eq!(pool.run(&empty, &[&[], &[]]).unwrap(), [0.0; 20]);
    let mut batch = GpuCommandBatch::new(simd());
    let x = batch.placeholder(500);
    let program = pool.compile(&batch, &[]).unwrap();
    assert!(program.read(&[(&[0.0; 500]).into()]).unwrap().is_empty());
    // An argument that is read as it is.
    let same = pool.compile(&batch, &[x]).unwrap();
    assert_eq!(same.read(&[(&[3.0; 500]).into()]).unwrap(), [[3.0; 500]]);
}

#[test]
fn pool_has_at_least_one_device() {
    for pool in [
        GpuDevicePool::new().unwrap(),
        GpuDevice::builder()
            .backend(Backend::Gpu)
            .build_pool()
            .unwrap(),
        GpuDevice::builder()
            .backend(Backend::Simd)
            .build_pool()
            .unwrap(),
    ] {
        assert_eq!(pool.run(&Op::Neg, &[&[1.0]]).unwrap(), [-1.0]);
    }
}
