//! Products with a vector, which are as fast as the matrix can be read.

use super::kernels;
use super::matmul::aligned;
use super::recorder::{GpuBuffer, Recorder};
use crate::error::Result;

/// Depths from which a row of A, and values from which B, keep a workgroup busy as vectors.
const LONG_ROW: usize = 64;
const MANY_VALUES: usize = 1 << 16;
/// Columns of a workgroup of `matvec_cols`, and the least depths for each.
const COLUMNS: usize = 128;
const LEAST_SLICE: usize = 64;

/// How a row times B is divided, by name: the workgroups that should keep a GPU busy. The first
/// one is the rule.
static SPLITS: [(&str, usize); 3] = [
    ("matvec_cols", 1024),
    ("matvec_cols_256", 256),
    ("matvec_cols_4096", 4096),
];

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
        let [(_, enough), ..] = SPLITS;
        return row_times(recorder, [a, b], c, [k, n], enough);
    }
    let kernel = aligned(k, &kernels::MATVEC_ROWS, &kernels::MATVEC_ROWS_ANY);
    recorder.dispatch(kernel, &[m as u32, k as u32], &[a, b], c, m)
}

/// The names of what suits a product of this shape.
pub(super) fn candidates([m, k, n]: [usize; 3]) -> impl Iterator<Item = &'static str> {
    let names = SPLITS.iter().map(|&(name, _)| name);
    let names = names.chain([kernels::MATVEC_ROWS.name]);
    let suits = suits([m, k, n]);
    names.filter(move |&name| suits && (n == 1) == (name == kernels::MATVEC_ROWS.name))
}

/// Records a product by the candidate of that name, if it is one.
pub(super) fn by(
    name: &str,
    recorder: &mut Recorder<'_>,
    [a, b]: [&GpuBuffer; 2],
    c: &GpuBuffer,
    [m, k, n]: [usize; 3],
) -> Result<bool> {
    if !candidates([m, k, n]).any(|other| other == name) {
        return Ok(false);
    }
    match SPLITS.iter().find(|(split, _)| *split == name) {
        Some(&(_, enough)) => row_times(recorder, [a, b], c, [k, n], enough)?,
        None => matvec(recorder, [a, b], c, [m, k, n])?,
    }
    Ok(true)
}

/// A single row times B, whose depth is divided among workgroups until they are enough.
fn row_times(
    recorder: &mut Recorder<'_>,
    [a, b]: [&GpuBuffer; 2],
    c: &GpuBuffer,
    [k, n]: [usize; 2],
    enough: usize,
) -> Result<()> {
    let kernel = aligned(n, &kernels::MATVEC_COLS, &kernels::MATVEC_COLS_ANY);
    let across = n.div_ceil(COLUMNS);
    let slices = enough.div_ceil(across).min(k.div_ceil(LEAST_SLICE));
    let slice = k.div_ceil(slices);
    let slices = k.div_ceil(slice);
    let params = |m: usize, k: usize, slice: usize, ones: usize| {
        [m, k, n, across, slice, ones].map(|dim| dim as u32)
    };
    let first = params(slices, k, slice, 0);
    if slices == 1 {
        return recorder.dispatch(kernel, &first, &[a, b], c, across);
    }
    let sums = recorder.temporary(slices * n)?;
    recorder.dispatch(kernel, &first, &[a, b], &sums, across * slices)?;
    let second = params(1, slices, slices, 1);
    recorder.dispatch(kernel, &second, &[a, &sums], c, across)?;
    recorder.give_back(sums);
    Ok(())
}
