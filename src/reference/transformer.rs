//! Oracles of the operations that language models consist of.

use super::{Expected, wide};
use crate::ops::Rope;

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
