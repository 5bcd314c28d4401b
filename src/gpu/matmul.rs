//! Choice of the matmul kernels.

use super::context::Gpu;
use super::context::Limits;
use super::kernels::{self, Kernel};
use super::recorder::{GpuBuffer, Recorder};
use super::tune::Key;
use crate::error::Result;

/// A tile size of C, and the kernels in which a workgroup computes one tile.
pub(super) struct Family {
    /// The number of rows, and of columns, of a tile.
    side: usize,
    /// The number of bytes of workgroup memory.
    memory: usize,
    /// The number of invocations.
    invocations: usize,
    /// Kernels for `k` and `n` that are multiples of 4, and for any.
    aligned: &'static Kernel,
    any: &'static Kernel,
    /// Kernels for convolution layers.
    pub(super) layer: &'static Kernel,
    /// Kernels for convolution layers with windows of one element.
    pub(super) pointwise: &'static Kernel,
}

/// The larger the tile, the fewer reads a product takes; the smaller, the more workgroups share
/// the work, and the less memory they need.
pub(super) static FAMILIES: [Family; 3] = [
    Family {
        side: 128,
        memory: 32 << 10,
        invocations: 256,
        aligned: &kernels::MATMUL_128,
        any: &kernels::MATMUL_128_ANY,
        layer: &kernels::LAYER_128,
        pointwise: &kernels::POINTWISE_128,
    },
    Family {
        side: 64,
        memory: 16 << 10,
        invocations: 128,
        aligned: &kernels::MATMUL_64,
        any: &kernels::MATMUL_64_ANY,
        layer: &kernels::LAYER_64,
        pointwise: &kernels::POINTWISE_64,
    },
    Family {
        side: 32,
        memory: 8 << 10,
        invocations: 64,
        aligned: &kernels::MATMUL_32,
        any: &kernels::MATMUL_32_ANY,
        layer: &kernels::LAYER_32,
        pointwise: &kernels::POINTWISE_32,
    },
];

/// The number of tiles that keep a GPU busy. On a GPU of 132 multiprocessors 2048³ (256 tiles of
/// 128 × 128) was fastest with the largest tiles, 128×1152×25088 (196 tiles) took a fifth less with
/// the middle ones, and 512×4608×1568 (200 tiles) a tenth less with the smallest.
const ENOUGH_TILES: usize = 256;

/// Refuses sums that are too long for llvmpipe; a round of a loop adds four products.
pub(super) fn check_depth(gpu: &super::context::Gpu, k: usize) -> Result<()> {
    gpu.check_on_llvmpipe("the depth of a product on llvmpipe", k, 1 << 17)
}

/// Records the dispatches of a product of row-major matrices.
pub(super) fn matmul(
    recorder: &mut Recorder<'_>,
    [a, b]: [&GpuBuffer; 2],
    c: &GpuBuffer,
    [m, k, n]: [usize; 3],
) -> Result<()> {
    if k > 0 && super::f16_matmul::suits(recorder.gpu, [m, k, n]) {
        return super::f16_matmul::matmul(recorder, [a, b], c, [m, k, n]);
    }
    in_f32(recorder, [a, b], c, [m, k, n])
}

/// Records a matmul in `f32`.
pub(super) fn in_f32(
    recorder: &mut Recorder<'_>,
    [a, b]: [&GpuBuffer; 2],
    c: &GpuBuffer,
    [m, k, n]: [usize; 3],
) -> Result<()> {
    check_depth(recorder.gpu, k)?;
    // The other kernels have no last depth to stay below where there is none.
    if k == 0 {
        return direct(recorder, [a, b], c, [m, k, n]);
    }
    if let Some(name) = recorder.fastest(Key::matmul([m, k, n]))
        && by(&name, recorder, [a, b], c, [m, k, n])?
    {
        return Ok(());
    }
    if recorder.gpu.adapter().software {
        return direct(recorder, [a, b], c, [m, k, n]);
    }
    #[cfg(not(target_arch = "wasm32"))]
    if super::matvec::suits(&recorder.gpu.limits, [m, k, n]) {
        return super::matvec::matvec(recorder, [a, b], c, [m, k, n]);
    }
    let family = family(&recorder.gpu.limits, [m, n]);
    family.record(recorder, [a, b], c, [m, k, n])
}

/// Returns the names of the kernels that can compute a matmul; none if there is no choice.
pub(super) fn candidates(gpu: &Gpu, [m, k, n]: [usize; 3]) -> Vec<&'static str> {
    if super::f16_matmul::suits(gpu, [m, k, n]) {
        return Vec::new();
    }
    if m * n == 0 || k == 0 {
        return Vec::new();
    }
    let fitting = FAMILIES.iter().filter(|family| family.fits(&gpu.limits));
    let names = fitting
        .map(Family::name)
        .chain([kernels::MATMUL_DIRECT.name]);
    #[cfg(not(target_arch = "wasm32"))]
    let names = names
        .chain(super::subgroups::candidates(&gpu.limits))
        .chain(super::matvec::candidates(&gpu.limits, [m, k, n]));
    names.collect()
}

/// Records a matmul by the candidate of that name, if it exists here.
fn by(
    name: &str,
    recorder: &mut Recorder<'_>,
    operands: [&GpuBuffer; 2],
    c: &GpuBuffer,
    shape: [usize; 3],
) -> Result<bool> {
    let limits = &recorder.gpu.limits;
    let mut families = FAMILIES.iter();
    if let Some(family) = families.find(|family| family.name() == name && family.fits(limits)) {
        return family.record(recorder, operands, c, shape).map(|()| true);
    }
    if name == kernels::MATMUL_DIRECT.name {
        return direct(recorder, operands, c, shape).map(|()| true);
    }
    #[cfg(not(target_arch = "wasm32"))]
    return Ok(super::subgroups::by(name, recorder, operands, c, shape)?
        || super::matvec::by(name, recorder, operands, c, shape)?);
    #[cfg(target_arch = "wasm32")]
    Ok(false)
}

/// The kernel that reads vectors, if rows of this length are made of them.
pub(super) fn aligned(
    len: usize,
    vectors: &'static Kernel,
    any: &'static Kernel,
) -> &'static Kernel {
    if len.is_multiple_of(4) { vectors } else { any }
}

/// Chooses the tile size: the largest that the adapter supports, that gives enough tiles, and that
/// does not reach much farther beyond the result than smaller ones. A product of 64 rows takes
/// twice as long with the largest tiles.
pub(super) fn family(limits: &Limits, [m, n]: [usize; 2]) -> &'static Family {
    let [.., smallest] = &FAMILIES;
    let least = smallest.area([m, n]);
    let suits = |family: &&Family| {
        let enough = family.grid([m, n])[0] >= ENOUGH_TILES;
        enough && family.area([m, n]) <= least / 4 * 5 && family.fits(limits)
    };
    FAMILIES.iter().find(suits).unwrap_or(smallest)
}

impl Family {
    fn name(&self) -> &'static str {
        self.aligned.name
    }

    pub(super) fn fits(&self, limits: &Limits) -> bool {
        self.memory <= limits.workgroup_memory && self.invocations <= limits.invocations
    }

    /// The tiles of a product, and those side by side.
    pub(super) fn grid(&self, [m, n]: [usize; 2]) -> [usize; 2] {
        let across = n.div_ceil(self.side);
        [m.div_ceil(self.side) * across, across]
    }

    /// The values that all tiles of a product have together.
    fn area(&self, shape: [usize; 2]) -> usize {
        self.grid(shape)[0] * self.side * self.side
    }

    fn record(
        &self,
        recorder: &mut Recorder<'_>,
        operands: [&GpuBuffer; 2],
        c: &GpuBuffer,
        [m, k, n]: [usize; 3],
    ) -> Result<()> {
        // A multiple of 4 only if both are.
        let kernel = aligned(k | n, self.aligned, self.any);
        let [tiles, across] = self.grid([m, n]);
        let params = [m, k, n, across].map(|dim| dim as u32);
        recorder.dispatch(kernel, &params, &operands, c, tiles)
    }
}

/// Records a matmul without workgroup memory: each invocation computes 8 × 8 elements.
fn direct(
    recorder: &mut Recorder<'_>,
    operands: [&GpuBuffer; 2],
    c: &GpuBuffer,
    [m, k, n]: [usize; 3],
) -> Result<()> {
    let [workgroups, across] = direct_grid([m, n]);
    let params = [m, k, n, across].map(|dim| dim as u32);
    let kernel = aligned(k | n, &kernels::MATMUL_DIRECT, &kernels::MATMUL_DIRECT_ANY);
    recorder.dispatch(kernel, &params, &operands, c, workgroups)
}

/// The workgroups of such a product, and tiles side by side.
pub(super) fn direct_grid([m, n]: [usize; 2]) -> [usize; 2] {
    /// A tile's side, and tiles of a workgroup.
    const SIDE: usize = 8;
    const TILES: usize = 64;
    let across = n.div_ceil(SIDE);
    [(across * m.div_ceil(SIDE)).div_ceil(TILES), across]
}
