//! Attention beside the same in `f64`.

use super::{noise, on_each};
use crate::simd::cached_rows::unpack_rows;
use crate::simd::{AttentionShape, Cpu, attention, pack_row};
use crate::tensor::CacheType;
use crate::tensor::quantized::half::{f16_to_f32, f32_to_f16};

/// The largest difference from the exact result, for values in [−1, 1).
const TOLERANCE: f64 = 2e-5;

fn exact(shape: &AttentionShape, queries: &[f32], keys: &[f32], values: &[f32]) -> Vec<f64> {
    let len = shape.head_len;
    let mut out = Vec::new();
    for (index, query) in queries.chunks_exact(len).enumerate() {
        let (token, head) = (index / shape.heads, index % shape.heads);
        let start = head / (shape.heads / shape.kv_heads) * shape.capacity;
        let position = shape.first + token;
        let seen = |&at: &usize| shape.window.is_none_or(|window| at + window > position);
        let seen: Vec<usize> = (0..=position).filter(seen).collect();
        let score = |&at: &usize| {
            let key = &keys[(start + at) * len..][..len];
            let terms = query.iter().zip(key);
            let score = terms
                .map(|(q, k)| f64::from(*q) * f64::from(*k))
                .sum::<f64>();
            let score = score * f64::from(shape.scale);
            let cap = shape.soft_cap.map(f64::from);
            cap.map_or(score, |cap| cap * (score / cap).tanh())
        };
        let scores: Vec<f64> = seen.iter().map(score).collect();
        let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let weights: Vec<f64> = scores.iter().map(|score| (score - most).exp()).collect();
        let sum: f64 = weights.iter().sum();
        out.extend((0..len).map(|i| {
            let value = |at: usize| f64::from(values[(start + at) * len + i]);
            let terms = seen.iter().zip(&weights);
            terms.map(|(&at, weight)| weight * value(at)).sum::<f64>() / sum
        }));
    }
    out
}

const CACHE_TYPES: [CacheType; 3] = [CacheType::F32, CacheType::F16, CacheType::Q8_0];

/// Rows as words.
fn packed(kind: CacheType, len: usize, rows: &[f32]) -> Vec<f32> {
    let row_words = kind.words(len);
    let mut words = vec![0.0; rows.len() / len * row_words];
    for (row, words) in rows
        .chunks_exact(len)
        .zip(words.chunks_exact_mut(row_words))
    {
        pack_row(kind, row, words);
    }
    words
}

/// Rounds a value to one that the type represents exactly; for `Q8_0`, if 127/128 is the largest of its block.
fn rounded(kind: CacheType, value: f32) -> f32 {
    match kind {
        CacheType::F16 => f16_to_f32(f32_to_f16(value)),
        CacheType::Q8_0 => (value * 127.0).round() / 128.0,
        _ => value,
    }
}

/// Rounds rows to numbers that the type represents exactly. In blocks of `Q8_0` the largest is 127/128, so the others
/// are integers.
fn round_rows(kind: CacheType, len: usize, rows: &mut [f32]) {
    for row in rows.chunks_exact_mut(len) {
        for block in row.chunks_mut(32) {
            for value in block.iter_mut() {
                *value = rounded(kind, *value);
            }
            if kind == CacheType::Q8_0 {
                block[0] = -127.0 / 128.0;
            }
        }
    }
}

#[test]
fn elements_beyond_f16_become_the_largest_one() {
    let row = [
        1e6,
        70_000.0,
        -1e30,
        f32::INFINITY,
        65_519.0,
        f32::NAN,
        1e-9,
    ];
    let mut words = [0.0; 4];
    pack_row(CacheType::F16, &row, &mut words);
    let words = words.map(f32::to_bits);
    let halves = [0, 1, 2, 3].map(|i| f16_to_f32(words[i] as u16));
    assert_eq!(halves, [65_504.0, 65_504.0, -65_504.0, 65_504.0]);
    let halves = [0, 1, 2].map(|i| f16_to_f32((words[i] >> 16) as u16));
    assert_eq!(halves[0], 65_504.0);
    assert!(halves[1].is_nan());
    assert_eq!(halves[2], 0.0);
}

#[test]
fn blocks_round_to_multiples_and_take_in_what_is_not_finite() {
    let mut row: Vec<f32> = noise(70, 4).iter().map(|x| 30.0 * x).collect();
    row[..32].fill(0.0);
    row[40] = 1e38;
    row[69] = f32::INFINITY;
    let mut words = vec![f32::NAN; CacheType::Q8_0.words(70)];
    assert_eq!(words.len(), 24);
    pack_row(CacheType::Q8_0, &row, &mut words);
    on_each(|isa| {
        let mut read = vec![f32::NAN; 70];
        unpack_rows(isa, (CacheType::Q8_0, 70), &words, &mut read);
        assert_eq!(read[..32], row[..32], "{isa}");
        for (read, exact) in read[32..64].iter().zip(&row[32..64]) {
            // Half a multiple, and the rounding of the scale.
            assert!(
                (read - exact).abs() <= 1e38 / 254.0 * 1.000_1,
                "{isa} {read} {exact}"
            );
        }
        assert!(read[64..].iter().all(|x| x.is_nan()), "{isa} {read:?}");
    });
}

fn check(shape: AttentionShape, threads: usize) {
    let rows = shape.tokens * shape.heads * shape.head_len;
    let cache = shape.kv_heads * shape.capacity * shape.head_len;
    let queries: Vec<f32> = noise(rows, 1).iter().map(|x| 3.0 * x).collect();
    let (mut keys, mut values) = (noise(cache, 2), noise(cache, 3));
    for cache in [&mut keys, &mut values] {
        round_rows(shape.cache_type, shape.head_len, cache);
    }
    let expected = exact(&shape, &queries, &keys, &values);
    // What lies behind the last position must not be read.
    for cache in [&mut keys, &mut values] {
        for head in cache.chunks_exact_mut(shape.capacity * shape.head_len) {
            head[(shape.first + shape.tokens) * shape.head_len..].fill(f32::NAN);
        }
    }
    [keys, values] = [keys, values].map(|rows| packed(shape.cache_type, shape.head_len, &rows));
    on_each(|isa| {
        let mut out = vec![f32::NAN; rows];
        attention(
            Cpu { isa, threads },
            shape,
            &queries,
            &keys,
            &values,
            &mut out,
        )
        .unwrap();
        for (at, (out, expected)) in out.iter().zip(&expected).enumerate() {
            let difference = (f64::from(*out) - expected).abs();
            assert!(
                difference <= TOLERANCE,
                "{isa} {shape:?} {at}: {out}, {expected}"
            );
        }
    });
}

/// Shapes of all kinds, the same every time.
fn shapes() -> impl Iterator<Item = AttentionShape> {
    let mut state = 1_u32;
    let mut below = move |limit: usize| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as usize % limit
    };
    let shape = move |_| {
        let kv_heads = 1 + below(3);
        let head_len = [1, 3, 8, 16, 20, 31, 64, 80, 100][below(9)];
        let tokens = [1, 1, 2, 7, 8, 33, 70][below(7)];
        let first = [0, 1, 5, 40, 300][below(5)];
        AttentionShape {
            tokens,
            first,
            all: None,
            heads: kv_heads * (1 + below(6)),
            kv_heads,
            head_len,
            capacity: first + tokens + below(3),
            scale: 1.0 / (head_len as f32).sqrt(),
            window: [None, Some(1), Some(9), Some(64)][below(4)],
            soft_cap: [None, None, Some(0.7), Some(30.0)][below(4)],
            cache_type: CACHE_TYPES[below(3)],
        }
    };
    (0..if cfg!(target_arch = "wasm32") {
        40
    } else {
        200
    })
        .map(shape)
}

#[test]
fn attention_is_that_in_f64() {
    shapes().for_each(|shape| check(shape, 1));
}

/// Checks that a position that holds `poison` reaches the tokens that see it, and no others.
fn check_hidden(shape: AttentionShape, poison: f32) {
    let rows = shape.tokens * shape.row_len();
    let cache = shape.kv_heads * shape.capacity * shape.head_len;
    let (queries, keys, values) = (noise(rows, 1), noise(cache, 2), noise(cache, 3));
    let clean = exact(&shape, &queries, &keys, &values);
    let sees = |token: usize, at: usize| {
        let position = shape.first + token;
        at <= position && shape.window.is_none_or(|window| at + window > position)
    };
    let first = (0..shape.capacity)
        .find(|&at| sees(0, at))
        .unwrap_or_default();
    for at in [
        first,
        shape.first + shape.tokens / 2,
        shape.first + shape.tokens - 1,
    ] {
        let (mut keys, mut values) = (keys.clone(), values.clone());
        for cache in [&mut keys, &mut values] {
            for head in cache.chunks_exact_mut(shape.capacity * shape.head_len) {
                head[at * shape.head_len..][..shape.head_len].fill(poison);
            }
        }
        on_each(|isa| {
            let mut out = vec![f32::NAN; rows];
            let cpu = Cpu { isa, threads: 2 };
            attention(cpu, shape, &queries, &keys, &values, &mut out).unwrap();
            for (i, (out, clean)) in out.iter().zip(&clean).enumerate() {
                let token = i / shape.row_len();
                let right = if sees(token, at) {
                    out.is_nan()
                } else {
                    (f64::from(*out) - clean).abs() <= TOLERANCE
                };
                assert!(
                    right,
                    "{isa} {shape:?} {poison} at {at}, token {token}: {out}, {clean}"
                );
            }
        });
    }
}

#[test]
fn hidden_positions_that_are_not_finite_reach_no_token() {
    for tokens in [2, 8, 33, 70] {
        for window in [None, Some(1), Some(9), Some(64)] {
            for poison in [f32::NAN, f32::INFINITY] {
                let shape = AttentionShape {
                    tokens,
                    first: 5,
                    all: None,
                    heads: 4,
                    kv_heads: 2,
                    head_len: 20,
                    capacity: 5 + tokens,
                    scale: 0.2,
                    window,
                    soft_cap: None,
                    cache_type: CacheType::F32,
                };
                check_hidden(shape, poison);
            }
        }
    }
}

#[test]
fn sharing_among_threads_changes_no_result() {
    for (tokens, first) in [(1, 3000), (3, 2000), (100, 300)] {
        let shape = AttentionShape {
            tokens,
            first,
            all: None,
            heads: 6,
            kv_heads: 2,
            head_len: 64,
            capacity: 3001,
            scale: 0.125,
            window: Some(1000),
            soft_cap: None,
            cache_type: CacheType::F32,
        };
        let rows = tokens * shape.row_len();
        let cache = shape.kv_heads * shape.capacity * shape.head_len;
        let (queries, keys, values) = (noise(rows, 1), noise(cache, 2), noise(cache, 3));
        on_each(|isa| {
            let results = [1, 2, 3].map(|threads| {
                let mut out = vec![f32::NAN; rows];
                let cpu = Cpu { isa, threads };
                attention(cpu, shape, &queries, &keys, &values, &mut out).unwrap();
                out
            });
            assert!(results.iter().all(|result| result == &results[0]), "{isa}");
        });
    }
}

impl AttentionShape {
    fn row_len(&self) -> usize {
        self.heads * self.head_len
    }
}
