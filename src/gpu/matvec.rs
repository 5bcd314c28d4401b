//! Matrix-vector products, which are bound by the bandwidth of reading the matrix.

use super::context::Limits;
use super::kernels;
use super::matmul::aligned;
use super::recorder::{GpuBuffer, Recorder};
use super::subgroups;
use crate::error::Result;

/// The least length with which a row of `A`, as vectors, keeps a workgroup busy.
const LONG_ROW: usize = 64;
/// The least number of values with which `B` does.
const MANY_VALUES: usize = 1 << 16;
/// The values of `k` for which a subgroup computes a row, and not a workgroup, if the adapter has
/// subgroups. On an H200, matrices of one size took a fifth of the time with rows of 64, a quarter
/// with 256, the same with 2,048, and a sixth more with 4,096; rows of 16 took as long as with
/// tiles.
const SHORT_ROWS: std::ops::RangeInclusive<usize> = 16..=1024;
/// The number of columns of a workgroup of `matvec_cols`.
const COLUMNS: usize = 128;
/// The least depth for each of its workgroups.
const LEAST_SLICE: usize = 64;
/// The number of invocations of a workgroup of `matvec_subgroups`.
const WORKGROUP: usize = 256;
/// The number of rows of each subgroup of `matvec_subgroups`.
const ROWS: usize = 2;

/// The splits of a row times B, by name: the number of workgroups to aim for. The first is the
/// default.
static SPLITS: [(&str, usize); 3] = [
    ("matvec_cols", 1024),
    ("matvec_cols_256", 256),
    ("matvec_cols_4096", 4096),
];

/// Returns whether these kernels suit a product of this shape, whose `k` is not 0.
pub(super) fn suits(limits: &Limits, [m, k, n]: [usize; 3]) -> bool {
    let column = k >= LONG_ROW || is_short(limits, k);
    (n == 1 && column) || (m == 1 && k * n >= MANY_VALUES)
}

/// Returns whether a subgroup computes a row of A.
fn is_short(limits: &Limits, k: usize) -> bool {
    SHORT_ROWS.contains(&k) && subgroups::fit(limits, WORKGROUP)
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
    let by_subgroups = is_short(&recorder.gpu.limits, k);
    times_column(recorder, [a, b], c, [m, k], by_subgroups)
}

/// Returns the names of the kernels for a product of this shape.
pub(super) fn candidates(
    limits: &Limits,
    [m, k, n]: [usize; 3],
) -> impl Iterator<Item = &'static str> {
    let by_subgroups = subgroups::fit(limits, WORKGROUP).then_some(kernels::MATVEC_SUBGROUPS.name);
    let for_column = by_subgroups.into_iter().chain([kernels::MATVEC_ROWS.name]);
    let for_row = SPLITS.iter().map(|&(name, _)| name);
    let suits = suits(limits, [m, k, n]);
    let for_column = for_column.filter(move |_| suits && n == 1);
    for_column.chain(for_row.filter(move |_| suits && n > 1))
}

/// Records a product by the candidate of that name, if it exists.
pub(super) fn by(
    name: &str,
    recorder: &mut Recorder<'_>,
    [a, b]: [&GpuBuffer; 2],
    c: &GpuBuffer,
    [m, k, n]: [usize; 3],
) -> Result<bool> {
    if !candidates(&recorder.gpu.limits, [m, k, n]).any(|other| other == name) {
        return Ok(false);
    }
    let by_subgroups = name == kernels::MATVEC_SUBGROUPS.name;
    match SPLITS.iter().find(|(split, _)| *split == name) {
        Some(&(_, enough)) => row_times(recorder, [a, b], c, [k, n], enough)?,
        None => times_column(recorder, [a, b], c, [m, k], by_subgroups)?,
    }
    Ok(true)
}

/// A times a single column, by subgroups or by workgroups for its rows.
fn times_column(
    recorder: &mut Recorder<'_>,
    operands: [&GpuBuffer; 2],
    c: &GpuBuffer,
    [m, k]: [usize; 2],
    by_subgroups: bool,
) -> Result<()> {
    let (kernel, workgroups) = if by_subgroups {
        let kernel = aligned(
            k,
            &kernels::MATVEC_SUBGROUPS,
            &kernels::MATVEC_SUBGROUPS_ANY,
        );
        let subgroups = m.div_ceil(ROWS);
        let limits = &recorder.gpu.limits;
        (kernel, subgroups::workgroups(limits, subgroups, WORKGROUP))
    } else {
        (
            aligned(k, &kernels::MATVEC_ROWS, &kernels::MATVEC_ROWS_ANY),
            m,
        )
    };
    recorder.dispatch(kernel, &[m as u32, k as u32], &operands, c, workgroups)
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
