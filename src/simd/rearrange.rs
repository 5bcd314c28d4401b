//! Strided views, and rows that are joined.

use super::threads::share_out;
use crate::error::Result;
use crate::ops::Rearrange;
use crate::ops::axes::Axis;

/// The number of rows of a tile: as many values as a cache line has, so that each line of a transposed input is read
/// once.
const TILE: usize = 16;

/// Copies the elements of a view in its order.
pub(super) fn rearrange(
    pieces: usize,
    options: &Rearrange,
    x: &[f32],
    out: &mut [f32],
) -> Result<()> {
    let axes = options.merged();
    let (inner, outer) = axes
        .split_last()
        .unwrap_or((&Axis { len: 1, stride: 1 }, &[]));
    let (cols, step) = (inner.len, inner.stride);
    // Rows that lie side by side in `x` are read together.
    let tile = match outer.last() {
        Some(&Axis { len, stride: 1 }) if step > 1 => len.min(TILE),
        _ => 1,
    };
    let start = |row: usize| place(options.offset, outer, row);
    share_out(pieces, cols.max(1), out, |at, out| {
        let mut rows = out.chunks_mut(cols.max(1));
        let mut row = at / cols.max(1);
        while rows.len() > 0 {
            let within = outer.last().map_or(1, |axis| axis.len - row % axis.len);
            let count = tile.min(within).min(rows.len());
            if count == 1 {
                rows.next()
                    .into_iter()
                    .for_each(|out| copy(x, start(row), step, out));
            } else {
                let tile: Vec<&mut [f32]> = rows.by_ref().take(count).collect();
                copy_side_by_side(x, start(row), step, tile);
            }
            row += count;
        }
        Ok(())
    })
}

/// Returns the index in `x` of the first element of a row.
fn place(offset: usize, outer: &[Axis], mut row: usize) -> usize {
    let mut place = offset;
    for axis in outer.iter().rev() {
        place = place.wrapping_add_signed((row % axis.len) as isize * axis.stride);
        row /= axis.len;
    }
    place
}

/// Copies the elements from `start` on, `step` apart.
fn copy(x: &[f32], start: usize, step: isize, out: &mut [f32]) {
    match step {
        1 => out.copy_from_slice(&x[start..][..out.len()]),
        0 => out.fill(x[start]),
        _ => {
            for (i, out) in out.iter_mut().enumerate() {
                *out = x[start.wrapping_add_signed(i as isize * step)];
            }
        }
    }
}

/// Copies rows whose first elements are neighbours in `x`, and whose elements are `step` apart.
fn copy_side_by_side(x: &[f32], start: usize, step: isize, mut rows: Vec<&mut [f32]>) {
    let (cols, count) = (rows[0].len(), rows.len());
    for col in 0..cols {
        let values = &x[start.wrapping_add_signed(col as isize * step)..][..count];
        for (row, &value) in rows.iter_mut().zip(values) {
            row[col] = value;
        }
    }
}

/// Joins the rows of two matrices.
pub(super) fn concat_rows(
    pieces: usize,
    [a, b]: [&[f32]; 2],
    [a_cols, b_cols]: [usize; 2],
    out: &mut [f32],
) -> Result<()> {
    // Columns of no rows may be of any number.
    if out.is_empty() {
        return Ok(());
    }
    let cols = a_cols + b_cols;
    share_out(pieces, cols, out, |at, out| {
        for (out, row) in out.chunks_mut(cols).zip(at / cols..) {
            let (of_a, of_b) = out.split_at_mut(a_cols);
            of_a.copy_from_slice(&a[row * a_cols..][..a_cols]);
            of_b.copy_from_slice(&b[row * b_cols..][..b_cols]);
        }
        Ok(())
    })
}
