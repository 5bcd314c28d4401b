//! Oracles of the operations that language models consist of.

use super::{Expected, wide};
use crate::ops::{Attention, Rope};

pub(super) fn gather_rows(
    table: &[f32],
    indices: &[f32],
    [rows, cols]: [usize; 2],
) -> Vec<Expected> {
    let element = |index: f32, col: usize| {
        let row = (0..rows).find(|&row| row as f64 == wide(index));
        Expected::exact(row.map_or(f64::NAN, |row| wide(table[row * cols + col])))
    };
    let of_row = |&index: &f32| (0..cols).map(move |col| element(index, col));
    indices.iter().flat_map(of_row).collect()
}

pub(super) fn take_along_rows(x: &[f32], indices: &[f32], [cols, k]: [usize; 2]) -> Vec<Expected> {
    let element = |(i, &index): (usize, &f32)| {
        let col = (0..cols).find(|&col| col as f64 == wide(index));
        Expected::exact(col.map_or(f64::NAN, |col| wide(x[i / k * cols + col])))
    };
    indices.iter().enumerate().map(element).collect()
}

/// The indices of a sorted row.
pub(super) fn top_k(row: &[f32], k: usize) -> Vec<Expected> {
    let mut indices: Vec<usize> = (0..row.len()).collect();
    // The sort is stable. −0 equals 0, and NaN is the largest.
    let key = |index: &usize| {
        if row[*index].is_nan() {
            f64::INFINITY
        } else {
            wide(row[*index]).clamp(-1e300, 1e300)
        }
    };
    indices.sort_by(|a, b| {
        key(b)
            .partial_cmp(&key(a))
            .unwrap_or(std::cmp::Ordering::Equal)
    });
    let exact = |&index: &usize| Expected::new(index as f64, 0.0);
    indices.iter().take(k).map(exact).collect()
}

/// An element of a pair, whose other one is as far from the right place as it is long.
pub(super) fn rope(x: &[f32], options: &Rope) -> Vec<Expected> {
    let pairs = options.rotated / 2;
    let at = |i: usize| {
        let (token, place) = (i / (options.heads * options.head_len), i % options.head_len);
        if place >= options.rotated {
            return Expected::exact(wide(x[i]));
        }
        let (pair, second, stride) = if options.interleaved {
            (place / 2, place % 2 == 1, 1)
        } else {
            (place % pairs, place >= pairs, pairs)
        };
        let exponent = 2.0 * pair as f64 / options.rotated as f64;
        let factor = options
            .factors
            .as_ref()
            .map_or(1.0, |factors| factors[pair]);
        let position = (options.first + token) as f64;
        let angle = position / wide(options.base).powf(exponent) / wide(factor);
        let other = wide(x[if second { i - stride } else { i + stride }]);
        let sine = if second { angle.sin() } else { -angle.sin() };
        let value = wide(x[i]) * angle.cos() + other * sine;
        Expected::new(value, wide(x[i]).abs() + other.abs())
    };
    (0..x.len()).map(at).collect()
}

/// The scores of one token's head, each with the sum of its terms' magnitudes, which bounds the error.
fn scores(query: &[f32], keys: &[&[f32]], options: &Attention) -> Vec<[f64; 2]> {
    let scale = wide(options.scale);
    let score = |key: &&[f32]| {
        let terms = query.iter().zip(*key).map(|(&q, &k)| wide(q) * wide(k));
        let magnitude = terms.clone().map(f64::abs).sum::<f64>() * scale.abs();
        let score = terms.sum::<f64>() * scale;
        let capped = options.soft_cap.map(wide);
        let capped = capped.map_or(score, |cap| cap * (score / cap).tanh());
        [capped, magnitude]
    };
    keys.iter().map(score).collect()
}

/// Returns a weighted mean of values. An absolute error of a score, or of its distance from the largest score, is a
/// relative error of its weight.
pub(super) fn attention(inputs: &[&[f32]], options: &Attention) -> Vec<Expected> {
    // The counts beside a zero may be of any size.
    if inputs[0].is_empty() {
        return Vec::new();
    }
    let len = options.head_len;
    let stride = options.kv_heads * len;
    let head = |index: usize| {
        let (token, head) = (index / options.heads, index % options.heads);
        let column = head / (options.heads / options.kv_heads) * len;
        let visible = options.visible(token);
        let rows = |input: usize| {
            let start = |position: usize| position * stride + column;
            let row = |position| &inputs[input][start(position)..][..len];
            visible.clone().map(row).collect::<Vec<&[f32]>>()
        };
        let (keys, values) = (rows(1), rows(2));
        let scores = scores(&inputs[0][index * len..][..len], &keys, options);
        let largest = scores.iter().map(|score| score[0]);
        let largest = largest.fold(f64::NEG_INFINITY, f64::max);
        let weights: Vec<[f64; 2]> = scores
            .iter()
            .map(|[score, magnitude]| {
                let distance = largest - score;
                [(-distance).exp(), 1.0 + distance + magnitude]
            })
            .collect();
        let total: f64 = weights.iter().map(|weight| weight[0]).sum();
        // A weight may count as zero where it is no normal number.
        let flushed = f64::from(f32::MIN_POSITIVE) / f64::from(f32::EPSILON);
        // The sum of weights has the errors of all.
        let amplified = weights.iter().map(|[weight, error]| weight * error);
        let common = amplified.sum::<f64>() / total;
        let element = |i: usize| {
            let terms = weights.iter().zip(&values);
            let (mut value, mut magnitude) = (0.0, 0.0);
            for ([weight, error], row) in terms {
                let share = weight / total;
                value += share * wide(row[i]);
                magnitude += (share * (error + common) + flushed) * wide(row[i]).abs();
            }
            Expected::new(value, magnitude)
        };
        (0..len).map(element).collect::<Vec<_>>()
    };
    (0..options.tokens * options.heads).flat_map(head).collect()
}
