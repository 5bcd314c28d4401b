//! Which kernels multiply two matrices.

use super::context::Limits;
use super::kernels::{self, Kernel};
use super::recorder::{GpuBuffer, Recorder};
use crate::error::Result;

/// A tile of C, and the kernels in which a workgroup computes one.
struct Family {
    /// Rows and columns of a tile.
    side: usize,
    /// Bytes of workgroup memory, and invocations.
    memory: usize,
    invocations: usize,
    /// For `k` and `n` that are multiples of 4, and for any.
    aligned: &'static Kernel,
    any: &'static Kernel,
}

/// The larger the tile, the fewer reads a product takes; the smaller, the more workgroups share
/// the work, and the less memory they need.
static FAMILIES: [Family; 3] = [
    Family {
        side: 128,
        memory: 32 << 10,
        invocations: 256,
        aligned: &kernels::MATMUL_128,
        any: &kernels::MATMUL_128_ANY,
    },
    Family {
        side: 64,
        memory: 16 << 10,
        invocations: 128,
        aligned: &kernels::MATMUL_64,
        any: &kernels::MATMUL_64_ANY,
    },
    Family {
        side: 32,
        memory: 8 << 10,
        invocations: 64,
        aligned: &kernels::MATMUL_32,
        any: &kernels::MATMUL_32_ANY,
    },
];

/// Tiles that keep a GPU busy. On one of 132 multiprocessors a product of 2048³ (256 tiles of
/// 128 × 128) took less time by the largest tiles, one of 1024³ (64 of them) half as much by the
/// middle ones, and one of 512³ (64 of those) less by the smallest.
const ENOUGH_TILES: usize = 192;

/// Records the dispatches of a product of row-major matrices.
pub(super) fn matmul(
    recorder: &mut Recorder<'_>,
    [a, b]: [&GpuBuffer; 2],
    c: &GpuBuffer,
    [m, k, n]: [usize; 3],
) -> Result<()> {
    // The other kernels have no last depth to stay below where there is none.
    if recorder.gpu.adapter().software || k == 0 {
        return direct(recorder, [a, b], c, [m, k, n]);
    }
    #[cfg(not(target_arch = "wasm32"))]
    if super::matvec::suits([m, k, n]) {
        return super::matvec::matvec(recorder, [a, b], c, [m, k, n]);
    }
    #[cfg(not(target_arch = "wasm32"))]
    if recorder.gpu.half_precision() == crate::device::HalfPrecision::Used {
        return super::halves::matmul(recorder, [a, b], c, [m, k, n]);
    }
    tiled(recorder, [a, b], c, [m, k, n])
}

/// The kernel that reads vectors, if rows of this length are made of them.
pub(super) fn aligned(
    len: usize,
    vectors: &'static Kernel,
    any: &'static Kernel,
) -> &'static Kernel {
    if len.is_multiple_of(4) { vectors } else { any }
}

/// Of the families that the adapter has room for, the largest with enough tiles.
fn family(limits: &Limits, [m, n]: [usize; 2]) -> &'static Family {
    let fits = |family: &&Family| {
        family.memory <= limits.workgroup_memory
            && family.invocations <= limits.invocations
            && family.tiles([m, n]) >= ENOUGH_TILES
    };
    let [.., smallest] = &FAMILIES;
    FAMILIES.iter().find(fits).unwrap_or(smallest)
}

impl Family {
    fn tiles(&self, [m, n]: [usize; 2]) -> usize {
        m.div_ceil(self.side) * n.div_ceil(self.side)
    }
}

fn tiled(
    recorder: &mut Recorder<'_>,
    operands: [&GpuBuffer; 2],
    c: &GpuBuffer,
    [m, k, n]: [usize; 3],
) -> Result<()> {
    let family = family(&recorder.gpu.limits, [m, n]);
    let kernel = if n.is_multiple_of(4) {
        aligned(k, family.aligned, family.any)
    } else {
        family.any
    };
    let params = [m, k, n, n.div_ceil(family.side)].map(|dim| dim as u32);
    recorder.dispatch(kernel, &params, &operands, c, family.tiles([m, n]))
}

/// Without workgroup memory: 4 × 4 values for each of a workgroup's invocations.
fn direct(
    recorder: &mut Recorder<'_>,
    operands: [&GpuBuffer; 2],
    c: &GpuBuffer,
    [m, k, n]: [usize; 3],
) -> Result<()> {
    let across = n.div_ceil(4);
    let workgroups = (across * m.div_ceil(4)).div_ceil(super::lower::WORKGROUP);
    let params = [m, k, n, across].map(|dim| dim as u32);
    recorder.dispatch(&kernels::MATMUL_DIRECT, &params, &operands, c, workgroups)
}
