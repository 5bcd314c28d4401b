//! Attention to a cache of keys and values against `f64`.

use super::case::{Case, Expected, Value, random, row_words};
use super::oracle::unit;
use super::transformer::{kept, sizes};
use super::variants::Variant;
use relampago::ptx::PtxType::F32;
use relampago::ptx::half::{f16_to_f32, f32_to_f16};
use relampago::ptx::kernels::CachedAttentionKernel;

pub(crate) fn variants() -> Vec<Variant> {
    let mut variants = Vec::new();
    for rows in Rows::ALL {
        let of_rows = |kernel: CachedAttentionKernel| match rows {
            Rows::F32 => kernel,
            Rows::F16 => kernel.packed(),
            Rows::Q8 => kernel.quantized(),
        };
        let kernel = of_rows(CachedAttentionKernel::new());
        variants.push(Variant::new(kernel, attentions(rows)));
        for (len, cases) in attentions_of_many(rows) {
            let kernel = of_rows(CachedAttentionKernel::mma(len));
            variants.push(Variant::new(kernel, cases));
        }
    }
    variants
}

/// How a cache holds rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rows {
    F32,
    F16,
    Q8,
}

impl Rows {
    pub(crate) const ALL: [Self; 3] = [Self::F32, Self::F16, Self::Q8];
}

/// Rounds rows to what integers of 8 bits with a scale hold exactly, and returns their words.
fn quantize_rows(values: &mut [f32], len: usize) -> Value {
    let mut words = Vec::new();
    for row in values.chunks_exact_mut(len) {
        let (mut integers, mut scales) = (Vec::new(), Vec::new());
        for block in row.chunks_mut(32) {
            let poisoned = block.iter().any(|x| x.is_nan());
            let scale = if poisoned { f32::NAN } else { 1.0 / 128.0 };
            for x in block {
                let integer = (*x * 40.0).round().clamp(-127.0, 127.0);
                integers.push(integer as i8 as u8);
                *x = integer * scale;
            }
            scales.push(scale);
        }
        let integers = integers.as_chunks::<4>().0;
        scales.resize(row_words(len) - integers.len(), 0.0);
        let bits = integers.iter().map(|&word| u32::from_le_bytes(word));
        words.extend(bits.map(f32::from_bits));
        words.extend(scales);
    }
    Value::Integers(words, len)
}

/// Words of two f16, an element of each half of a row.
fn pack_rows(values: &[f32], len: usize) -> Value {
    let row = |row: &[f32]| -> Vec<f32> {
        let (low, high) = row.split_at(len / 2);
        low.iter()
            .zip(high)
            .flat_map(|(&low, &high)| [low, high])
            .collect()
    };
    Value::F16s(values.chunks_exact(len).flat_map(row).collect())
}

fn attentions(rows: Rows) -> Vec<Case> {
    [
        ([2, 4, 2, 8], 0, 4, 0),
        ([1, 3, 1, 64], 300, 302, 0),
        ([3, 2, 2, 136], 270, 280, 263),
        ([1, 1, 1, 256], 3, 5, 2),
        // The cache is a ring.
        ([2, 2, 1, 64], 700, 310, 300),
        ([1, 4, 2, 8], 9, 5, 5),
    ]
    .map(
        |(mut shape, position, capacity, window): ([usize; 4], _, _, _)| {
            if rows == Rows::Q8 {
                shape[3] = shape[3].next_multiple_of(16);
            }
            let error = (shape[3] as f64 * 8.0 + 400.0) * unit(F32);
            attend(shape, position, capacity, window, rows, None, error)
        },
    )
    .into()
}

/// Cases for tensor cores, by the length of a head. In one of each the last element of a value in the middle is NaN,
/// which makes those of later tokens NaN that the same blocks compute.
fn attentions_of_many(rows: Rows) -> Vec<(u32, Vec<Case>)> {
    let case = |tokens, len: usize, [position, capacity, window]: [usize; 3], poisoned| {
        let error = (len as f64 / 16.0 + 4.0) * 2f64.powi(-16);
        attend(
            [tokens, 2, 1, len],
            position,
            capacity,
            window,
            rows,
            poisoned,
            error,
        )
    };
    let cases = |len: usize| {
        vec![
            case(67, len, [0, 70, 0], None),
            case(5, len, [40, 45, 0], Some(42)),
            case(66, len, [3, 80, 20], None),
            case(66, len, [100, 90, 20], None),
        ]
    };
    let lens = [32, 64, 96, 128, 192, 256];
    lens.map(|len| (len as u32, cases(len))).into()
}

fn attend(
    [tokens, heads, kv_heads, len]: [usize; 4],
    position: usize,
    capacity: usize,
    window: usize,
    rows: Rows,
    poisoned: Option<usize>,
    error: f64,
) -> Case {
    let queries = random(tokens * heads * len, 12);
    let mut cached = random(2 * kv_heads * capacity * len, 13);
    if rows == Rows::F16 {
        for x in &mut cached {
            *x = f16_to_f32(f32_to_f16(*x));
        }
    }
    let first_seen = |end: usize| {
        if window == 0 {
            0
        } else {
            end.saturating_sub(window)
        }
    };
    // What no token sees does not reach any.
    let seen = first_seen(position + 1)..position + tokens;
    for head in cached.chunks_exact_mut(capacity * len) {
        for (row, elements) in head.chunks_exact_mut(len).enumerate() {
            if seen.clone().all(|at| at % capacity != row) {
                elements.fill(f32::NAN);
            }
        }
    }
    if let Some(at) = poisoned {
        cached[(kv_heads * capacity + at) * len + len - 1] = f32::NAN;
    }
    let words = match rows {
        Rows::F32 => Value::F32s(cached.clone()),
        Rows::F16 => pack_rows(&cached, len),
        Rows::Q8 => quantize_rows(&mut cached, len),
    };
    let scale = 0.3f32;
    let mut expected = Vec::new();
    for (index, query) in queries.chunks_exact(len).enumerate() {
        let (token, head) = (index / heads, index % heads);
        let end = position + token + 1;
        let start = first_seen(end);
        let row = |half: usize, at: usize| {
            let head = half * kv_heads + head / (heads / kv_heads);
            &cached[(head * capacity + at % capacity) * len..][..len]
        };
        let scores = (start..end).map(|at| {
            let pairs = query.iter().zip(row(0, at));
            let dot: f64 = pairs.map(|(&q, &key)| f64::from(q) * f64::from(key)).sum();
            dot * f64::from(scale)
        });
        let scores: Vec<f64> = scores.collect();
        let most = scores.iter().copied().fold(f64::MIN, f64::max);
        let weights: Vec<f64> = scores.iter().map(|score| (score - most).exp()).collect();
        let total: f64 = weights.iter().sum();
        for i in 0..len {
            let parts = (start..end).zip(&weights);
            // Blocks have at most 128 elements.
            if poisoned.is_some_and(|at| at < end) && (len <= 128 || i >= len / 2) {
                expected.push(kept(f32::NAN));
                continue;
            }
            let sum = |of: fn(f64) -> f64| {
                let parts = parts
                    .clone()
                    .map(|(at, weight)| weight * of(row(1, at)[i].into()));
                parts.sum::<f64>() / total
            };
            expected.push(Expected {
                value: sum(|x| x),
                bound: sum(f64::abs) * error,
            });
        }
    }
    let mixed = Value::F32s(vec![f32::NAN; queries.len()]);
    let mut arguments = vec![Value::F32s(queries), words, mixed];
    arguments.extend(sizes([
        tokens, heads, kv_heads, len, position, capacity, window,
    ]));
    arguments.push(Value::F32(scale));
    Case {
        label: format!("{tokens} tokens, {heads} heads of {len} from {position}, window {window}"),
        arguments,
        output: 2,
        expected,
    }
}
