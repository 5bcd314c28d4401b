//! Tests of the plans of batches, and of programs that run repeatedly.

#![cfg(not(target_arch = "wasm32"))]

use relampago::{
    Backend, BufferId, BufferPlace, Conv2d, CustomOp, Error, GpuCommandBatch, GpuDevice, Matmul,
    Op, Program,
};

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
                let program = batch.compile_sync(&[y]).unwrap();
                // The second time in memory that is there already.
                let first = program.read_sync(&[(&x).into()]).unwrap();
                assert_eq!(program.read_sync(&[(&x).into()]).unwrap(), first);
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

/// `y = x / 2 + 1` for four values.
fn halves(device: &GpuDevice) -> (GpuCommandBatch, BufferId) {
    let mut batch = GpuCommandBatch::new(device.clone());
    let (x, one) = (batch.placeholder(4), batch.upload(&[1.0; 4]));
    let half = batch.scale(x, 0.5);
    let y = batch.vec_add(half, one);
    (batch, y)
}

#[test]
fn programs_accept_slices_and_device_buffers() {
    for device in devices() {
        let (batch, y) = halves(&device);
        let program = batch.compile_sync(&[y, y]).unwrap();
        drop(batch);
        let x = vec![2.0, 4.0, -2.0, 0.0];
        let wanted = vec![2.0, 3.0, 0.0, 1.0];
        assert_eq!(
            program.read_sync(&[(&x).into()]).unwrap(),
            [&wanted[..], &wanted]
        );
        let results = program.run_sync(&[(&x).into()]).unwrap();
        let again = program.read_sync(&[(&results[1]).into()]).unwrap();
        assert_eq!(again[0], [2.0, 2.5, 1.0, 1.5]);
        // A result that is held stays what it was.
        assert_eq!(results[0].read().unwrap(), wanted);
    }
}

#[test]
fn packed_weights_match_unpacked_bit_for_bit() {
    let (rows, inner, cols) = (70, 300, 45);
    let values = |len: usize, step: usize| -> Vec<f32> {
        (0..len)
            .map(|i| (i * step % 101) as f32 / 7.0 - 7.0)
            .collect()
    };
    let x = values(rows * inner, 31);
    for device in devices() {
        let first = device.upload(&values(inner * cols, 17)).unwrap();
        let mut batch = GpuCommandBatch::new(device.clone());
        let (x_id, w) = (batch.placeholder(rows * inner), batch.input(&first));
        let back = batch.upload(&values(cols * cols, 13));
        let hidden = batch.matmul(x_id, w, rows, inner, cols);
        let hidden = batch.relu(hidden);
        let options = Matmul::new(rows, cols, cols);
        // The same matrix both ways, and once more as it is.
        let y = batch.matmul_with(hidden, back, options.transpose_b());
        let y = batch.matmul(y, back, rows, cols, cols);
        let y = batch.matmul(y, back, rows, cols, cols);
        let program = batch.compile_sync(&[y]).unwrap();
        batch.set_optimised(false);
        let plain = batch.compile_sync(&[y]).unwrap();
        for x in [&x, &values(rows * inner, 7)] {
            let arguments = [x.into()];
            let wanted = plain.read_sync(&arguments).unwrap();
            assert_eq!(program.read_sync(&arguments).unwrap(), wanted);
        }
    }
}

#[test]
fn shared_weights_work_with_several_shapes() {
    let weights: Vec<f32> = (0..12).map(|i| i as f32).collect();
    for device in devices() {
        let mut batch = GpuCommandBatch::new(device);
        let (x, w) = (batch.placeholder(36), batch.upload(&weights));
        let mut products = Vec::new();
        for (k, n) in [(3, 4), (4, 3), (2, 6), (6, 2)] {
            let m = 36 / k;
            products.push(batch.matmul(x, w, m, k, n));
            products.push(batch.matmul_with(x, w, Matmul::new(m, k, n).transpose_b()));
        }
        let program = batch.compile_sync(&products).unwrap();
        batch.set_optimised(false);
        let plain = batch.compile_sync(&products).unwrap();
        let x: Vec<f32> = (0..36).map(|i| (i % 5) as f32).collect();
        let [packed, plain] = [program, plain].map(|it| it.read_sync(&[(&x).into()]));
        assert_eq!(packed.unwrap(), plain.unwrap());
    }
}

#[test]
fn computed_weights_do_not_change() {
    for device in devices() {
        let mut batch = GpuCommandBatch::new(device.clone());
        let x = batch.placeholder(12);
        let doubled = batch.scale(x, 2.0);
        let double = batch.compile_sync(&[doubled]).unwrap();
        let made = double
            .run_sync(&[(&vec![1.0; 12]).into()])
            .unwrap()
            .remove(0);
        let mut batch = GpuCommandBatch::new(device.clone());
        let (a, b) = (batch.placeholder(9), batch.input(&made));
        let product = batch.matmul(a, b, 3, 3, 4);
        let product = batch.compile_sync(&[product]).unwrap();
        drop((made, batch));
        for _ in 0..3 {
            // In memory of its last result, were that nobody's any more.
            double.run_sync(&[(&vec![7.0; 12]).into()]).unwrap();
            let result = product.read_sync(&[(&vec![1.0; 9]).into()]).unwrap();
            assert_eq!(result[0], [6.0; 12]);
        }
    }
}

#[test]
fn loops_stay_on_the_device() {
    for device in devices() {
        let (batch, y) = halves(&device);
        let program = batch.compile_sync(&[y]).unwrap();
        for times in [1, 2, 3, 2_000] {
            let last = program
                .run_n_sync(&[(&vec![64.0; 4]).into()], times, &[(0, 0)])
                .unwrap();
            let wanted = (0..times).fold(64.0, |x: f32, _| x / 2.0 + 1.0);
            assert_eq!(last[0].read().unwrap(), [wanted; 4], "{times} times");
        }
    }
}

#[test]
fn loops_can_return_a_result_twice() {
    for device in devices() {
        let mut batch = GpuCommandBatch::new(device);
        let x = batch.placeholder(3);
        let (y, same) = (batch.scale(x, 2.0), batch.scale(x, 2.0));
        for outputs in [vec![y, y], vec![y, same], vec![y, y, same, y]] {
            let program = batch.compile_sync(&outputs).unwrap();
            let values: &[f32] = &[1.0, -2.0, 3.0];
            let results = program.run_n_sync(&[values.into()], 3, &[(0, 0)]).unwrap();
            for result in &results {
                assert_eq!(result.read().unwrap(), [8.0, -16.0, 24.0]);
            }
        }
    }
}

#[test]
fn loops_can_pass_a_result_through_several_runs() {
    let ones = vec![1.0; 4];
    let arguments = [(&ones).into(), (&ones).into()];
    for device in devices() {
        let mut batch = GpuCommandBatch::new(device);
        let (before, last) = (batch.placeholder(4), batch.placeholder(4));
        let next = batch.vec_add(before, last);
        // Written before the kernel runs that reads `before`.
        let twice = batch.scale(last, 2.0);
        let product = batch.matmul(twice, last, 2, 2, 2);
        let both = batch.vec_add(before, product);
        let fibonacci = batch.compile_sync(&[last, next]).unwrap();
        let powers = batch.compile_sync(&[last, twice, both]).unwrap();
        let run = |program: &Program, times: usize| -> Vec<Vec<f32>> {
            let results = program.run_n_sync(&arguments, times, &[(0, 0), (1, 1)]);
            let results = results.unwrap().into_iter();
            results.map(|result| result.read().unwrap()).collect()
        };
        let (mut older, mut newer) = (1.0, 1.0);
        let (mut half, mut power) = (1.0, 1.0);
        for times in 1..12 {
            (older, newer) = (newer, older + newer);
            assert_eq!(run(&fibonacci, times), [[older; 4], [newer; 4]]);
            let both = half + 4.0 * power * power;
            assert_eq!(
                run(&powers, times),
                [[power; 4], [2.0 * power; 4], [both; 4]]
            );
            (half, power) = (power, 2.0 * power);
        }
    }
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
        let x = batch.placeholder(usize::MAX);
        batch.relu(x);
        assert_eq!(batch.explain().summary.bytes_moved, usize::MAX);
        let warm = device.warmup(&[(Op::Sum, &[usize::MAX]), (Op::Relu, &[usize::MAX])]);
        assert!(warm.is_ok_and(|()| true) == (device.info().backend == Backend::Simd));
    }
}

/// Simulates a thread of rayon's that waits for others within a run, and starts another run.
#[test]
fn program_runs_can_be_nested() {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::{Arc, OnceLock};

    let program: Arc<OnceLock<Program>> = Arc::default();
    let (inner, within) = (program.clone(), AtomicBool::new(false));
    let run = move |[x]: [f32; 1], []: [f32; 0]| {
        if !within.swap(true, Ordering::Relaxed) {
            let program = inner.get().unwrap();
            let values = program.read_sync(&[(&vec![5.0; 3]).into()]).unwrap();
            assert_eq!(values, [[11.0; 3]]);
        }
        2.0 * x
    };
    let op = CustomOp::new("run", &["x"], &[], "2.0 * x", run).unwrap();
    let mut batch = simd();
    let x = batch.placeholder(3);
    let doubled = batch.custom_elementwise(&op, &[x], &[]);
    let one = batch.upload(&[1.0; 3]);
    let y = batch.vec_add(doubled, one);
    let program = program.get_or_init(|| batch.compile_sync(&[y]).unwrap());
    let values = program.read_sync(&[(&vec![1.0, 2.0, 3.0]).into()]).unwrap();
    assert_eq!(values, [[3.0, 5.0, 7.0]]);
}

#[test]
fn invalid_program_use_returns_errors() {
    let [device, other] = devices();
    let (mut batch, y) = halves(&device);
    assert_eq!(batch.execute_sync(), Err(Error::Unbound));
    let program = batch.compile_sync(&[y]).unwrap();
    let (x, short) = (vec![0.0; 4], vec![0.0; 3]);
    let code = |result: Result<_, Error>| result.map(|_: Vec<_>| ()).unwrap_err().code();
    assert_eq!(code(program.run_sync(&[])), "LENGTH_MISMATCH");
    assert_eq!(
        code(program.run_sync(&[(&short).into()])),
        "LENGTH_MISMATCH"
    );
    let foreign = other.upload(&x).unwrap();
    assert_eq!(code(program.run_sync(&[(&foreign).into()])), "FOREIGN");
    assert_eq!(
        code(program.run_n_sync(&[(&x).into()], 0, &[])),
        "INVALID_ARGUMENT"
    );
    assert_eq!(
        code(program.run_n_sync(&[(&x).into()], 2, &[(1, 0)])),
        "INVALID_ARGUMENT"
    );
    assert_eq!(
        code(program.run_n_sync(&[(&x).into()], 2, &[(0, 1)])),
        "INVALID_ARGUMENT"
    );
    let (_, id) = halves(&device);
    assert_eq!(batch.compile_sync(&[id]).unwrap_err().code(), "FOREIGN");
}
