//! Attention of many tokens at a time, and that whose positions are split, beside that of one token at a time by one
//! workgroup, which models are tested with.

use super::{Gpu, noise, pretend};
use crate::graph::transformer::{Attention, TransformerBackend, TransformerPass};
use crate::runtime;
use crate::simd::pack_row;
use crate::tensor::CacheType;
use std::sync::Arc;

const HEADS: usize = 4;
const KV_HEADS: usize = 2;

/// The largest difference: results are means of values in [−1, 1).
const TOLERANCE: f32 = 2e-5;

/// The lengths of heads: those of tiles, and one without.
const HEAD_LENS: [usize; 5] = [16, 48, 64, 128, 144];

/// Tokens, the first one's position, the room of the cache and a window. In the last one the cache is a ring.
const SHAPES: [(usize, usize, usize, Option<usize>); 5] = [
    (64, 0, 64, None),
    (70, 130, 210, None),
    (81, 0, 100, Some(9)),
    (65, 200, 300, Some(100)),
    (64, 500, 200, Some(120)),
];

fn words(kind: CacheType, len: usize, rows: usize) -> Vec<f32> {
    let row_words = kind.words(len);
    let mut words = vec![0.0; rows * row_words];
    let values = noise(rows * len, 11);
    let rows = values
        .chunks_exact(len)
        .zip(words.chunks_exact_mut(row_words));
    rows.for_each(|(row, words)| pack_row(kind, row, words));
    words
}

/// Returns the attention of some of the tokens.
fn attended(gpu: &Arc<Gpu>, queries: &[f32], cached: &[f32], attention: &Attention) -> Vec<f32> {
    let reading = {
        let mut pass = TransformerBackend::pass(gpu).unwrap();
        let inputs = [queries, cached].map(|values| pass.upload(values).unwrap());
        let mixed = pass.allocate(queries.len()).unwrap();
        let inputs = inputs.each_ref();
        let parts = pass.allocate(Attention::parts_len(attention.head_len));
        let parts = parts.unwrap();
        pass.attend(inputs, attention, &parts, &mixed).unwrap();
        pass.submit(Some((&mixed, queries.len()))).unwrap()
    };
    runtime::block_on(reading).unwrap()
}

fn attention(
    head_len: usize,
    cache_type: CacheType,
    (tokens, position, capacity, window): (usize, usize, usize, Option<usize>),
) -> Attention {
    Attention {
        tokens,
        heads: HEADS,
        kv_heads: KV_HEADS,
        head_len,
        position,
        capacity,
        window,
        scale: 0.3,
        cache_type,
    }
}

#[test]
fn attention_of_many_tokens_is_that_of_each() {
    let gpu = pretend(false);
    for head_len in HEAD_LENS {
        for kind in [CacheType::F32, CacheType::F16, CacheType::Q8_0] {
            for (tokens, position, capacity, window) in SHAPES {
                let row = HEADS * head_len;
                let queries: Vec<f32> = noise(tokens * row, 5).iter().map(|x| 3.0 * x).collect();
                let cached = words(kind, head_len, 2 * KV_HEADS * capacity);
                let of = |first: usize, tokens: usize| {
                    let shape = (tokens, position + first, capacity, window);
                    attention(head_len, kind, shape)
                };
                let all = attended(&gpu, &queries, &cached, &of(0, tokens));
                for token in (0..tokens).filter(|token| token % 33 < 2 || token + 1 == tokens) {
                    let range = token * row..(token + 1) * row;
                    let one = attended(&gpu, &queries[range.clone()], &cached, &of(token, 1));
                    let what = format!("{tokens} from {position}, token {token}");
                    compare(&format!("{kind:?}, {head_len}, {what}"), &all[range], &one);
                }
            }
        }
    }
}

/// As [`SHAPES`], with more positions than a workgroup takes at a time.
const LONG_SHAPES: [(usize, usize, usize, Option<usize>); 4] = [
    (1, 999, 1000, None),
    // The first tokens have a split less.
    (5, 509, 514, None),
    (2, 2000, 700, Some(690)),
    (60, 700, 800, None),
];

#[test]
fn attention_of_split_positions_is_that_of_all() {
    let (split, whole) = (pretend(false), pretend(true));
    for head_len in [16, 48, 64, 256] {
        for kind in [CacheType::F32, CacheType::F16, CacheType::Q8_0] {
            for shape in LONG_SHAPES {
                let (tokens, position, capacity, _) = shape;
                let len = tokens * HEADS * head_len;
                let queries: Vec<f32> = noise(len, 5).iter().map(|x| 3.0 * x).collect();
                let cached = words(kind, head_len, 2 * KV_HEADS * capacity);
                let attention = attention(head_len, kind, shape);
                assert!(attention.splits() > 1);
                let [split, whole] =
                    [&split, &whole].map(|gpu| attended(gpu, &queries, &cached, &attention));
                let what = format!("{kind:?}, {head_len}, {tokens} from {position}");
                compare(&what, &split, &whole);
            }
        }
    }
}

fn compare(what: &str, results: &[f32], wanted: &[f32]) {
    for (i, (is, wanted)) in results.iter().zip(wanted).enumerate() {
        let is_near = (is - wanted).abs() <= TOLERANCE;
        assert!(is_near, "{what}, {i}: {is}, not {wanted}");
    }
}
