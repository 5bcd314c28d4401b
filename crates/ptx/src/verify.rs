//! Checks of instructions and kernels, before text is written.
//!
//! Each instruction is checked when it is emitted: its types, operands and target against the
//! table, and the conditions of branches, loops and guards.
//!
//! Each kernel is checked when it is finished: registers are written before they are read, threads
//! that must execute an instruction together exist and all reach it, no accumulator is used while
//! tensor cores may write it, the live values fit into the registers, and shared memory and the
//! launch are within limits.

mod async_hazards;
mod bounds;
mod initialised;
mod instruction;
mod names;
mod pressure;
mod set;
mod uniform;
mod warps;

pub(super) use instruction::{accepts, condition, global_base, mistake, own};
pub(super) use pressure::estimate;

use super::error::{Error, Result};
use super::kernel::{Extent, PtxKernel};
use super::types::Target;

/// The maximum number of threads of a block.
const MAX_THREADS: u64 = 1024;
const MAX_DEEP: u64 = 64;
/// The maximum number of blocks of a cluster that every GPU with clusters supports.
const MAX_CLUSTER: u64 = 8;
/// The maximum size of static shared memory in bytes.
const MAX_STATIC_SHARED: u64 = 48 * 1024;
/// The maximum size of all parameters in bytes.
const MAX_PARAMS: u64 = 4096;

/// Checks a kernel as a whole.
pub(super) fn kernel(kernel: &PtxKernel) -> Result<()> {
    launch(kernel)?;
    limits(kernel)?;
    names::check(kernel)?;
    initialised::check(kernel)?;
    warps::check(kernel)?;
    uniform::check(kernel)?;
    async_hazards::check(kernel)?;
    pressure::check(kernel)?;
    bounds::check(kernel)
}

/// Checks that block, grid and arrays are not empty.
fn launch(kernel: &PtxKernel) -> Result<()> {
    let launch = &kernel.launch;
    let tiles = |extent: &&Extent| matches!(extent, Extent::Tiles(_, 0));
    let empty = kernel.shared.iter().find(|array| array.bytes == 0);
    let (what, value, requirement) = if launch.block.contains(&0) {
        let value = format!("{:?} threads", launch.block);
        ("block", value, "at least one thread along each axis")
    } else if launch.min_blocks == 0 {
        ("min_blocks", "0".to_owned(), "at least 1")
    } else if let Some(extent) = launch.grid.iter().find(tiles) {
        ("grid", extent.to_string(), "of tiles of at least 1")
    } else if let Some(array) = empty {
        let value = format!("`{}` of 0 bytes", array.name);
        ("shared", value, "an array of at least one value")
    } else {
        return Ok(());
    };
    Err(Error::invalid(what, value, requirement).of(&kernel.name))
}

fn limits(kernel: &PtxKernel) -> Result<()> {
    let within = |what: &str, value: u64, limit: u64| {
        let what = || format!("{}: {what}", kernel.name);
        let error = || Error::Limit {
            what: what(),
            value,
            limit,
        };
        (value <= limit).then_some(()).ok_or_else(error)
    };
    let threads = kernel.launch.threads();
    let (fixed, dynamic) = (kernel.bytes_of(false), kernel.bytes_of(true));
    let arrays = kernel.shared.iter().filter(|array| array.dynamic).count();
    // Each parameter starts at a multiple of its alignment.
    let params = kernel.params.iter().fold(0, |end: u64, param| {
        let (bytes, align) = param.ty.layout();
        end.next_multiple_of(align.max(1).into()) + u64::from(bytes)
    });
    within("threads of a block", threads, MAX_THREADS)?;
    let [_, _, deep] = kernel.launch.block;
    within("threads of a block along z", deep.into(), MAX_DEEP)?;
    clusters(kernel, threads)?;
    within(
        "blocks of a cluster",
        kernel.launch.cluster_blocks(),
        MAX_CLUSTER,
    )?;
    within("arrays of dynamic shared memory", arrays as u64, 1)?;
    within("bytes of static shared memory", fixed, MAX_STATIC_SHARED)?;
    within(
        "bytes of shared memory",
        fixed.saturating_add(dynamic),
        kernel.target.max_shared().into(),
    )?;
    within("bytes of parameters", params, MAX_PARAMS)
}

/// Checks that the target supports clusters, and that their blocks consist of whole warps.
fn clusters(kernel: &PtxKernel, threads: u64) -> Result<()> {
    let blocks = kernel.launch.cluster_blocks();
    if blocks == 1 {
        return Ok(());
    }
    if kernel.target.capability() < 90 {
        return Err(Error::Target {
            what: format!("{}: a cluster of blocks", kernel.name),
            needed: Target::Sm90,
            target: kernel.target,
        });
    }
    if blocks == 0 || !threads.is_multiple_of(32) {
        let value = format!("{blocks} blocks of {threads} threads");
        let requirement = "at least one block of whole warps";
        return Err(Error::invalid("cluster", value, requirement).of(&kernel.name));
    }
    Ok(())
}
