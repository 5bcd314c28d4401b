//! Reductions along one axis.

mod columns;

use super::InstructionSet;
use super::functions::{Maximum, Minimum};
use super::reduce::{argmax, fold, mean, sum};
use super::threads::share_out;
use super::transpose::transpose;
use crate::error::Result;
use crate::ops::{AxisFold, ReduceAxis};
use columns::{COLUMNS, Columns};

/// The length of the longest rows that are reduced side by side. Along a short row most lanes would be
/// empty, and entering a kernel would take longer than its elements.
const SHORT: usize = 32;

/// The number of rows that are transposed at a time: all of their elements stay in a first-level cache.
const GROUP: usize = 64;

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
        return reduce_rows(isa, pieces, fold, x, len, out);
    }
    share_out(pieces, 1, out, |at, out| {
        let mut done = 0;
        while done < out.len() {
            let (plane, column) = ((at + done) / inner, (at + done) % inner);
            let count = COLUMNS.min(inner - column).min(out.len() - done);
            let start = plane * len * inner + column;
            let end = (start + len * inner + count).saturating_sub(inner);
            let columns = Columns {
                // Without rows there is no last one that ends there.
                x: if len == 0 { &[] } else { &x[start..end] },
                stride: inner,
                width: count,
            };
            columns.reduce(isa, fold, &mut out[done..done + count]);
            done += count;
        }
        Ok(())
    })
}

/// Reduces each row of `len` elements; `len` must not be 0.
pub(super) fn reduce_rows(
    isa: InstructionSet,
    pieces: usize,
    fold: AxisFold,
    x: &[f32],
    len: usize,
    out: &mut [f32],
) -> Result<()> {
    share_out(pieces, 1, out, |at, out| {
        let x = &x[at * len..][..out.len() * len];
        if (1..=SHORT).contains(&len) && out.len() > 1 {
            short_rows(isa, fold, x, len, out);
            return Ok(());
        }
        for (row, out) in out.iter_mut().enumerate() {
            *out = of_row(isa, fold, &x[row * len..][..len]);
        }
        Ok(())
    })
}

/// Transposes groups of rows, and reduces their columns.
fn short_rows(isa: InstructionSet, fold: AxisFold, x: &[f32], len: usize, out: &mut [f32]) {
    let mut memory = [0.0; GROUP * SHORT];
    for (out, x) in out.chunks_mut(GROUP).zip(x.chunks(GROUP * len)) {
        let (rows, turned) = (out.len(), &mut memory[..x.len()]);
        transpose(isa, x, turned, rows, len);
        let columns = Columns {
            x: turned,
            stride: rows,
            width: rows,
        };
        columns.reduce(isa, fold, out);
    }
}

fn of_row(isa: InstructionSet, which: AxisFold, row: &[f32]) -> f32 {
    match which {
        AxisFold::Sum => sum(isa, row),
        AxisFold::Mean => mean(isa, row),
        AxisFold::Max => fold(isa, Maximum, row),
        AxisFold::Min => fold(isa, Minimum, row),
        AxisFold::Argmax => argmax(isa, row) as f32,
        AxisFold::Argmin => {
            let (x, stride, width) = (row, 1, 1);
            Columns { x, stride, width }.index(-1.0, 0) as f32
        }
    }
}
