//! Tests of accumulating matmuls against `f64`, on every instruction set and on a GPU.

#![cfg(not(target_arch = "wasm32"))]

mod support;

use relampago::{Backend, GpuDevice, InstructionSet, Matmul};
use support::Random;

/// Nothing, vectors, less than a tile, edges of tiles and blocks, more than a block is deep.
const SHAPES: [[usize; 3]; 9] = [
    [0, 3, 2],
    [2, 0, 3],
    [1, 70, 33],
    [35, 70, 1],
    [2, 19, 40],
    [5, 3, 2],
    [37, 53, 91],
    [7, 1100, 20],
    [200, 300, 130],
];

fn devices() -> Vec<GpuDevice> {
    let simd = |isa: &InstructionSet| {
        let builder = GpuDevice::builder().backend(Backend::Simd);
        builder.instruction_set(*isa).build().unwrap()
    };
    let mut devices: Vec<_> = InstructionSet::available().iter().map(simd).collect();
    let gpu = GpuDevice::builder().backend(Backend::Gpu).build();
    devices.push(gpu.expect("an adapter, if in software"));
    devices
}

/// Values of a `rows × cols` matrix at row and column, and the same as they are stored.
fn matrix(random: &mut Random, [rows, cols]: [usize; 2], transposed: bool) -> (Vec<f32>, Vec<f32>) {
    let plain = random.values(rows * cols);
    let mut stored = plain.clone();
    if transposed {
        for (at, value) in stored.iter_mut().enumerate() {
            *value = plain[at % rows * cols + at / rows];
        }
    }
    (plain, stored)
}

#[test]
fn accumulated_products_match_f64() {
    let mut random = Random(7);
    for device in devices() {
        for [m, k, n] in SHAPES {
            for transposes in 0..4 {
                let [transpose_a, transpose_b] = [1, 2].map(|bit| transposes & bit != 0);
                let (a, stored_a) = matrix(&mut random, [m, k], transpose_a);
                let (b, stored_b) = matrix(&mut random, [k, n], transpose_b);
                let before = random.values(m * n);
                let mut c = before.clone();
                let mut options = Matmul::new(m, k, n);
                options.transpose_a = transpose_a;
                options.transpose_b = transpose_b;
                device
                    .matmul_add(&stored_a, &stored_b, &mut c, options)
                    .unwrap();
                for (at, &value) in c.iter().enumerate() {
                    let (row, col) = (at / n, at % n);
                    let terms =
                        (0..k).map(|i| f64::from(a[row * k + i]) * f64::from(b[i * n + col]));
                    let start = f64::from(before[at]);
                    let exact = start + terms.clone().sum::<f64>();
                    let magnitude = start.abs() + terms.map(f64::abs).sum::<f64>();
                    // As the op table says of products and of sums.
                    let bound = 16.5 * f64::from(f32::EPSILON) * magnitude;
                    let error = (f64::from(value) - exact).abs();
                    assert!(
                        error <= bound,
                        "{}, {options:?}, value {at}: {value}, not {exact}",
                        device.info(),
                    );
                }
            }
        }
    }
}

#[test]
fn results_do_not_depend_on_threads() {
    let [m, k, n] = [300, 200, 500];
    let mut random = Random(8);
    let (a, b, before) = (
        random.values(m * k),
        random.values(k * n),
        random.values(m * n),
    );
    let results = [1, 2].map(|threads| {
        let builder = GpuDevice::builder().backend(Backend::Simd);
        let device = builder.threads(threads).build().unwrap();
        let mut c = before.clone();
        device
            .matmul_add(&a, &b, &mut c, Matmul::new(m, k, n))
            .unwrap();
        c
    });
    assert_eq!(results[0], results[1]);
}

#[test]
fn wrong_lengths_return_errors_and_write_nothing() {
    for device in devices() {
        let mut c = [1.0; 4];
        let options = Matmul::new(2, 2, 2);
        let error = device.matmul_add(&[1.0; 4], &[1.0; 3], &mut c, options);
        assert_eq!(error.unwrap_err().code(), "LENGTH_MISMATCH");
        let error = device.matmul_add(&[1.0; 4], &[1.0; 4], &mut c[..3], options);
        assert_eq!(error.unwrap_err().code(), "LENGTH_MISMATCH");
        assert_eq!(c, [1.0; 4]);
    }
}
