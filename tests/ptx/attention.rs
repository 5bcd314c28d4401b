//! Attention against its definition in `f64`.

use super::case::{Case, Expected, Value, random, rounded};
use super::oracle::unit;
use super::variants::Variant;
use relampago::ptx::{AttentionKernel, PtxType};

/// Batch, heads, heads of keys, queries and keys.
type Shape = [usize; 5];

pub(crate) fn variants() -> Vec<Variant> {
    let small: [Shape; 3] = [[2, 4, 2, 5, 9], [1, 1, 1, 1, 33], [1, 2, 1, 7, 7]];
    let large: [Shape; 3] = [[1, 2, 1, 130, 300], [2, 2, 2, 64, 128], [1, 1, 1, 1, 65]];
    let mut variants = Vec::new();
    for (kernel, dim, shapes) in [
        (AttentionKernel::simple(32), 32, small),
        (AttentionKernel::simple(128), 128, small),
        (AttentionKernel::flash(PtxType::BF16, 128), 128, large),
        (AttentionKernel::flash(PtxType::F16, 64), 64, large),
    ] {
        let ty = match dim {
            _ if shapes == small => PtxType::F32,
            128 => PtxType::BF16,
            _ => PtxType::F16,
        };
        for causal in [false, true] {
            let kernel = if causal { kernel.causal() } else { kernel };
            let cases = shapes.iter().map(|&shape| case(shape, dim, causal, ty));
            variants.push(Variant::new(kernel, cases.collect()));
        }
    }
    variants
}

fn case(shape: Shape, dim: usize, causal: bool, ty: PtxType) -> Case {
    let [batch, heads, kv_heads, seq_q, seq_k] = shape;
    let matrix = |count, seed| rounded(&random(count * dim, seed), ty);
    let q = matrix(batch * heads * seq_q, 11);
    let (k, v) = (
        matrix(batch * kv_heads * seq_k, 12),
        matrix(batch * kv_heads * seq_k, 13),
    );
    let scale = 1.0 / (dim as f32).sqrt();
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
    let buffer = |values| match ty {
        PtxType::F16 => Value::F16s(values),
        PtxType::BF16 => Value::Bf16s(values),
        _ => Value::F32s(values),
    };
    let o = vec![f32::NAN; q.len()];
    let mut arguments = vec![buffer(q), buffer(k), buffer(v), buffer(o)];
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
    let dot = |key: &[f32]| -> f64 {
        q.iter()
            .zip(key)
            .map(|(q, k)| f64::from(*q) * f64::from(*k))
            .sum()
    };
    let scores: Vec<f64> = k
        .chunks(dim)
        .take(sees)
        .map(|key| dot(key) * f64::from(scale))
        .collect();
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
            // Weights are rounded to the inputs' type, and scores have f32's error.
            let bound = size * (unit(ty) + 64.0 * unit(PtxType::F32)) + value.abs() * unit(ty);
            Expected {
                value,
                bound: bound + 1e-30,
            }
        })
        .collect()
}
