//! Matrices as sums of bf16, and their products, against `f64`.

use super::case::{Case, Expected, Value, random, rounded};
use super::oracle::unit;
use super::steps::{LEAST, Packed, kept, packed, sizes};
use super::variants::Variant;
use relampago_ptx::PtxType::{BF16, F32};
use relampago_ptx::kernels::{PackedFormat, PlanesMatmulKernel, SplitKernel, UnpackKernel};

pub(crate) fn variants() -> Vec<Variant> {
    let lens = [(8, 2), (8, 1), (2056, 2), (4104, 1)];
    let cases = lens.map(|(len, planes)| split(len, planes)).into();
    let mut variants = vec![Variant::new(SplitKernel, cases)];
    for format in PackedFormat::ALL {
        let cases = [(64, 16, 2), (64, 32, 1), (8224, 32, 2)];
        let cases = cases.map(|(len, group, planes)| unpack(format, len, group, planes));
        variants.push(Variant::new(UnpackKernel::new(format), cases.into()));
    }
    let shapes = [[1, 8, 8], [200, 264, 136], [130, 40, 64], [3, 300, 200]];
    for kernel in [PlanesMatmulKernel::narrow(), PlanesMatmulKernel::wide()] {
        let cases = shapes.iter().enumerate();
        let cases = cases.flat_map(|(i, &shape)| [1, 2].map(|planes| product(shape, planes, i)));
        variants.push(Variant::new(kernel, cases.collect()));
    }
    variants
}

/// The planes of numbers, one after the other.
fn planes_of(numbers: &[f32], planes: usize) -> Vec<f32> {
    let mut all = rounded(numbers, BF16);
    if planes == 2 {
        let rests = numbers.iter().zip(&all).map(|(x, first)| x - first);
        let rests: Vec<f32> = rests.collect();
        all.extend(rounded(&rests, BF16));
    }
    all
}

fn written(numbers: &[f32], planes: usize) -> (Value, Vec<Expected>) {
    let expected: Vec<Expected> = planes_of(numbers, planes).into_iter().map(kept).collect();
    (Value::Bf16s(vec![f32::NAN; expected.len()]), expected)
}

fn split(len: usize, planes: usize) -> Case {
    let mut x = random(len, 3);
    for (scale, x) in [1e-20, 1.0, 3e5, 1e30].iter().cycle().zip(&mut x) {
        *x *= scale;
    }
    let (y, expected) = written(&x, planes);
    Case {
        label: format!("{len} numbers, {planes} planes"),
        expected,
        arguments: [Value::F32s(x), y]
            .into_iter()
            .chain(sizes([len, planes]))
            .collect(),
        output: 1,
    }
}

fn unpack(format: PackedFormat, len: usize, group: usize, planes: usize) -> Case {
    let Packed {
        words,
        scales,
        weights,
    } = packed(format, len, group);
    let weights: Vec<f32> = weights.iter().map(|&weight| weight as f32).collect();
    let (y, expected) = written(&weights, planes);
    let shift = (group / 16).trailing_zeros() as usize;
    Case {
        label: format!("{len} weights in groups of {group}, {planes} planes"),
        expected,
        arguments: [Value::Bytes(words), Value::F32s(scales), y]
            .into_iter()
            .chain(sizes([len, shift, planes]))
            .chain([Value::F32(LEAST)])
            .collect(),
        output: 2,
    }
}

/// A product with the options that belong to the case's number.
fn product([m, n, k]: [usize; 3], planes: usize, number: usize) -> Case {
    let (pitch, scale, beta) = (n + 2 * number, 0.75f32, (number % 2) as f32);
    let [a, b] = [(m * k, 4), (n * k, 5)].map(|(len, seed)| {
        let numbers = random(len, seed);
        if planes == 1 {
            rounded(&numbers, BF16)
        } else {
            numbers
        }
    });
    let y = if beta == 0.0 {
        vec![f32::NAN; m * pitch]
    } else {
        random(m * pitch, 6)
    };
    let mut expected: Vec<Expected> = y.iter().map(|&y| kept(y)).collect();
    // Of two planes, the product of the second ones and the rounding of these are lost.
    let lost = if planes == 1 { 0.0 } else { 2f64.powi(-15) };
    for (row, a) in a.chunks_exact(k).enumerate() {
        for (col, b) in b.chunks_exact(k).enumerate() {
            let products = a.iter().zip(b).map(|(&a, &b)| f64::from(a) * f64::from(b));
            let size: f64 = products.clone().map(f64::abs).sum();
            let to = &mut expected[row * pitch + col];
            let old = if beta == 0.0 { 0.0 } else { to.value };
            *to = Expected {
                value: f64::from(scale) * products.sum::<f64>() + old,
                bound: size * (lost + (3 * k) as f64 * unit(F32)) + old.abs() * unit(F32),
            };
        }
    }
    let arguments = [
        Value::Bf16s(planes_of(&a, planes)),
        Value::Bf16s(planes_of(&b, planes)),
        Value::F32s(y),
    ];
    Case {
        label: format!("{m}×{n}×{k}, {planes} planes, β = {beta}"),
        arguments: arguments
            .into_iter()
            .chain(sizes([m, n, k, pitch, planes]))
            .chain([scale, beta].map(Value::F32))
            .collect(),
        output: 2,
        expected,
    }
}
