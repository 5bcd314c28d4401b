//! Oracles of the operations on axes.

use super::{Expected, argmax, extreme, mean, sum, wide};
use crate::ops::{AxisFold, Rearrange, ReduceAxis};

/// Counts through the elements of the result in order.
pub(super) fn rearrange(x: &[f32], options: &Rearrange) -> Vec<Expected> {
    if options.shape.contains(&0) {
        return Vec::new();
    }
    let len: usize = options.shape.iter().product();
    let at = |mut i: usize| {
        let mut place = options.offset as i128;
        for (&size, &stride) in options.shape.iter().zip(&options.strides).rev() {
            place += (i % size) as i128 * stride as i128;
            i /= size;
        }
        Expected::exact(wide(x[place as usize]))
    };
    (0..len).map(at).collect()
}

pub(super) fn reduce_axis(x: &[f32], options: &ReduceAxis) -> Vec<Expected> {
    let ReduceAxis { len, inner, .. } = *options;
    let at = |i: usize| {
        let start = i / inner * len * inner + i % inner;
        let along: Vec<f32> = (0..len).map(|step| x[start + step * inner]).collect();
        let negated = || along.iter().map(|value| -value).collect::<Vec<f32>>();
        match options.fold {
            AxisFold::Sum => sum(along.iter().copied().map(wide)),
            AxisFold::Mean => mean(&along),
            AxisFold::Max => extreme(&along, f64::max),
            AxisFold::Min => extreme(&along, f64::min),
            AxisFold::Argmax => argmax(&along),
            AxisFold::Argmin => argmax(&negated()),
        }
    };
    let results = if inner == 0 { 0 } else { options.outer };
    (0..results * inner).map(at).collect()
}

pub(super) fn concat_rows([a, b]: [&[f32]; 2], [a_cols, b_cols]: [usize; 2]) -> Vec<Expected> {
    let at = |i: usize| {
        let cols = a_cols + b_cols;
        let (row, col) = (i / cols, i % cols);
        Expected::exact(wide(match col.checked_sub(a_cols) {
            None => a[row * a_cols + col],
            Some(col) => b[row * b_cols + col],
        }))
    };
    (0..a.len() + b.len()).map(at).collect()
}
