//! Reductions along one axis.

use super::InstructionSet;
use super::functions::{Maximum, Minimum};
use super::ranking::is_above;
use super::reduce::{argmax, fold, mean, sum};
use super::threads::share_out;
use crate::error::Result;
use crate::ops::{AxisFold, ReduceAxis};

/// Columns that are reduced together.
const COLUMNS: usize = 256;

/// Reduces the middle axis of `outer × len × inner` elements.
pub(super) fn reduce_axis(
    isa: InstructionSet,
    pieces: usize,
    options: &ReduceAxis,
    x: &[f32],
    out: &mut [f32],
) -> Result<()> {
    let ReduceAxis {
        fold, len, inner, ..
    } = *options;
    if inner == 1 {
        return share_out(pieces, 1, out, |at, out| {
            for (out, row) in out.iter_mut().zip(at..) {
                *out = of_row(isa, fold, &x[row * len..][..len]);
            }
            Ok(())
        });
    }
    share_out(pieces, 1, out, |at, out| {
        let mut done = 0;
        while done < out.len() {
            let (plane, column) = ((at + done) / inner, (at + done) % inner);
            let count = COLUMNS.min(inner - column).min(out.len() - done);
            let rows = (0..len).map(|row| &x[(plane * len + row) * inner + column..][..count]);
            columns(fold, rows, &mut out[done..done + count]);
            done += count;
        }
        Ok(())
    })
}

fn of_row(isa: InstructionSet, which: AxisFold, row: &[f32]) -> f32 {
    match which {
        AxisFold::Sum => sum(isa, row),
        AxisFold::Mean => mean(isa, row),
        AxisFold::Max => fold(isa, Maximum, row),
        AxisFold::Min => fold(isa, Minimum, row),
        AxisFold::Argmax => argmax(isa, row) as f32,
        AxisFold::Argmin => first_smallest(row) as f32,
    }
}

/// The index of the first NaN or, without any, of the first smallest element.
fn first_smallest(row: &[f32]) -> usize {
    let mut best = 0;
    for (i, value) in row.iter().enumerate() {
        if is_above(-value, Some(-row[best])) {
            best = i;
        }
    }
    best
}

/// Reduces at most [`COLUMNS`] columns, row by row.
fn columns<'a>(which: AxisFold, rows: impl ExactSizeIterator<Item = &'a [f32]>, out: &mut [f32]) {
    match which {
        AxisFold::Sum => sums(rows, 1.0, out),
        AxisFold::Mean => {
            let len = rows.len() as f64;
            sums(rows, len, out);
        }
        AxisFold::Max => extremes(rows, 1.0, out),
        AxisFold::Min => extremes(rows, -1.0, out),
        AxisFold::Argmax => indices(rows, 1.0, out),
        AxisFold::Argmin => indices(rows, -1.0, out),
    }
}

/// The sums of columns in `f64`, divided by `divisor`.
fn sums<'a>(rows: impl Iterator<Item = &'a [f32]>, divisor: f64, out: &mut [f32]) {
    let mut sums = [0.0; COLUMNS];
    for row in rows {
        for (sum, &value) in sums.iter_mut().zip(row) {
            *sum += f64::from(value);
        }
    }
    for (out, sum) in out.iter_mut().zip(sums) {
        *out = (sum / divisor) as f32;
    }
}

/// The largest elements of columns times `sign`, which is 1 or −1.
fn extremes<'a>(rows: impl Iterator<Item = &'a [f32]>, sign: f32, out: &mut [f32]) {
    out.fill(f32::NEG_INFINITY);
    for row in rows {
        for (best, &value) in out.iter_mut().zip(row) {
            let value = sign * value;
            // A NaN stays: nothing is above it.
            *best = if value > *best || value.is_nan() {
                value
            } else {
                *best
            };
        }
    }
    for best in out {
        *best *= sign;
    }
}

/// The indices of the largest elements of columns times `sign`, which is 1 or −1.
fn indices<'a>(rows: impl Iterator<Item = &'a [f32]>, sign: f32, out: &mut [f32]) {
    let mut best = [f32::NEG_INFINITY; COLUMNS];
    out.fill(0.0);
    for (i, row) in rows.enumerate() {
        for ((best, index), &value) in best.iter_mut().zip(out.iter_mut()).zip(row) {
            if is_above(sign * value, Some(*best)) {
                (*best, *index) = (sign * value, i as f32);
            }
        }
    }
}
