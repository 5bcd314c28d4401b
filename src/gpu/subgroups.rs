//! Matmuls by subgroups alone: an invocation reads elements of A and the others get them by
//! shuffles, so that neither workgroup memory nor barriers are needed.
//!
//! They are measured where `tune` is asked to, and chosen by no rule: NVIDIA's GPUs shuffle at the rate of their
//! workgroup memory, so that tiles there are as fast or faster; on others shuffles cost next to nothing.

use super::context::Limits;
use super::kernels::{self, Kernel};
use super::matmul::aligned;
use super::recorder::{GpuBuffer, Recorder};
use crate::error::Result;

/// A kernel whose subgroups compute a tile: some rows and 8 columns for each invocation.
struct Family {
    rows: usize,
    aligned: &'static Kernel,
    any: &'static Kernel,
}

const COLUMNS: usize = 8;
/// The number of invocations of a workgroup.
const WORKGROUP: usize = 64;
/// The least number of invocations of a subgroup.
const LEAST: usize = 8;

/// More rows take fewer reads, and more registers.
static FAMILIES: [Family; 2] = [
    Family {
        rows: 8,
        aligned: &kernels::MATMUL_SUBGROUPS_8,
        any: &kernels::MATMUL_SUBGROUPS_8_ANY,
    },
    Family {
        rows: 16,
        aligned: &kernels::MATMUL_SUBGROUPS_16,
        any: &kernels::MATMUL_SUBGROUPS_16_ANY,
    },
];

/// Returns the names of the kernels that an adapter can run.
pub(super) fn candidates(limits: &Limits) -> impl Iterator<Item = &'static str> {
    let families = FAMILIES.iter().filter(|_| fit(limits, WORKGROUP));
    families.map(|family| family.aligned.name)
}

/// Returns whether an adapter supports workgroups of this size, and subgroups that are large enough
/// and no larger than a workgroup.
pub(super) fn fit(limits: &Limits, workgroup: usize) -> bool {
    let [least, most] = limits.usable_subgroups();
    least >= LEAST && most <= workgroup && workgroup <= limits.invocations
}

/// Returns the number of workgroups of `workgroup` invocations that have at least `subgroups`
/// subgroups. If a driver chooses the subgroup size, it is a power of two; smaller subgroups are
/// only more numerous.
pub(super) fn workgroups(limits: &Limits, subgroups: usize, workgroup: usize) -> usize {
    let [_, most] = limits.subgroups;
    (subgroups * most).div_ceil(workgroup)
}

/// Records a product by the family of that name, if it is one here.
pub(super) fn by(
    name: &str,
    recorder: &mut Recorder<'_>,
    operands: [&GpuBuffer; 2],
    c: &GpuBuffer,
    [m, k, n]: [usize; 3],
) -> Result<bool> {
    let family = FAMILIES.iter().find(|family| family.aligned.name == name);
    let limits = &recorder.gpu.limits;
    let Some(family) = family.filter(|_| fit(limits, WORKGROUP)) else {
        return Ok(false);
    };
    let kernel = aligned(k | n, family.aligned, family.any);
    let [_, most] = limits.subgroups;
    let tiles = m.div_ceil(family.rows) * n.div_ceil(COLUMNS * most);
    let workgroups = workgroups(limits, tiles, WORKGROUP);
    let params = [m, k, n].map(|dim| dim as u32);
    recorder.dispatch(kernel, &params, &operands, c, workgroups)?;
    Ok(true)
}
