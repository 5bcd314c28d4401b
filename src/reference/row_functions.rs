//! Oracles of cumulative sums, orders, sums by index and Fourier transforms of rows.

use std::f64::consts::TAU;

use crate::reference::{Expected, wide};

/// Cumulative sums or products. A product has one rounding for each factor.
pub(super) fn scan(x: &[f32], cols: usize, is_product: bool) -> Vec<Expected> {
    let of_row = |row: &[f32]| {
        let (mut total, mut magnitude) = (if is_product { 1.0 } else { 0.0 }, 0.0);
        let each = row.iter().enumerate().map(|(at, &x)| {
            if is_product {
                total *= wide(x);
                return Expected::new(total, total.abs() * (1.0 + at as f64 / 8.0));
            }
            total += wide(x);
            magnitude += wide(x).abs();
            Expected::new(total, magnitude)
        });
        each.collect::<Vec<_>>()
    };
    x.chunks(cols.max(1)).flat_map(of_row).collect()
}

/// The elements of each row in ascending order, NaN last.
pub(super) fn sort(x: &[f32], cols: usize) -> Vec<Expected> {
    let rows = x.chunks(cols.max(1));
    let of_row = |row: &[f32]| {
        let order = argsort(row, cols).into_iter();
        let elements = order.map(|index| Expected::exact(wide(row[index.value as usize])));
        elements.collect::<Vec<_>>()
    };
    rows.flat_map(of_row).collect()
}

/// The indices of each row in ascending order, NaN last.
pub(super) fn argsort(x: &[f32], cols: usize) -> Vec<Expected> {
    let of_row = |row: &[f32]| {
        let mut order: Vec<usize> = (0..row.len()).collect();
        order.sort_by(|&a, &b| {
            let both = row[a].partial_cmp(&row[b]);
            both.unwrap_or_else(|| row[a].is_nan().cmp(&row[b].is_nan()))
        });
        let indices = order.into_iter();
        indices
            .map(|index| Expected::exact(index as f64))
            .collect::<Vec<_>>()
    };
    x.chunks(cols.max(1)).flat_map(of_row).collect()
}

/// Sums of the rows that have the same index.
pub(super) fn scatter([x, indices]: [&[f32]; 2], [rows, cols]: [usize; 2]) -> Vec<Expected> {
    let element = |row: usize, col: usize| {
        let own = (0..indices.len()).filter(|&at| wide(indices[at]) == row as f64);
        let terms: Vec<f64> = own.map(|at| wide(x[at * cols + col])).collect();
        let magnitude = terms.iter().map(|x| x.abs()).sum();
        Expected::new(terms.iter().sum(), magnitude)
    };
    let of_row = |row: usize| (0..cols).map(move |col| element(row, col));
    // The number of rows beside no columns may be of any size.
    let rows = if cols == 0 { 0 } else { rows };
    (0..rows).flat_map(of_row).collect()
}

/// Fourier transforms from their definition. The error of a result is relative to the root of the sum of squares.
pub(super) fn fft(x: &[f32], len: usize) -> Vec<Expected> {
    let roots = (0..len).map(|k| (-TAU * k as f64 / len as f64).sin_cos());
    let roots: Vec<(f64, f64)> = roots.collect();
    let of_row = |row: &[f32]| {
        let element = |k: usize| {
            let mut sums = [0.0; 2];
            for (j, pair) in row.chunks_exact(2).enumerate() {
                let (sin, cos) = roots[j * k % len];
                let [re, im] = [wide(pair[0]), wide(pair[1])];
                sums[0] += re * cos - im * sin;
                sums[1] += re * sin + im * cos;
            }
            sums
        };
        let squares: f64 = row.iter().map(|&x| wide(x) * wide(x)).sum();
        let magnitude = squares.sqrt();
        let results = (0..len).flat_map(element);
        let expected = results.map(|value| Expected::new(value, magnitude.max(value.abs())));
        expected.collect::<Vec<_>>()
    };
    x.chunks(2 * len.max(1)).flat_map(of_row).collect()
}
