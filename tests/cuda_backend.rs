//! `Backend::Cuda`: every operation as the op table states it, where there is an NVIDIA GPU.

#![cfg(all(feature = "cuda", not(target_arch = "wasm32")))]

mod support;

use relampago::{Backend, BufferId, Error, GpuCommandBatch, GpuDevice};
use support::{Summary, all_cases};

/// Opens the device.
fn device() -> GpuDevice {
    let builder = GpuDevice::builder().backend(Backend::Cuda);
    builder.build().expect("an NVIDIA GPU")
}

#[test]
fn a_missing_gpu_is_reported() {
    match GpuDevice::builder().backend(Backend::Cuda).build() {
        Ok(device) => assert_eq!(device.backend(), Backend::Cuda),
        Err(Error::NoGpu { reason }) => assert!(reason.starts_with("no NVIDIA"), "{reason}"),
        Err(error) => panic!("{error}"),
    }
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn cuda_conforms() {
    let device = device();
    let mut summary = Summary::default();
    for case in all_cases(1_000_003) {
        let result = device.run(&case.op, &case.inputs()).expect("a valid case");
        summary.note(&case, case.judge(&result, false));
    }
    summary.report(&format!("CUDA, {}", device.info()), |line| {
        println!("{line}");
    });
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn the_gpu_is_reported_and_used() {
    let device = device();
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

/// Records operations with kernels and without, some of whose results several others read.
fn mixed_graph(batch: &mut GpuCommandBatch, x: BufferId, weights: BufferId) -> Vec<BufferId> {
    let (m, k, n) = (70, 300, 40);
    let product = batch.matmul(x, weights, m, k, n);
    let activated = batch.gelu(product); // On the CPU.
    let squares = batch.mul(activated, product);
    let rows = batch.softmax_rows(squares, m, n);
    let turned = batch.transpose(rows, m, n); // On the CPU.
    let mean = batch.mean(turned);
    let next = batch.matmul(turned, x, n, m, k);
    vec![rows, mean, next, x]
}

fn numbers(len: usize) -> Vec<f32> {
    (0..len).map(|i| (i as f32 * 0.37).sin()).collect()
}

fn assert_close(found: &[f32], expected: &[f32]) {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        let bound = 1e-4 * expected.abs().max(1e-3);
        assert!(
            (found - expected).abs() <= bound,
            "{found} beside {expected}"
        );
    }
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn batches_and_programs_give_the_values_of_simd() {
    let cuda = device();
    let simd = GpuDevice::builder().backend(Backend::Simd).build().unwrap();
    let [x, weights] = [70 * 300, 300 * 40].map(numbers);
    let y: Vec<f32> = x.iter().map(|x| 0.5 - x).collect();
    let mut results = Vec::new();
    for device in [&cuda, &simd] {
        let mut of_device = Vec::new();
        // A batch, with resident and recorded inputs.
        let mut batch = GpuCommandBatch::new(device.clone());
        let resident = device.upload(&weights).unwrap();
        assert_eq!(resident.read().unwrap(), weights);
        let [a, b] = [batch.upload(&x), batch.input(&resident)];
        let outputs = mixed_graph(&mut batch, a, b);
        for &output in &outputs {
            batch.output(output).unwrap();
        }
        batch.execute_sync().unwrap();
        for &output in &outputs {
            of_device.push(batch.read_sync(output).unwrap());
        }
        // What a batch kept is the input of another one.
        let kept = batch.keep(outputs[0]).unwrap();
        let mut second = GpuCommandBatch::new(device.clone());
        let a = second.input(&kept);
        let sum = second.sum(a);
        second.execute_sync().unwrap();
        of_device.push(second.read_sync(sum).unwrap());
        // A program, with arguments from the host and from the device.
        let mut batch = GpuCommandBatch::new(device.clone());
        let [a, b] = [batch.placeholder(x.len()), batch.upload(&weights)];
        let outputs = mixed_graph(&mut batch, a, b);
        let program = batch.compile(&outputs).unwrap();
        of_device.extend(program.read(&[(&y).into()]).unwrap());
        let argument = device.upload(&x).unwrap();
        for buffer in program.run(&[(&argument).into()]).unwrap() {
            of_device.push(buffer.read().unwrap());
        }
        results.push(of_device);
    }
    for (found, expected) in results[0].iter().zip(&results[1]) {
        assert_close(found, expected);
    }
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn results_of_a_run_are_the_next_ones_arguments() {
    let device = device();
    let mut batch = GpuCommandBatch::new(device);
    let x = batch.placeholder(3);
    let one = batch.upload(&[1.0; 3]);
    let next = batch.vec_add(x, one);
    let other = batch.neg(next);
    let program = batch.compile(&[next, other]).unwrap();
    let results = program
        .run_n(&[(&[0.0, 1.0, 2.0]).into()], 5, &[(0, 0)])
        .unwrap();
    assert_eq!(results[0].read().unwrap(), [5.0, 6.0, 7.0]);
    assert_eq!(results[1].read().unwrap(), [-5.0, -6.0, -7.0]);
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn devices_can_be_rebuilt() {
    let device = device();
    let mut batch = GpuCommandBatch::new(device.clone());
    let x = batch.upload(&[1.0, -2.0]);
    let y = batch.relu(x);
    batch.execute_sync().unwrap();
    assert_eq!(batch.read_sync(y).unwrap(), [1.0, 0.0]);
    assert!(device.rebuild().unwrap().backend() == Backend::Cuda);
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn kernels_are_timed_on_both_back_ends() {
    let device = device();
    let mut batch = GpuCommandBatch::new(device);
    let x = batch.placeholder(70 * 300);
    let weights = batch.placeholder(300 * 40);
    let outputs = mixed_graph(&mut batch, x, weights);
    let program = batch.compile(&outputs).unwrap();
    let values = [numbers(70 * 300), numbers(300 * 40)];
    let arguments = [(&values[0]).into(), (&values[1]).into()];
    let start = std::time::Instant::now();
    let timed = program.time(&arguments).unwrap();
    let elapsed = start.elapsed();
    let times: Vec<_> = timed.kernels.iter().map(|kernel| kernel.time).collect();
    println!("{timed}");
    assert!(
        times
            .iter()
            .all(|time| *time > Some(std::time::Duration::ZERO)),
        "{timed}"
    );
    assert!(
        times.iter().flatten().sum::<std::time::Duration>() <= elapsed,
        "{timed}"
    );
}

/// Random blocks in `Q8_0`, and their weights.
#[cfg(feature = "llm")]
fn matrix_in_q8_0(blocks: usize, next: &mut impl FnMut() -> u32) -> (Vec<u8>, Vec<f32>) {
    let mut bytes = Vec::with_capacity(34 * blocks);
    let mut weights = Vec::with_capacity(32 * blocks);
    for _ in 0..blocks {
        // A scale between 2⁻⁷ and 2⁻⁶, in f16.
        let fraction = (next() >> 22) as u16;
        let scale = (1.0 + f32::from(fraction) / 1024.0) / 128.0;
        bytes.extend((0x2000 | fraction).to_le_bytes());
        for _ in 0..32 {
            let integer = (next() >> 24) as i8;
            bytes.push(integer as u8);
            weights.push(scale * f32::from(integer));
        }
    }
    (bytes, weights)
}

#[cfg(feature = "llm")]
#[test]
#[ignore = "needs an NVIDIA GPU"]
fn products_of_many_rows_by_large_matrices_are_those_in_f64() {
    use relampago::HalfPrecision;
    use relampago::llm::{QuantizedMatrix, WeightType};
    // Large enough for all kernels; neither number of rows fills the tiles.
    let ([m, rows, cols], mut state) = ([300, 4104, 4096], 1u32);
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state
    };
    let (blocks, weights) = matrix_in_q8_0(rows * cols / 32, &mut next);
    let x: Vec<f32> = (0..m * cols)
        .map(|_| next() as f32 / 2f32.powi(31) - 1.0)
        .collect();
    for half_precision in [false, true] {
        let builder = GpuDevice::builder().backend(Backend::Cuda);
        let device = builder.half_precision(half_precision).build();
        let device = device.expect("an NVIDIA GPU");
        let halves = device.info().half_precision == HalfPrecision::Used;
        assert!(half_precision || !halves);
        let matrix = QuantizedMatrix::new(&device, WeightType::Q8_0, blocks.clone(), rows, cols);
        let mut y = vec![f32::NAN; m * rows];
        matrix.unwrap().matmul(&x, &mut y, m).unwrap();
        // The relative error of two numbers as one bf16 each, or as sums of two.
        let bound = if halves {
            2f64.powi(-8)
        } else {
            2f64.powi(-15)
        };
        let mut largest = 0f64;
        for (i, y) in y.iter().enumerate().step_by(97) {
            let terms = x[i / rows * cols..].iter().zip(&weights[i % rows * cols..]);
            let terms = terms.take(cols).map(|(&x, &w)| f64::from(x) * f64::from(w));
            let size = terms.clone().map(f64::abs).sum::<f64>();
            let error = (f64::from(*y) - terms.sum::<f64>()).abs() / size;
            assert!(error <= bound, "{i}: {error:e} with 16 bits: {halves}");
            largest = largest.max(error);
        }
        println!("16 bits: {halves}; largest error {largest:.2e} of the sum of sizes");
    }
}
