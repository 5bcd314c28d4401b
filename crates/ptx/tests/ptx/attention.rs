//! Attention against its definition in `f64`.

use super::case::{Case, Expected, Value, random, rounded};
use super::oracle::unit;
use super::variants::Variant;
use relampago_ptx::kernels::{DecodeAttentionKernel, DecodeSumKernel};
use relampago_ptx::{AttentionKernel, PtxType};

/// Batch, heads, heads of keys, queries and keys.
type Shape = [usize; 5];

pub(crate) fn variants() -> Vec<Variant> {
    let (f32, f16, bf16) = (PtxType::F32, PtxType::F16, PtxType::BF16);
    // The first one's scores are far below 0, which that of a key beyond the last would be. The last
    // one's differ by hundreds: weights relative to less than the largest would be infinite.
    let small: &[Shape] = &[
        [2, 4, 2, 5, 9],
        [1, 1, 1, 1, 33],
        [1, 2, 1, 7, 7],
        [1, 2, 1, 7, 9],
    ];
    let middle: &[Shape] = &[[1, 1, 1, 130, 135], [1, 1, 1, 16, 67], [1, 2, 1, 30, 121]];
    let tiles: &[Shape] = &[[1, 2, 1, 5, 9], [1, 1, 1, 68, 71], [1, 1, 1, 9, 67]];
    let large: &[Shape] = &[
        [1, 1, 1, 130, 300],
        [2, 2, 1, 64, 128],
        [1, 1, 1, 1, 65],
        [1, 1, 1, 16, 135],
    ];
    let mut variants = Vec::new();
    for (kernel, ty, dim, shapes) in [
        (AttentionKernel::simple(32), f32, 32, small),
        (AttentionKernel::simple(128), f32, 128, small),
        (AttentionKernel::flash(bf16, 128), bf16, 128, large),
        (AttentionKernel::flash(f16, 64), f16, 64, large),
        (AttentionKernel::flash_mma(f16, 128), f16, 128, middle),
        (AttentionKernel::flash_mma(bf16, 64), bf16, 64, middle),
        (AttentionKernel::flash_tiled(64), f32, 64, tiles),
        (AttentionKernel::flash_tiled(128), f32, 128, tiles),
    ] {
        for causal in [false, true] {
            let kernel = if causal { kernel.causal() } else { kernel };
            let last = shapes.len() - 1;
            let cases = shapes.iter().enumerate().map(|(i, &shape)| {
                let sharp = if i == last { 200.0 } else { 1.0 };
                let apart = if i == 0 { 2.0 } else { 0.0 };
                case(shape, dim, causal, ty, [sharp, apart])
            });
            variants.push(Variant::new(kernel, cases.collect()));
        }
    }
    variants.extend(decoding());
    variants
}

/// Attention of one query for each sequence: the kernels for parts of the keys, and their
/// combination.
fn decoding() -> Vec<Variant> {
    let mut variants = Vec::new();
    for (ty, dim, group) in [
        (PtxType::BF16, 128, 4),
        (PtxType::F16, 64, 1),
        (PtxType::F16, 256, 2),
    ] {
        // Sequences, heads, heads of keys, capacity and parts.
        let shapes = [[2, 4, 1, 90, 3], [1, 8, 2, 300, 1], [1, 4, 1, 1, 2]];
        let cases = shapes
            .iter()
            .flat_map(|&shape| decode(shape, dim as usize, ty));
        let kernel = DecodeAttentionKernel::new(ty, dim, group);
        variants.push(Variant::new(kernel, cases.collect()));
    }
    for (ty, dim) in [(PtxType::BF16, 128), (PtxType::F32, 64)] {
        let cases = [[3, 1], [1, 9], [2, 4]].map(|shape| decode_sum(shape, dim as usize, ty));
        variants.push(Variant::new(DecodeSumKernel::new(ty, dim), cases.to_vec()));
    }
    variants
}

fn buffer(values: Vec<f32>, ty: PtxType) -> Value {
    match ty {
        PtxType::F16 => Value::F16s(values),
        PtxType::BF16 => Value::Bf16s(values),
        _ => Value::F32s(values),
    }
}

/// Returns two cases of one launch, one for each of its results.
fn decode(shape: [usize; 5], dim: usize, ty: PtxType) -> [Case; 2] {
    let [batch, heads, kv_heads, capacity, splits] = shape;
    let q = rounded(&random(batch * heads * dim, 21), ty);
    let keys = rounded(&random(batch * kv_heads * capacity * dim, 22), ty);
    let values = rounded(&random(batch * kv_heads * capacity * dim, 23), ty);
    let scale = 1.0 / (dim as f32).sqrt();
    let lengths: Vec<usize> = (0..batch).map(|i| capacity - i * (capacity / 3)).collect();
    let (mut sums, mut stats) = (Vec::new(), Vec::new());
    let close = |value: f64, size: f64| Expected {
        value,
        bound: 256.0 * unit(PtxType::F32) * size + 1e-30,
    };
    for (row, query) in q.chunks(dim).enumerate() {
        let (sequence, head) = (row / heads, row % heads);
        let first = (sequence * kv_heads + head / (heads / kv_heads)) * capacity;
        let at = |of: &[f32], key: usize, i: usize| f64::from(of[(first + key) * dim + i]);
        let length = lengths[sequence];
        let part = length.div_ceil(splits);
        for split in 0..splits {
            let range = (split * part).min(length)..((split + 1) * part).min(length);
            let scores: Vec<f64> = range
                .clone()
                .map(|key| {
                    let products = (0..dim).map(|i| f64::from(query[i]) * at(&keys, key, i));
                    products.sum::<f64>() * f64::from(scale) * std::f64::consts::LOG2_E
                })
                .collect();
            let max = scores.iter().copied().fold(f64::from(f32::MIN), f64::max);
            let weights: Vec<f64> = scores.iter().map(|score| (score - max).exp2()).collect();
            stats.push(close(max, max.abs().min(1e3) + 8.0));
            stats.push(close(weights.iter().sum(), 2.0 * weights.len() as f64));
            for i in 0..dim {
                let terms = weights.iter().zip(range.clone());
                let terms = terms.map(|(weight, key)| weight * at(&values, key, i));
                let size = terms.clone().map(f64::abs).sum::<f64>();
                sums.push(close(terms.sum(), 2.0 * size));
            }
        }
    }
    let lengths = lengths
        .iter()
        .flat_map(|&length| (length as u32).to_le_bytes());
    let empty = |expected: &[Expected]| Value::F32s(vec![f32::NAN; expected.len()]);
    let mut arguments = vec![buffer(q, ty), buffer(keys, ty), buffer(values, ty)];
    arguments.extend([empty(&sums), empty(&stats), Value::Bytes(lengths.collect())]);
    arguments.extend(shape.map(|size| Value::U32(size as u32)));
    arguments.push(Value::F32(scale));
    [(3, sums), (4, stats)].map(|(output, expected)| Case {
        label: format!("{shape:?}, result {output}"),
        arguments: arguments.clone(),
        output,
        expected,
    })
}

fn decode_sum([rows, splits]: [usize; 2], dim: usize, ty: PtxType) -> Case {
    let sums = random(rows * splits * dim, 24);
    let mut stats = random(rows * splits * 2, 25);
    for stat in stats.chunks_mut(2) {
        stat[1] = stat[1].abs() + 0.5;
    }
    // A part without keys.
    if splits > 1 {
        stats[..2].copy_from_slice(&[f32::MIN, 0.0]);
    }
    let mut expected = Vec::new();
    for row in 0..rows {
        let stat = |i: usize, which: usize| f64::from(stats[(row * splits + i) * 2 + which]);
        let max = (0..splits).map(|i| stat(i, 0)).fold(f64::MIN, f64::max);
        let weights: Vec<f64> = (0..splits).map(|i| (stat(i, 0) - max).exp2()).collect();
        let total: f64 = weights
            .iter()
            .enumerate()
            .map(|(i, w)| w * stat(i, 1))
            .sum();
        for col in 0..dim {
            let term = |i: usize| weights[i] * f64::from(sums[(row * splits + i) * dim + col]);
            let value = (0..splits).map(term).sum::<f64>() / total;
            let size = (0..splits).map(|i| term(i).abs()).sum::<f64>() / total;
            let bound = 16.0 * unit(PtxType::F32) * size + value.abs() * unit(ty) + 1e-30;
            expected.push(Expected { value, bound });
        }
    }
    let o = buffer(vec![f32::NAN; rows * dim], ty);
    let mut arguments = vec![Value::F32s(sums), Value::F32s(stats), o];
    arguments.extend([rows, splits].map(|size| Value::U32(size as u32)));
    Case {
        label: format!("{rows} of {splits}"),
        arguments,
        output: 2,
        expected,
    }
}

/// Scores are multiplied by `sharp`; queries are about `apart`, and keys about its negative.
fn case(shape: Shape, dim: usize, causal: bool, ty: PtxType, [sharp, apart]: [f32; 2]) -> Case {
    let [batch, heads, kv_heads, seq_q, seq_k] = shape;
    let matrix = |count, seed, about| {
        let x: Vec<f32> = random(count * dim, seed)
            .iter()
            .map(|x| x + about)
            .collect();
        rounded(&x, ty)
    };
    let q = matrix(batch * heads * seq_q, 11, apart);
    let (k, v) = (
        matrix(batch * kv_heads * seq_k, 12, -apart),
        matrix(batch * kv_heads * seq_k, 13, 0.0),
    );
    let scale = sharp / (dim as f32).sqrt();
    let mut expected = Vec::new();
    for plane in 0..batch * heads {
        let kv = plane / heads * kv_heads + plane % heads / (heads / kv_heads);
        let of_kv = kv * seq_k * dim..(kv + 1) * seq_k * dim;
        for row in 0..seq_q {
            let sees = if causal {
                row + 1 + seq_k - seq_q
            } else {
                seq_k
            };
            let at = (plane * seq_q + row) * dim;
            let query = &q[at..at + dim];
            expected.extend(attend(
                query,
                &k[of_kv.clone()],
                &v[of_kv.clone()],
                sees,
                scale,
                ty,
            ));
        }
    }
    let o = vec![f32::NAN; q.len()];
    let mut arguments = [q, k, v, o].map(|x| buffer(x, ty)).to_vec();
    arguments.extend(shape.map(|size| Value::U32(size as u32)));
    arguments.push(Value::F32(scale));
    Case {
        label: format!("{shape:?}"),
        arguments,
        output: 3,
        expected,
    }
}

fn attend(q: &[f32], k: &[f32], v: &[f32], sees: usize, scale: f32, ty: PtxType) -> Vec<Expected> {
    let dim = q.len();
    let products = |key: &[f32]| -> (f64, f64) {
        let products = q
            .iter()
            .zip(key)
            .map(|(q, k)| f64::from(*q) * f64::from(*k));
        products.fold((0.0, 0.0), |(sum, size), x| (sum + x, size + x.abs()))
    };
    let scale = f64::from(scale);
    let seen = k.chunks(dim).take(sees);
    let (scores, sizes): (Vec<f64>, Vec<f64>) = seen
        .map(products)
        .map(|(sum, size)| (sum * scale, size * scale))
        .unzip();
    let largest = sizes.into_iter().fold(0.0, f64::max);
    let max = scores.iter().fold(f64::NEG_INFINITY, |max, x| max.max(*x));
    let weights: Vec<f64> = scores.iter().map(|x| (x - max).exp()).collect();
    let total: f64 = weights.iter().sum();
    (0..dim)
        .map(|i| {
            let terms = weights
                .iter()
                .zip(v.chunks(dim))
                .map(|(w, v)| w / total * f64::from(v[i]));
            let (value, size) =
                terms.fold((0.0, 0.0), |(sum, size), x| (sum + x, size + f64::abs(x)));
            // Weights are rounded to the inputs' type, and scores have f32's error: of large ones it is
            // a weight's relative error.
            let f32s = f64::max(64.0, 8.0 * largest) * unit(PtxType::F32);
            let bound = size * (unit(ty) + f32s) + value.abs() * unit(ty);
            Expected {
                value,
                bound: bound + 1e-30,
            }
        })
        .collect()
}
