//! Attention to a cache of keys and values against `f64`.

use super::case::{Case, Expected, Value, random, row_words};
use super::oracle::unit;
use super::steps::{kept, sizes};
use super::variants::Variant;
use relampago_ptx::PtxType::F32;
use relampago_ptx::half::{f16_to_f32, f32_to_f16};
use relampago_ptx::kernels::CachedAttentionKernel;
use std::f64::consts::LOG2_E;
use std::ops::Range;

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
        let kernel = of_rows(CachedAttentionKernel::split());
        variants.push(Variant::new(kernel, split_attentions(rows)));
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
            attend(shape, [position, capacity, window], rows, None, error)
        },
    )
    .into()
}

/// Cases for tensor cores, by the length of a head. In one of each the last element of a value in the middle is NaN.
/// The results of later tokens in the same blocks are then NaN.
fn attentions_of_many(rows: Rows) -> Vec<(u32, Vec<Case>)> {
    let case = |tokens, len: usize, places: [usize; 3], poisoned| {
        let error = (len as f64 / 16.0 + 4.0) * 2f64.powi(-16);
        attend([tokens, 2, 1, len], places, rows, poisoned, error)
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

/// The number of positions of a round of a block.
const ROUND: usize = 256;

/// Returns two cases of a launch for each shape and number of splits, one for each of its results.
fn split_attentions(rows: Rows) -> Vec<Case> {
    let shapes = [
        ([2, 4, 2, 16], [600, 610, 0], 3),
        // The second of the splits has no positions for the first token.
        ([2, 1, 1, 64], [255, 260, 0], 2),
        // The cache is a ring, whose end is inside of a split.
        ([1, 2, 1, 128], [1000, 700, 690], 4),
        ([1, 2, 2, 48], [9, 10, 0], 1),
    ];
    shapes
        .into_iter()
        .flat_map(|(shape, places, splits)| split_attention(shape, places, splits, rows))
        .collect()
}

fn split_attention(shape: [usize; 4], places: [usize; 3], splits: usize, rows: Rows) -> [Case; 2] {
    let inputs = Inputs::new(shape, places, rows, None);
    let [tokens, heads, _, len] = shape;
    let close = |value: f64, size: f64| Expected {
        value,
        bound: (len as f64 * 8.0 + 400.0) * unit(F32) * size,
    };
    let (mut sums, mut stats) = (Vec::new(), Vec::new());
    for index in 0..tokens * heads {
        let seen = inputs.seen(index);
        let each = seen.len().div_ceil(ROUND).div_ceil(splits) * ROUND;
        for split in 0..splits {
            let start = (seen.start + split * each).min(seen.end);
            let range = start..(start + each).min(seen.end);
            let (most, weights) = inputs.weights(index, range.clone());
            let most = most.map_or(f32::MIN.into(), |most| most * LOG2_E);
            stats.push(close(most, if weights.is_empty() { 0.0 } else { 1.0 }));
            stats.push(close(weights.iter().sum(), weights.len() as f64));
            for i in 0..len {
                let terms = inputs.terms(index, range.clone(), &weights, i);
                let size = terms.iter().map(|term| term.abs()).sum();
                sums.push(close(terms.iter().sum(), size));
            }
        }
    }
    let empty = |expected: &[Expected]| Value::F32s(vec![f32::NAN; expected.len()]);
    let outputs = [empty(&sums), empty(&stats)];
    let mut arguments = inputs.arguments(&outputs);
    arguments.extend(sizes([splits]));
    [(2, sums), (3, stats)].map(|(output, expected)| Case {
        label: format!("{}, {splits} splits, result {output}", inputs.label()),
        arguments: arguments.clone(),
        output,
        expected,
    })
}

fn attend(
    shape: [usize; 4],
    places: [usize; 3],
    rows: Rows,
    poisoned: Option<usize>,
    error: f64,
) -> Case {
    let inputs = Inputs::new(shape, places, rows, poisoned);
    let [tokens, heads, _, len] = shape;
    let mut expected = Vec::new();
    for index in 0..tokens * heads {
        let seen = inputs.seen(index);
        let (_, weights) = inputs.weights(index, seen.clone());
        let total: f64 = weights.iter().sum();
        for i in 0..len {
            // Blocks have at most 128 elements.
            if poisoned.is_some_and(|at| at < seen.end) && (len <= 128 || i >= len / 2) {
                expected.push(kept(f32::NAN));
                continue;
            }
            let terms = inputs.terms(index, seen.clone(), &weights, i);
            let size: f64 = terms.iter().map(|term| term.abs()).sum();
            expected.push(Expected {
                value: terms.iter().sum::<f64>() / total,
                bound: size / total * error,
            });
        }
    }
    let mixed = Value::F32s(vec![f32::NAN; inputs.queries.len()]);
    Case {
        label: inputs.label(),
        arguments: inputs.arguments(&[mixed]),
        output: 2,
        expected,
    }
}

const SCALE: f32 = 0.3;

/// Returns the positions that a token sees.
fn seen([position, _, window]: [usize; 3], token: usize) -> Range<usize> {
    let end = position + token + 1;
    let window = if window == 0 { end } else { window };
    end.saturating_sub(window)..end
}

/// Queries and a cache.
struct Inputs {
    /// Tokens, heads, heads of keys, and the length of a head.
    shape: [usize; 4],
    /// The position of the first token, the positions that there is room for, and those of a window, or 0.
    places: [usize; 3],
    /// The bound of scores, or 0: one of every other number of tokens.
    soft_cap: f32,
    queries: Vec<f32>,
    /// The elements of the cache, and its words.
    cached: Vec<f32>,
    words: Value,
}

impl Inputs {
    /// Draws inputs. The last element of the first head's value of a poisoned position is NaN.
    fn new(shape: [usize; 4], places: [usize; 3], rows: Rows, poisoned: Option<usize>) -> Self {
        let [tokens, heads, kv_heads, len] = shape;
        let [position, capacity, _] = places;
        let mut inputs = Self {
            shape,
            places,
            soft_cap: if tokens.is_multiple_of(2) { 0.7 } else { 0.0 },
            queries: random(tokens * heads * len, 12),
            cached: random(2 * kv_heads * capacity * len, 13),
            words: Value::F32s(Vec::new()),
        };
        let cached = &mut inputs.cached;
        if rows == Rows::F16 {
            cached
                .iter_mut()
                .for_each(|x| *x = f16_to_f32(f32_to_f16(*x)));
        }
        // What no token sees does not reach any.
        let seen = seen(places, 0).start..position + tokens;
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
        inputs.words = match rows {
            Rows::F32 => Value::F32s(cached.clone()),
            Rows::F16 => pack_rows(cached, len),
            Rows::Q8 => quantize_rows(cached, len),
        };
        inputs
    }

    fn label(&self) -> String {
        let [tokens, heads, _, len] = self.shape;
        let [position, _, window] = self.places;
        format!(
            "{tokens} tokens, {heads} heads of {len} from {position}, window {window}, cap {}",
            self.soft_cap
        )
    }

    fn arguments(&self, outputs: &[Value]) -> Vec<Value> {
        let mut arguments = vec![Value::F32s(self.queries.clone()), self.words.clone()];
        arguments.extend_from_slice(outputs);
        arguments.extend(sizes(self.shape));
        arguments.extend(sizes(self.places));
        arguments.extend([SCALE, self.soft_cap].map(Value::F32));
        arguments
    }

    /// Returns the positions that a head of a token sees.
    fn seen(&self, index: usize) -> Range<usize> {
        seen(self.places, index / self.shape[1])
    }

    /// Returns a row of the keys, or of the values, that a head of a token sees.
    fn row(&self, values: bool, index: usize, at: usize) -> &[f32] {
        let [_, heads, kv_heads, len] = self.shape;
        let capacity = self.places[1];
        let head = usize::from(values) * kv_heads + index % heads / (heads / kv_heads);
        &self.cached[(head * capacity + at % capacity) * len..][..len]
    }

    /// Returns the largest score of a head of a token, and the weights relative to it.
    fn weights(&self, index: usize, positions: Range<usize>) -> (Option<f64>, Vec<f64>) {
        let len = self.shape[3];
        let query = &self.queries[index * len..][..len];
        let scores = positions.map(|at| {
            let pairs = query.iter().zip(self.row(false, index, at));
            let dot: f64 = pairs.map(|(&q, &key)| f64::from(q) * f64::from(key)).sum();
            let score = dot * f64::from(SCALE);
            match f64::from(self.soft_cap) {
                0.0 => score,
                cap => cap * (score / cap).tanh(),
            }
        });
        let scores: Vec<f64> = scores.collect();
        let most = scores.iter().copied().reduce(f64::max);
        let weights = scores
            .iter()
            .map(|score| (score - most.unwrap_or(0.0)).exp());
        (most, weights.collect())
    }

    /// Returns the weighed elements `i` of values.
    fn terms(&self, index: usize, positions: Range<usize>, weights: &[f64], i: usize) -> Vec<f64> {
        let pairs = positions.zip(weights);
        let value = |at| f64::from(self.row(true, index, at)[i]);
        pairs.map(|(at, weight)| weight * value(at)).collect()
    }
}
