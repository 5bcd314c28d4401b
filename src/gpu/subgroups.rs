//! Products by subgroups alone: what an invocation read of A the others get by shuffles, so that there is
//! neither workgroup memory nor a barrier.
//!
//! They are measured where `tune` is asked to, and chosen by no rule: NVIDIA's GPUs shuffle at the rate of their
//! workgroup memory, so that tiles there are as fast or faster; on others shuffles cost next to nothing.

use super::context::Limits;
use super::kernels::{self, Kernel};
use super::matmul::aligned;
use super::recorder::{GpuBuffer, Recorder};
use crate::error::Result;

/// What a subgroup computes: a tile of some rows and, for each of its invocations, 8 columns.
struct Family {
    rows: usize,
    aligned: &'static Kernel,
    any: &'static Kernel,
}

const COLUMNS: usize = 8;
/// Invocations of a workgroup; the least and the most of a subgroup.
const WORKGROUP: usize = 64;
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

/// The names of those that an adapter can run.
pub(super) fn candidates(limits: &Limits) -> impl Iterator<Item = &'static str> {
    let families = FAMILIES.iter().filter(|_| fits(limits));
    families.map(|family| family.aligned.name)
}

/// Whether an adapter has subgroups, none of which are too small or do not fill a workgroup.
fn fits(limits: &Limits) -> bool {
    let [least, most] = limits.subgroups;
    least >= LEAST && most <= WORKGROUP && limits.invocations >= WORKGROUP
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
    let Some(family) = family.filter(|_| fits(&recorder.gpu.limits)) else {
        return Ok(false);
    };
    let kernel = aligned(k | n, family.aligned, family.any);
    // Where a driver chooses the size it is a power of two, and smaller ones need no more invocations.
    let [_, largest] = recorder.gpu.limits.subgroups;
    let tiles = m.div_ceil(family.rows) * n.div_ceil(COLUMNS * largest);
    let workgroups = (tiles * largest).div_ceil(WORKGROUP);
    let params = [m, k, n].map(|dim| dim as u32);
    recorder.dispatch(kernel, &params, &operands, c, workgroups)?;
    Ok(true)
}
