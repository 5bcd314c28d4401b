//! Elements by index, and sums of rows with one index.

use super::threads::share_out;
use crate::error::Result;
use crate::ops::indices::position;

/// Copies the row of a `rows × cols` table for each index. An invalid index gives NaN.
pub(super) fn gather_rows(
    pieces: usize,
    [table, indices]: [&[f32]; 2],
    [rows, cols]: [usize; 2],
    out: &mut [f32],
) -> Result<()> {
    if out.is_empty() {
        return Ok(());
    }
    share_out(pieces, cols, out, |at, out| {
        let gathered = out.chunks_exact_mut(cols).zip(&indices[at / cols..]);
        for (row, &index) in gathered {
            match position(index, rows) {
                Some(place) => row.copy_from_slice(&table[place * cols..][..cols]),
                None => row.fill(f32::NAN),
            }
        }
        Ok(())
    })
}

/// Adds each row of `x` to the row of the result that its index names. An invalid index adds nothing.
pub(super) fn scatter_rows(
    pieces: usize,
    [x, indices]: [&[f32]; 2],
    [rows, cols]: [usize; 2],
    out: &mut [f32],
) -> Result<()> {
    if out.is_empty() {
        return Ok(());
    }
    share_out(pieces, cols, out, |at, out| {
        out.fill(0.0);
        for (row, &index) in x.chunks_exact(cols).zip(indices) {
            let place = position(index, rows).and_then(|place| (place * cols).checked_sub(at));
            let sums = place.and_then(|place| out.get_mut(place..place + cols));
            for (sum, x) in sums.into_iter().flatten().zip(row) {
                *sum += x;
            }
        }
        Ok(())
    })
}

/// Copies `k` elements of each row by their indices within the row. An invalid index gives NaN.
pub(super) fn take_along_rows(
    pieces: usize,
    [x, indices]: [&[f32]; 2],
    [cols, k]: [usize; 2],
    out: &mut [f32],
) -> Result<()> {
    share_out(pieces, k.max(1), out, |at, out| {
        let indices = indices[at..].chunks(k.max(1));
        for ((out, indices), row) in out.chunks_mut(k.max(1)).zip(indices).zip(at / k.max(1)..) {
            let row = &x[row * cols..][..cols];
            for (out, &index) in out.iter_mut().zip(indices) {
                *out = position(index, cols).map_or(f32::NAN, |place| row[place]);
            }
        }
        Ok(())
    })
}
