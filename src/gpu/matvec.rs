//! Products with a vector, which are as fast as the matrix can be read.

use super::kernels;
use super::matmul::aligned;
use super::recorder::{GpuBuffer, Recorder};
use crate::error::Result;

/// Depths from which a row of A, and values from which B, keep a workgroup busy as vectors.
const LONG_ROW: usize = 64;
const MANY_VALUES: usize = 1 << 16;
/// Columns of a workgroup of `matvec_cols`, the workgroups that keep a GPU busy there, and the
/// least depths for each.
const COLUMNS: usize = 128;
const ENOUGH_SLICES: usize = 1024;
const LEAST_SLICE: usize = 64;

/// Whether these kernels are for a product of this shape, whose `k` is not 0.
pub(super) fn suits([m, k, n]: [usize; 3]) -> bool {
    (n == 1 && k >= LONG_ROW) || (m == 1 && k * n >= MANY_VALUES)
}

/// Records the dispatches of a product that suits.
pub(super) fn matvec(
    recorder: &mut Recorder<'_>,
    [a, b]: [&GpuBuffer; 2],
    c: &GpuBuffer,
    [m, k, n]: [usize; 3],
) -> Result<()> {
    if n > 1 {
        return row_times(recorder, [a, b], c, [k, n]);
    }
    let kernel = aligned(k, &kernels::MATVEC_ROWS, &kernels::MATVEC_ROWS_ANY);
    recorder.dispatch(kernel, &[m as u32, k as u32], &[a, b], c, m)
}

/// A single row times B, whose depth is divided among workgroups until they are enough.
fn row_times(
    recorder: &mut Recorder<'_>,
    [a, b]: [&GpuBuffer; 2],
    c: &GpuBuffer,
    [k, n]: [usize; 2],
) -> Result<()> {
    let kernel = aligned(n, &kernels::MATVEC_COLS, &kernels::MATVEC_COLS_ANY);
    let across = n.div_ceil(COLUMNS);
    let slices = ENOUGH_SLICES.div_ceil(across).min(k.div_ceil(LEAST_SLICE));
    let slice = k.div_ceil(slices);
    let slices = k.div_ceil(slice);
    let params = |m: usize, k: usize, slice: usize, ones: usize| {
        [m, k, n, across, slice, ones].map(|dim| dim as u32)
    };
    let first = params(slices, k, slice, 0);
    if slices == 1 {
        return recorder.dispatch(kernel, &first, &[a, b], c, across);
    }
    let sums = recorder.allocate(slices * n)?;
    recorder.dispatch(kernel, &first, &[a, b], &sums, across * slices)?;
    let second = params(1, slices, slices, 1);
    recorder.dispatch(kernel, &second, &[a, &sums], c, across)
}
