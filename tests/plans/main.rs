//! Tests of the plans of batches; `programs` has those of programs that run repeatedly,
//! `times` those of what kernels report.

#![cfg(not(target_arch = "wasm32"))]

mod programs;
mod times;

use relampago::{Backend, BufferId, BufferPlace, Conv2d, GpuCommandBatch, GpuDevice, Op};

fn device(backend: Backend) -> GpuDevice {
    let device = GpuDevice::builder().backend(backend).build();
    device.expect("the tests need an adapter, llvmpipe for one")
}

fn devices() -> [GpuDevice; 2] {
    [Backend::Simd, Backend::Gpu].map(device)
}

fn simd() -> GpuCommandBatch {
    GpuCommandBatch::new(device(Backend::Simd))
}

#[test]
fn chain_is_one_kernel_with_two_reads_and_one_write() {
    let mut batch = simd();
    let x = batch.placeholder(1_000_000);
    let relu = batch.relu(x);
    let scaled = batch.scale(relu, 2.0);
    let y = batch.placeholder(1_000_000);
    batch.vec_add(scaled, y);
    let plan = batch.explain();
    assert_eq!(plan.kernels.len(), 1);
    assert_eq!(plan.kernels[0].operations, ["relu", "scale", "vec_add"]);
    assert_eq!(
        plan.kernels[0].reads,
        [BufferPlace::Input(1), BufferPlace::Input(0)]
    );
    assert_eq!(
        (plan.summary.buffers, plan.summary.peak_bytes),
        (1, 4_000_000)
    );
    assert_eq!(plan.summary.bytes_moved, 12_000_000);
}

/// Cheap operations with some that are not, so that sweeps start from inputs and after others.
fn chain(batch: &mut GpuCommandBatch, len: usize, others: bool) -> BufferId {
    let mut x = batch.placeholder(len);
    for i in 0..5 {
        x = batch.scale(x, 1.5 - i as f32);
        x = batch.leaky_relu(x, 0.1 * i as f32);
        x = batch.clip(x, -3.0, 2.0 + i as f32);
        x = batch.neg(x);
        if others && i % 2 == 1 {
            x = batch.vec_add(x, x);
        }
    }
    x
}

#[test]
fn long_chains_match_single_operations() {
    for (device, len) in devices()
        .iter()
        .flat_map(|device| [1, 255, 1_024, 70_001, 600_000].map(|len| (device, len)))
    {
        let x: Vec<f32> = (0..len).map(|i| (i % 1_009) as f32 / 100.0 - 5.0).collect();
        for others in [false, true] {
            let run = |optimised: bool| {
                let mut batch = GpuCommandBatch::new(device.clone());
                batch.set_optimised(optimised);
                let y = chain(&mut batch, len, others);
                let program = batch.compile(&[y]).unwrap();
                // The second time in memory that is there already.
                let first = program.read(&[(&x).into()]).unwrap();
                assert_eq!(program.read(&[(&x).into()]).unwrap(), first);
                first
            };
            assert_eq!(run(true), run(false), "{device:?}, {len} values");
        }
    }
}

/// Compilers of shaders may take (x − y) + y for x, but not the plans' kernels.
#[test]
fn rounding_cancellation_is_preserved() {
    type Record = fn(&mut GpuCommandBatch, BufferId, BufferId) -> BufferId;
    let records: [(&str, Record); 9] = [
        ("(x − y) + y", |b, x, y| {
            let difference = b.sub(x, y);
            b.vec_add(difference, y)
        }),
        ("(x + y) − y", |b, x, y| {
            let sum = b.vec_add(x, y);
            b.sub(sum, y)
        }),
        ("−(x − y) + x", |b, x, y| {
            let difference = b.sub(x, y);
            let negated = b.neg(difference);
            b.vec_add(negated, x)
        }),
        ("x − (x − y)", |b, x, y| {
            let difference = b.sub(x, y);
            b.sub(x, difference)
        }),
        ("(x · y) / y", |b, x, y| {
            let product = b.mul(x, y);
            b.div(product, y)
        }),
        ("(x / y) · y", |b, x, y| {
            let quotient = b.div(x, y);
            b.mul(quotient, y)
        }),
        ("max(y, x − y)", |b, x, y| {
            let difference = b.sub(x, y);
            b.maximum(y, difference)
        }),
        ("min(x − y, y)", |b, x, y| {
            let difference = b.sub(x, y);
            b.minimum(difference, y)
        }),
        ("max(y, x + −y)", |b, x, y| {
            let negated = b.neg(y);
            let sum = b.vec_add(x, negated);
            b.maximum(y, sum)
        }),
    ];
    let infinite = f32::INFINITY;
    let x = [2.0, infinite, 1.0, -infinite, 3.0, f32::NAN, 1.0, 0.0];
    let y = [f32::NAN, infinite, 1e10, -infinite, 0.0, 1.0, infinite, 0.0];
    let run = |device: &GpuDevice, record: Record| {
        let mut batch = GpuCommandBatch::new(device.clone());
        let (a, b) = (batch.upload(&x), batch.upload(&y));
        let z = record(&mut batch, a, b);
        batch.execute_sync().unwrap();
        batch.read_sync(z).unwrap()
    };
    let [simd, gpu] = devices();
    for (what, record) in records {
        let (expected, actual) = (run(&simd, record), run(&gpu, record));
        let pairs = expected.iter().zip(&actual);
        let same = pairs
            .clone()
            .all(|(a, b)| a == b || a.is_nan() && b.is_nan());
        assert!(same, "{what}: {actual:?}, not {expected:?}");
    }
}

#[test]
fn unfused_chains_use_two_buffers() {
    for length in [2, 3, 50] {
        let mut batch = simd();
        let mut x = batch.placeholder(6_000);
        for _ in 0..length {
            x = batch.transpose(x, 60, 100);
        }
        let summary = batch.explain().summary;
        assert_eq!((summary.kernels, summary.buffers), (length, 2));
        assert_eq!(summary.peak_bytes, 48_000);
    }
}

/// The operations of each kernel.
fn kernels(record: impl FnOnce(&mut GpuCommandBatch)) -> Vec<Vec<&'static str>> {
    let mut batch = simd();
    record(&mut batch);
    let kernels = batch.explain().kernels.into_iter();
    kernels.map(|kernel| kernel.operations).collect()
}

#[test]
fn elementwise_operations_fuse_after_products_and_convolutions() {
    let layer = kernels(|batch| {
        let (x, w, b) = (
            batch.placeholder(6),
            batch.placeholder(12),
            batch.placeholder(4),
        );
        let product = batch.matmul(x, w, 2, 3, 4);
        let biased = batch.bias_add(product, b, 2, 4);
        batch.gelu(biased);
    });
    assert_eq!(layer, [["matmul", "bias_add", "gelu"]]);
    let filter = kernels(|batch| {
        let (x, k) = (batch.placeholder(25), batch.placeholder(9));
        let edges = batch.convolve2d_with(x, k, Conv2d::valid(5, 5, 3, 3));
        batch.relu(edges);
    });
    assert_eq!(filter, [["convolve2d_with", "relu"]]);
}

#[test]
fn elementwise_operations_fuse_before_reductions_and_softmax() {
    let loss = kernels(|batch| {
        let (x, y) = (batch.placeholder(8), batch.placeholder(8));
        let difference = batch.sub(x, y);
        let squared = batch.mul(difference, difference);
        batch.mean(squared);
    });
    assert_eq!(loss, [["sub", "mul", "mean"]]);
    let attention = kernels(|batch| {
        let x = batch.placeholder(8);
        let scaled = batch.scale(x, 0.5);
        let weights = batch.softmax_rows(scaled, 2, 4);
        batch.scale(weights, 2.0);
    });
    assert_eq!(attention, [["scale", "softmax_rows", "scale"]]);
}

#[test]
fn elementwise_operations_fuse_after_reductions() {
    let mean = kernels(|batch| {
        let (x, y) = (batch.placeholder(8), batch.placeholder(8));
        let product = batch.mul(x, y);
        let sum = batch.sum(product);
        let mean = batch.scale(sum, 0.125);
        let one = batch.upload(&[1.0]);
        batch.vec_add(mean, one);
    });
    assert_eq!(mean, [["mul", "sum", "scale", "vec_add"]]);
    let ratio = kernels(|batch| {
        let x = batch.placeholder(8);
        let (sum, largest) = (batch.sum(x), batch.max(x));
        batch.div(sum, largest);
    });
    assert_eq!(ratio, [vec!["sum"], vec!["max", "div"]]);
}

/// `sigmoid(r / 2 + 1)` for each reduction `r` of some values, and the number of kernels.
fn followed_reductions(device: &GpuDevice, x: &[f32], optimised: bool) -> (Vec<f32>, usize) {
    let mut batch = GpuCommandBatch::new(device.clone());
    batch.set_optimised(optimised);
    let (x, one) = (batch.upload(x), batch.upload(&[1.0]));
    let reductions = [
        batch.sum(x),
        batch.mean(x),
        batch.max(x),
        batch.min(x),
        batch.argmax(x),
        batch.dot(x, x),
    ];
    let outputs = reductions.map(|value| {
        let half = batch.scale(value, 0.5);
        let more = batch.vec_add(half, one);
        batch.sigmoid(more)
    });
    batch.execute_sync().unwrap();
    let values = outputs.map(|id| batch.read_sync(id).unwrap()[0]);
    (values.to_vec(), batch.explain().kernels.len())
}

#[test]
fn fused_reductions_match_unfused() {
    for device in devices() {
        // Of one dispatch on a GPU, and of two.
        for len in [5, 70_001] {
            let x: Vec<f32> = (0..len).map(|i| ((i * 7) % 31) as f32 - 15.0).collect();
            let (plain, separate) = followed_reductions(&device, &x, false);
            let (fused, together) = followed_reductions(&device, &x, true);
            assert_eq!((separate, together), (24, 6));
            for (fused, plain) in fused.iter().zip(plain) {
                let close = (fused - plain).abs() <= 2.0 * f32::EPSILON * plain;
                assert!(close, "{fused}, not {plain}");
            }
        }
    }
}

#[test]
fn elementwise_operations_fuse_before_norms() {
    let block = kernels(|batch| {
        let (x, residual) = (batch.placeholder(8), batch.placeholder(8));
        let (gain, bias) = (batch.placeholder(4), batch.placeholder(4));
        let sum = batch.vec_add(x, residual);
        let twice = batch.scale(gain, 2.0);
        let normed = batch.layer_norm(sum, twice, bias, 2, 4, 1e-5);
        batch.gelu(normed);
    });
    // What is not by rows is written before.
    assert_eq!(
        block,
        [vec!["scale"], vec!["vec_add", "layer_norm", "gelu"]]
    );
}

#[test]
fn shared_intermediates_are_stored() {
    let shared = kernels(|batch| {
        let x = batch.placeholder(8);
        let relu = batch.relu(x);
        batch.sum(relu);
        batch.max(relu);
    });
    assert_eq!(shared, [vec!["relu"], vec!["sum"], vec!["max"]]);
    let mut batch = simd();
    let x = batch.placeholder(8);
    let relu = batch.relu(x);
    batch.scale(relu, 2.0);
    assert_eq!(batch.explain().kernels.len(), 1);
    batch.output(relu).unwrap();
    assert_eq!(batch.explain().kernels.len(), 2);
}

/// Tests as many parameters as a kernel may have, and a sum, which needs one more.
#[test]
fn long_chains_keep_all_parameters() {
    let x: Vec<f32> = (0..100).map(|i| i as f32 / 10.0 - 5.0).collect();
    let results = devices().map(|device| {
        let mut batch = GpuCommandBatch::new(device);
        let (mut y, other) = (batch.upload(&x), batch.upload(&x));
        y = batch.sub(y, other);
        for i in 0..40 {
            let edge = i as f32 / 4.0;
            y = batch.clip(y, -edge, 20.0 - edge);
            if i % 9 == 0 {
                y = batch.vec_add(y, other);
            }
        }
        batch.execute_sync().unwrap();
        batch.read_sync(y).unwrap()
    });
    assert_eq!(results[0], results[1]);
}

#[test]
fn oversized_lengths_return_errors() {
    for device in devices() {
        let mut batch = GpuCommandBatch::new(device.clone());
        let most = isize::MAX as usize / 4;
        let (x, y) = (batch.placeholder(most), batch.placeholder(most));
        let _ = batch.vec_add(x, y);
        assert_eq!(batch.explain().summary.bytes_moved, usize::MAX);
        let warm = device.warmup(&[(Op::Sum, &[usize::MAX]), (Op::Relu, &[usize::MAX])]);
        assert!(warm.is_ok_and(|()| true) == (device.info().backend == Backend::Simd));
        let mut batch = GpuCommandBatch::new(device);
        let x = batch.placeholder(most + 1);
        let y = batch.relu(x);
        let error = batch.compile(&[y]).unwrap_err();
        assert_eq!(error.code(), "SHAPE_OVERFLOW");
        let message = "`placeholder` of shape [2305843009213693952] has more values than \
                       2305843009213693951, the most of an array";
        assert!(error.to_string().ends_with(message), "{error}");
    }
}
