//! Attention of many tokens at a time beside that of one at a time, which models are tested with.

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
        pass.attend(inputs, attention, &mixed).unwrap();
        pass.submit(Some((&mixed, queries.len()))).unwrap()
    };
    runtime::block_on(reading).unwrap()
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
                let of = |first: usize, tokens: usize| Attention {
                    tokens,
                    heads: HEADS,
                    kv_heads: KV_HEADS,
                    head_len,
                    position: position + first,
                    capacity,
                    window,
                    scale: 0.3,
                    cache_type: kind,
                };
                let all = attended(&gpu, &queries, &cached, &of(0, tokens));
                for token in (0..tokens).filter(|token| token % 33 < 2 || token + 1 == tokens) {
                    let range = token * row..(token + 1) * row;
                    let one = attended(&gpu, &queries[range.clone()], &cached, &of(token, 1));
                    for (i, (many, one)) in all[range].iter().zip(one).enumerate() {
                        let what = format!("{kind:?}, {head_len}, {tokens} from {position}");
                        let is_near = (many - one).abs() <= TOLERANCE;
                        assert!(is_near, "{what}, token {token}, {i}: {many}, {one}");
                    }
                }
            }
        }
    }
}
