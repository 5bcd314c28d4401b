//! Products by weights in ggml's blocks, as hardware and software adapters compute them.

use super::{Gpu, Options, any, noise, open, pretend};
use crate::graph::steps::{Activation, Norm, Product, StepBackend, StepPass};
use crate::ops::HalfPrecision;
use crate::runtime;
use crate::tensor::ggml::WeightType;
use std::sync::Arc;

const EPSILON: f32 = 1e-5;

/// Types with each kind of words, and with groups of 16 and of 32 weights, and the places of the f16 in a block.
const TYPES: [(WeightType, &[usize]); 4] = [
    (WeightType::F32, &[]),
    (WeightType::Q8_0, &[0]),
    (WeightType::Q4_1, &[0, 2]),
    (WeightType::Q6_K, &[208]),
];

/// Rows of inputs and of weights: few, of which many invocations share some, more than are shared by many, and those of
/// small and of large tiles.
const SHAPES: [[usize; 2]; 6] = [[1, 1], [2, 130], [3, 8_195], [9, 67], [40, 45], [70, 3_100]];

fn blocks(kind: WeightType, scales: &[usize], len: usize) -> Vec<u8> {
    if kind == WeightType::F32 {
        return bytemuck::cast_slice(&noise(len, 7)).to_vec();
    }
    let byte = |i: usize| (i * i * 31 + i * 7 + 3) as u8;
    let mut blocks: Vec<u8> = (0..len / kind.block_len() * kind.block_bytes())
        .map(byte)
        .collect();
    for block in blocks.chunks_exact_mut(kind.block_bytes()) {
        for &at in scales {
            block[at..at + 2].copy_from_slice(&[0x66, 0x2e]); // 0.1
        }
    }
    blocks
}

/// Returns the products of rows of `x`, normalised by `gain` if there is one, by `rows` rows of weights.
fn multiplied(
    gpu: &Arc<Gpu>,
    (kind, blocks): (WeightType, &[u8]),
    x: &[f32],
    gain: Option<&[f32]>,
    product: Product,
    rows: usize,
) -> Vec<f32> {
    let cols = x.len() / product.rows;
    let columns = product.gate.map_or(rows, |_| rows / 2);
    let len = product.rows * columns;
    let weights = runtime::block_on(StepBackend::weights(gpu, kind, &[blocks], cols)).unwrap();
    let reading = {
        let mut pass = StepBackend::pass(gpu).unwrap();
        let x = pass.upload(x).unwrap();
        let y = pass.allocate(len).unwrap();
        let gain = gain.map(|gain| pass.upload(gain).unwrap());
        let norm = gain.as_ref().map(|gain| Norm {
            bias: None,
            gain,
            cols,
            epsilon: EPSILON,
            skipped: 0,
        });
        pass.multiply(&x, &weights, (&y, 0, columns), product, norm)
            .unwrap();
        pass.submit(Some((&y, len))).unwrap()
    };
    runtime::block_on(reading).unwrap()
}

#[test]
fn products_by_blocks_are_exact_with_every_kernel() {
    let cols = 512;
    let gain = noise(cols, 3);
    for software in [true, false] {
        let gpu = pretend(software);
        for (kind, scales) in TYPES {
            for [tokens, rows] in SHAPES {
                let blocks = blocks(kind, scales, rows * cols);
                let mut weights = vec![0.0; rows * cols];
                kind.dequantize(&blocks, &mut weights);
                let x = noise(tokens * cols, 5);
                // Only products of few rows compute a norm.
                let norms = [None, Some(&gain[..])];
                for gain in norms
                    .into_iter()
                    .take(1 + usize::from(tokens < gpu.tiled_from()))
                {
                    let weights_of_x = (kind, &blocks[..]);
                    let product = Product::of(tokens);
                    let y = multiplied(&gpu, weights_of_x, &x, gain, product, rows);
                    let case = format!("{kind:?}, {tokens} by {rows}, software {software}");
                    for (row, y) in x.chunks(cols).zip(y.chunks(rows)) {
                        judge(&normalised(row, gain), &weights, y, &case);
                    }
                }
            }
        }
    }
}

#[test]
fn gates_of_products_multiply_what_they_let_pass() {
    let cols = 512;
    let (tokens, gain) = (2, noise(cols, 3));
    let x = noise(tokens * cols, 5);
    for software in [true, false] {
        let gpu = pretend(software);
        for (kind, scales) in TYPES {
            for gates in [1, 3, 66, 4_097] {
                let blocks = blocks(kind, scales, 2 * gates * cols);
                for activation in [Activation::Silu, Activation::GeluTanh] {
                    let multiplied = |product, columns| {
                        let weights = (kind, &blocks[..]);
                        multiplied(&gpu, weights, &x, Some(&gain), product, columns)
                    };
                    let plain = Product::of(tokens);
                    let apart = multiplied(plain, 2 * gates);
                    let gate = Some(activation);
                    let gated = multiplied(Product { gate, ..plain }, 2 * gates);
                    for (apart, gated) in apart.chunks(2 * gates).zip(gated.chunks(gates)) {
                        let pairs = apart[..gates].iter().zip(&apart[gates..]);
                        for ((&gate, &value), &is) in pairs.zip(gated) {
                            let wanted = activated(activation, gate.into()) * f64::from(value);
                            let error = (f64::from(is) - wanted).abs();
                            assert!(
                                error <= 1e-5 * wanted.abs() + 1e-7 * f64::from(value.abs()),
                                "{kind:?}, {gates}, {activation:?}, {software}: {is}, not {wanted}"
                            );
                        }
                    }
                }
            }
        }
    }
}

/// The columns before and after those of a product, in rows of `y`.
const BESIDE: usize = 4;

/// Returns the largest error of products of rows of `x` that are added to what `y` holds, as a fraction of the sum of their
/// terms' sizes.
fn error_beside_others(
    gpu: &Arc<Gpu>,
    (kind, scales): (WeightType, &[usize]),
    [tokens, cols, rows]: [usize; 3],
) -> f64 {
    let blocks = blocks(kind, scales, rows * cols);
    let mut weights = vec![0.0; rows * cols];
    kind.dequantize(&blocks, &mut weights);
    // Beyond the largest f16.
    let x: Vec<_> = noise(tokens * cols, 5).iter().map(|x| x * 1e5).collect();
    let stride = rows + 2 * BESIDE;
    let before = noise(tokens.next_multiple_of(64) * stride, 9);
    let product = Product {
        adds: true,
        scale: 1.5,
        ..Product::of(tokens)
    };
    let matrices = [&blocks[..]];
    let ready = StepBackend::weights(gpu, kind, &matrices, cols);
    let on_gpu = runtime::block_on(ready).unwrap();
    let reading = {
        let mut pass = StepBackend::pass(gpu).unwrap();
        let (x, y) = (pass.upload(&x).unwrap(), pass.upload(&before).unwrap());
        let columns = (&y, BESIDE, stride);
        pass.multiply(&x, &on_gpu, columns, product, None).unwrap();
        pass.submit(Some((&y, tokens * stride))).unwrap()
    };
    let y = runtime::block_on(reading).unwrap();
    let mut largest = 0.0;
    let lines = y.chunks(stride).zip(before.chunks(stride));
    for ((y, before), x) in lines.zip(x.chunks(cols)) {
        for (column, (&is, &was)) in y.iter().zip(before).enumerate() {
            let row = column.checked_sub(BESIDE).filter(|&row| row < rows);
            let Some(row) = row else {
                assert_eq!(is, was, "{kind:?}, column {column} beside the product");
                continue;
            };
            let terms = x.iter().zip(&weights[row * cols..]);
            let terms = terms.map(|(&x, &w)| 1.5 * f64::from(x) * f64::from(w));
            let (sum, size) = terms.fold((f64::from(was), 1.0), |(sum, size), term| {
                (sum + term, size + term.abs())
            });
            largest = f64::max(largest, (f64::from(is) - sum).abs() / size);
        }
    }
    largest
}

#[test]
fn products_by_blocks_in_f16_are_within_stated_error() {
    let options = Options {
        half_precision: true,
        ..any()
    };
    let gpu = open(&options).expect("an adapter, llvmpipe for one");
    let is_used = gpu.half_precision() == HalfPrecision::Used;
    println!("{}", gpu.half_precision());
    for types in TYPES {
        for shape in [[12, 256, 64], [70, 512, 128], [128, 1_024, 960]] {
            let error = error_beside_others(&gpu, types, shape);
            let case = format!("{:?}, {shape:?}: {error}", types.0);
            // Both factors are rounded to 11 binary digits.
            assert!(error <= 2f64.powi(-10), "{case}");
            assert_eq!(error > 1e-6, is_used, "{case}");
        }
    }
    // Few rows, and what has no whole tiles, are not rounded.
    for shape in [[11, 256, 64], [16, 264, 64], [16, 256, 65]] {
        let error = error_beside_others(&gpu, (WeightType::F32, &[]), shape);
        assert!(error <= 1e-6, "{shape:?}: {error}");
    }
}

fn activated(activation: Activation, x: f64) -> f64 {
    match activation {
        Activation::Silu => x / (1.0 + (-x).exp()),
        Activation::GeluTanh => {
            let cubic = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044_715 * x.powi(3));
            0.5 * x * (1.0 + cubic.tanh())
        }
    }
}

fn normalised(x: &[f32], gain: Option<&[f32]>) -> Vec<f64> {
    let Some(gain) = gain else {
        return x.iter().map(|&x| x.into()).collect();
    };
    let squares: f64 = x.iter().map(|&x| f64::from(x).powi(2)).sum();
    let root = (squares / x.len() as f64 + f64::from(EPSILON)).sqrt();
    let values = x.iter().zip(gain);
    values
        .map(|(&x, &gain)| f64::from(x) / root * f64::from(gain))
        .collect()
}

fn judge(x: &[f64], weights: &[f32], y: &[f32], case: &str) {
    for (index, (weights, &is)) in weights.chunks(x.len()).zip(y).enumerate() {
        let products = x.iter().zip(weights).map(|(x, &w)| x * f64::from(w));
        let (sum, size) = products.fold((0.0, 0.0), |(sum, size), product| {
            (sum + product, size + product.abs())
        });
        let error = (f64::from(is) - sum).abs();
        assert!(error <= 1e-6 * size, "{case}: {index} is {is}, not {sum}");
    }
}
