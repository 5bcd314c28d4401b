//! Attention of many tokens at a time, that whose positions are split, and that which places the next token's heads,
//! beside that of one token at a time by one workgroup.

use super::{Gpu, noise, pretend};
use crate::graph::steps::{
    Attention, HeadGains, HeadPlaces, HeadRotation, StepBackend, StepPass, TokenRows,
};
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
        let mut pass = StepBackend::pass(gpu).unwrap();
        let inputs = [queries, cached].map(|values| pass.upload(values).unwrap());
        let mixed = pass.allocate(queries.len()).unwrap();
        let inputs = (&inputs[0], &inputs[1]);
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
        rows: TokenRows {
            before: 0,
            all: tokens,
        },
        heads: HEADS,
        kv_heads: KV_HEADS,
        head_len,
        position,
        capacity,
        window,
        scale: 0.3,
        soft_cap: window.map(|_| 2.0),
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

/// Shapes like [`SHAPES`], with more positions than a workgroup computes at a time.
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

/// Positions of the next token, the room of the cache and a window.
const NEXT_SHAPES: [(usize, usize, Option<usize>); 6] = [
    (0, 1, None),
    (255, 256, None),
    (257, 300, None),
    (999, 1000, None),
    (70, 80, Some(1)),
    (2000, 700, Some(690)),
];

/// Places the heads of a token and attends: in one kernel, or in one after the other. Returns the results and the cache.
fn attended_next(
    gpu: &Arc<Gpu>,
    values: [&[f32]; 3],
    attention: &Attention,
    rotation: (usize, bool),
    in_one: bool,
) -> [Vec<f32>; 2] {
    let (pairs, neighbours) = rotation;
    let angles = (0..(attention.position + 1) * pairs).flat_map(|i| {
        let (sine, cosine) = (i as f32).sin_cos();
        [cosine, sine]
    });
    let angles: Vec<f32> = angles.collect();
    let len = HEADS * attention.head_len;
    let (mixed, cached) = {
        let mut pass = StepBackend::pass(gpu).unwrap();
        let [x, gain, cached] = values.map(|values| pass.upload(values).unwrap());
        let angles = pass.upload(&angles).unwrap();
        let [queries, mixed] = [(); 2].map(|()| pass.allocate(len).unwrap());
        let parts = pass.allocate(Attention::parts_len(attention.head_len));
        let parts = parts.unwrap();
        let heads = HeadPlaces {
            tokens: 1,
            rows: attention.rows,
            heads: HEADS,
            kv_heads: KV_HEADS,
            head_len: attention.head_len,
            position: attention.position,
            capacity: attention.capacity,
            gains: neighbours.then_some(HeadGains {
                gains: [&gain; 2],
                epsilon: 1e-5,
                joint: false,
            }),
            rotation: HeadRotation {
                angles: &angles,
                query_angles: 0,
                pairs,
                neighbours,
            },
            cache_type: attention.cache_type,
        };
        if in_one {
            let memory = (&queries, &cached);
            pass.place_and_attend(&x, &heads, memory, attention, &parts, &mixed)
                .unwrap();
        } else {
            pass.place(&x, &heads, &queries, &cached).unwrap();
            pass.attend((&queries, &cached), attention, &parts, &mixed)
                .unwrap();
        }
        let reading = pass.submit(Some((&mixed, len))).unwrap();
        (runtime::block_on(reading).unwrap(), cached)
    };
    let pass = StepBackend::pass(gpu).unwrap();
    let reading = pass.submit(Some((&cached, cached.len()))).unwrap();
    [mixed, runtime::block_on(reading).unwrap()]
}

#[test]
fn attention_that_places_the_next_token_is_that_of_placed_heads() {
    let (split, whole) = (pretend(false), pretend(true));
    for head_len in [16, 48, 80, 112, 256] {
        // The key and the value of the token itself are not rounded as those of the cache.
        let kinds = [
            (CacheType::F32, TOLERANCE),
            (CacheType::F16, 1e-3),
            (CacheType::Q8_0, 1e-2),
        ];
        for (kind, tolerance) in kinds {
            for (position, capacity, window) in NEXT_SHAPES {
                let attention = attention(head_len, kind, (1, position, capacity, window));
                let x = noise((HEADS + 2 * KV_HEADS) * head_len, 3);
                let gain = noise(head_len, 4);
                let cached = words(kind, head_len, 2 * KV_HEADS * capacity);
                for rotation in [(head_len / 2, false), (head_len / 4, true)] {
                    let of = |gpu, in_one| {
                        attended_next(gpu, [&x, &gain, &cached], &attention, rotation, in_one)
                    };
                    let [wanted, cache] = of(&whole, false);
                    for gpu in [&split, &whole] {
                        let [results, written] = of(gpu, true);
                        let what = format!("{kind:?}, {head_len}, {position}, {rotation:?}");
                        compare_within(tolerance, &what, &results, &wanted);
                        let bits = |values: &[f32]| values.iter().map(|x| x.to_bits()).collect();
                        let [written, cache]: [Vec<_>; 2] = [&written, &cache].map(|x| bits(x));
                        assert!(written == cache, "{what}: the cache");
                    }
                }
            }
        }
    }
}

fn compare(what: &str, results: &[f32], wanted: &[f32]) {
    compare_within(TOLERANCE, what, results, wanted);
}

fn compare_within(tolerance: f32, what: &str, results: &[f32], wanted: &[f32]) {
    for (i, (is, wanted)) in results.iter().zip(wanted).enumerate() {
        let is_near = (is - wanted).abs() <= tolerance;
        assert!(is_near, "{what}, {i}: {is}, not {wanted}");
    }
}
