//! Programs that run repeatedly.

use relampago::{BufferId, CustomOp, Error, GpuCommandBatch, GpuDevice, Matmul, Program};

use crate::{devices, simd};

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
        let program = batch.compile(&[y, y]).unwrap();
        drop(batch);
        let x = vec![2.0, 4.0, -2.0, 0.0];
        let wanted = vec![2.0, 3.0, 0.0, 1.0];
        assert_eq!(
            program.read(&[(&x).into()]).unwrap(),
            [&wanted[..], &wanted]
        );
        let results = program.run(&[(&x).into()]).unwrap();
        let again = program.read(&[(&results[1]).into()]).unwrap();
        assert_eq!(again[0], [2.0, 2.5, 1.0, 1.5]);
        // A result that is held stays what it was.
        assert_eq!(results[0].read().unwrap(), wanted);
    }
}

fn values(len: usize, step: usize) -> Vec<f32> {
    (0..len)
        .map(|i| (i * step % 101) as f32 / 7.0 - 7.0)
        .collect()
}

#[test]
fn packed_weights_match_unpacked_bit_for_bit() {
    let (rows, inner, cols) = (70, 300, 45);
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
        let program = batch.compile(&[y]).unwrap();
        batch.set_optimised(false);
        let plain = batch.compile(&[y]).unwrap();
        for x in [&x, &values(rows * inner, 7)] {
            let arguments = [x.into()];
            let wanted = plain.read(&arguments).unwrap();
            assert_eq!(program.read(&arguments).unwrap(), wanted);
        }
    }
}

#[test]
fn matrices_as_arguments_may_stay_or_change() {
    let (rows, inner, cols) = (70, 30, 45);
    let x = values(rows * inner, 31);
    for device in devices() {
        let matrices = [17, 13].map(|step| device.upload(&values(inner * cols, step)).unwrap());
        let mut batch = GpuCommandBatch::new(device.clone());
        let (x_id, w) = (
            batch.placeholder(rows * inner),
            batch.placeholder(inner * cols),
        );
        let product = batch.matmul(x_id, w, rows, inner, cols);
        let turned = Matmul::new(rows, cols, inner).transpose_b();
        let y = batch.matmul_with(product, w, turned);
        let program = batch.compile(&[y]).unwrap();
        batch.set_optimised(false);
        let plain = batch.compile(&[y]).unwrap();
        for at in [0, 0, 0, 1, 0, 1, 1, 1, 0] {
            let arguments = [(&x).into(), (&matrices[at]).into()];
            let wanted = plain.read(&arguments).unwrap();
            assert_eq!(program.read(&arguments).unwrap(), wanted);
        }
    }
}

#[test]
fn loops_multiply_by_their_results() {
    let turn = [
        0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 2.0, 0.0, 0.0, 0.0,
    ];
    for device in devices() {
        let mut batch = GpuCommandBatch::new(device.clone());
        let (a, b) = (batch.placeholder(16), batch.placeholder(16));
        let y = batch.matmul(a, b, 4, 4, 4);
        let program = batch.compile(&[y]).unwrap();
        let matrix = device.upload(&turn).unwrap();
        for _ in 0..3 {
            let arguments = [(&matrix).into(), (&matrix).into()];
            let power = program.run_n(&arguments, 7, &[(0, 1)]).unwrap();
            // The fourth power doubles a vector, and this is the eighth.
            let wanted: Vec<f32> = (0..16)
                .map(|i| [0.0, 4.0][usize::from(i % 5 == 0)])
                .collect();
            assert_eq!(power[0].read().unwrap(), wanted);
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
        let program = batch.compile(&products).unwrap();
        batch.set_optimised(false);
        let plain = batch.compile(&products).unwrap();
        let x: Vec<f32> = (0..36).map(|i| (i % 5) as f32).collect();
        let [packed, plain] = [program, plain].map(|it| it.read(&[(&x).into()]));
        assert_eq!(packed.unwrap(), plain.unwrap());
    }
}

#[test]
fn computed_weights_do_not_change() {
    for device in devices() {
        let mut batch = GpuCommandBatch::new(device.clone());
        let x = batch.placeholder(12);
        let doubled = batch.scale(x, 2.0);
        let double = batch.compile(&[doubled]).unwrap();
        let made = double.run(&[(&vec![1.0; 12]).into()]).unwrap().remove(0);
        let mut batch = GpuCommandBatch::new(device.clone());
        let (a, b) = (batch.placeholder(9), batch.input(&made));
        let product = batch.matmul(a, b, 3, 3, 4);
        let product = batch.compile(&[product]).unwrap();
        drop((made, batch));
        for _ in 0..3 {
            // In memory of its last result, were that nobody's any more.
            double.run(&[(&vec![7.0; 12]).into()]).unwrap();
            let result = product.read(&[(&vec![1.0; 9]).into()]).unwrap();
            assert_eq!(result[0], [6.0; 12]);
        }
    }
}

#[test]
fn loops_stay_on_the_device() {
    for device in devices() {
        let (batch, y) = halves(&device);
        let program = batch.compile(&[y]).unwrap();
        for times in [1, 2, 3, 2_000] {
            let last = program
                .run_n(&[(&vec![64.0; 4]).into()], times, &[(0, 0)])
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
            let program = batch.compile(&outputs).unwrap();
            let values: &[f32] = &[1.0, -2.0, 3.0];
            let results = program.run_n(&[values.into()], 3, &[(0, 0)]).unwrap();
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
        let fibonacci = batch.compile(&[last, next]).unwrap();
        let powers = batch.compile(&[last, twice, both]).unwrap();
        let run = |program: &Program, times: usize| -> Vec<Vec<f32>> {
            let results = program.run_n(&arguments, times, &[(0, 0), (1, 1)]);
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
            let values = program.read(&[(&vec![5.0; 3]).into()]).unwrap();
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
    let program = program.get_or_init(|| batch.compile(&[y]).unwrap());
    let values = program.read(&[(&vec![1.0, 2.0, 3.0]).into()]).unwrap();
    assert_eq!(values, [[3.0, 5.0, 7.0]]);
}

#[test]
fn invalid_program_use_returns_errors() {
    let [device, other] = devices();
    let (mut batch, y) = halves(&device);
    assert_eq!(batch.execute_sync(), Err(Error::Unbound));
    let program = batch.compile(&[y]).unwrap();
    let (x, short) = (vec![0.0; 4], vec![0.0; 3]);
    let code = |result: Result<_, Error>| result.map(|_: Vec<_>| ()).unwrap_err().code();
    assert_eq!(code(program.run(&[])), "LENGTH_MISMATCH");
    assert_eq!(code(program.run(&[(&short).into()])), "LENGTH_MISMATCH");
    let foreign = other.upload(&x).unwrap();
    assert_eq!(code(program.run(&[(&foreign).into()])), "FOREIGN");
    assert_eq!(
        code(program.run_n(&[(&x).into()], 0, &[])),
        "INVALID_ARGUMENT"
    );
    assert_eq!(
        code(program.run_n(&[(&x).into()], 2, &[(1, 0)])),
        "INVALID_ARGUMENT"
    );
    assert_eq!(
        code(program.run_n(&[(&x).into()], 2, &[(0, 1)])),
        "INVALID_ARGUMENT"
    );
    let (_, id) = halves(&device);
    assert_eq!(batch.compile(&[id]).unwrap_err().code(), "FOREIGN");
}
