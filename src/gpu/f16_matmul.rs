//! Matmuls in f16, by cooperative matrices.

#[cfg_attr(target_arch = "wasm32", path = "f16_matmul/browser.rs")]
#[cfg_attr(not(target_arch = "wasm32"), path = "f16_matmul/native.rs")]
mod matrices;

#[cfg(target_arch = "wasm32")]
pub(super) use matrices::request_device;
#[cfg(not(target_arch = "wasm32"))]
pub(super) use matrices::request_matrices;

use super::context::Gpu;
use super::kernels;
use super::matmul::aligned;
use super::recorder::{GpuBuffer, Recorder};
use crate::error::Result;
use crate::ops::HalfPrecision;

/// The workgroup memory that the kernel needs, in bytes.
const MEMORY: u32 = 20 << 10;
const INVOCATIONS: u32 = 128;
/// Rows and columns of a workgroup's tile of the result, and the depth of its slabs.
const TILE: usize = 128;
const DEPTH: usize = 32;

/// Invocations of an adapter's subgroups, at least and at most.
pub(super) fn subgroup_sizes(info: &wgpu::AdapterInfo) -> [u32; 2] {
    [info.subgroup_min_size, info.subgroup_max_size]
}

/// Returns whether an adapter supports f16 matmul, given whether it has cooperative matrices.
fn offered(adapter: &wgpu::Adapter, matrices: bool) -> HalfPrecision {
    let limits = adapter.limits();
    if !matrices {
        HalfPrecision::NoCooperativeMatrices
    } else if subgroup_sizes(&adapter.get_info()) != [32; 2] {
        HalfPrecision::SubgroupSize
    } else if limits.max_compute_workgroup_storage_size < MEMORY
        || limits.max_compute_invocations_per_workgroup < INVOCATIONS
    {
        HalfPrecision::WorkgroupLimits
    } else {
        HalfPrecision::Used
    }
}

/// Returns whether a device multiplies in f16: it was opened for that, and is no software adapter.
pub(super) fn is_used(gpu: &Gpu) -> bool {
    gpu.half_precision() == HalfPrecision::Used && !gpu.adapter().software
}

/// Returns whether a product runs in f16 on such a device: not a matrix-vector product, and not one
/// with a matrix that no buffer can hold once it is padded to whole tiles.
pub(super) fn suits(gpu: &Gpu, [m, k, n]: [usize; 3]) -> bool {
    let fits = || {
        let [height, width] = [m, n].map(|side| side.next_multiple_of(TILE));
        let depth = k.next_multiple_of(DEPTH);
        let mut matrices = [[height, depth], [depth, width], [height, width]].into_iter();
        matrices.all(|[rows, cols]| rows.saturating_mul(cols) <= gpu.max_len())
    };
    is_used(gpu) && m > 1 && n > 1 && fits()
}

/// Records a matmul of row-major matrices, which must not be empty. Both operands are rounded to f16
/// and padded to whole tiles first. The result is padded, too, if it has no whole tiles or if an
/// operation is fused after it.
pub(super) fn matmul(
    recorder: &mut Recorder<'_>,
    [a, b]: [&GpuBuffer; 2],
    c: &GpuBuffer,
    [m, k, n]: [usize; 3],
) -> Result<()> {
    let b = in_tiles(recorder, b, [k, n])?;
    by_tiles(recorder, [a, &b], c, [m, k, n])?;
    recorder.give_back(b);
    Ok(())
}

/// A `k × n` matrix as [`by_tiles`] multiplies by it: rounded, and filled up to whole tiles.
pub(super) fn in_tiles(
    recorder: &mut Recorder<'_>,
    x: &GpuBuffer,
    [k, n]: [usize; 2],
) -> Result<GpuBuffer> {
    let filled = [k.next_multiple_of(DEPTH), n.next_multiple_of(TILE)];
    rounded(recorder, x, [k, n], filled)
}

/// Records a product by a matrix that is rounded and filled up already.
pub(super) fn by_tiles(
    recorder: &mut Recorder<'_>,
    [a, b]: [&GpuBuffer; 2],
    c: &GpuBuffer,
    [m, k, n]: [usize; 3],
) -> Result<()> {
    let [height, width] = [m, n].map(|side| side.next_multiple_of(TILE));
    let depth = k.next_multiple_of(DEPTH);
    let a = rounded(recorder, a, [m, k], [height, depth])?;
    let tiles = height / TILE * (width / TILE);
    let rows = [depth / 4, width / 4, width];
    let params = [&[tiles, width / TILE, depth / DEPTH], &rows[..]].concat();
    let params: Vec<u32> = params.into_iter().map(|dim| dim as u32).collect();
    let kernel = &kernels::MATMUL_HALVES;
    let trimmed = [height, width] != [m, n] || c.goes_on();
    let whole = if trimmed {
        recorder.temporary(height * width)?
    } else {
        c.clone()
    };
    recorder.dispatch(kernel, &params, &[&a, b], &whole, tiles)?;
    recorder.give_back(a);
    if !trimmed {
        return Ok(());
    }
    let across = n.div_ceil(4);
    let kernel = aligned(n, &kernels::TRIM, &kernels::TRIM_ANY);
    let params = [m, n, across, width / 4].map(|dim| dim as u32);
    let workgroups = (m * across).div_ceil(super::lower::WORKGROUP);
    recorder.dispatch(kernel, &params, &[&whole], c, workgroups)?;
    recorder.give_back(whole);
    Ok(())
}

/// Copies a matrix to f16, padded with zeros to other rows and columns.
fn rounded(
    recorder: &mut Recorder<'_>,
    x: &GpuBuffer,
    [rows, cols]: [usize; 2],
    [height, width]: [usize; 2],
) -> Result<GpuBuffer> {
    let vectors = height * width / 4;
    let y = recorder.temporary(2 * vectors)?;
    let params = [rows, cols, width / 4, vectors].map(|dim| dim as u32);
    let workgroups = vectors.div_ceil(super::lower::WORKGROUP);
    recorder.dispatch(&kernels::HALVES, &params, &[x], &y, workgroups)?;
    Ok(y)
}
