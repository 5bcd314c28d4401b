//! Products of matrices that are sums of bf16 matrices.

use super::block::{Block, Inputs, Ring};
use super::{Product, begun};
use crate::error::Result;
use crate::kernel::PtxKernel;
use crate::kernels::Kernel;
use crate::kernels::gemm::epilogue::{Epilogue, Finish};
use crate::types::PtxType::{BF16, F32, U32};
use crate::types::Target;

/// Computes `Y = s · X · Wᵀ` on Hopper's tensor cores (`sm_90a`), or adds it to `Y`, with f32 accumulators. `X` and `W` are
/// bf16 matrices, or sums of two, as [`SplitKernel`](crate::kernels::SplitKernel) and
/// [`UnpackKernel`](crate::kernels::UnpackKernel) write them. Of the four products of two planes each, that of the second
/// ones is left out, so the relative error of a product of two numbers is at most 2⁻¹⁵.
///
/// Parameters: `a` (tensor map, `planes` matrices of `m × k`), `b` (tensor map, `planes` matrices of `n × k`), `c` (f32, rows
/// of `pitch` elements, aligned to 8 bytes), `m`, `n`, `k`, `pitch`, `planes` (u32, 1 or 2), `alpha` (f32, the factor `s`),
/// `beta` (f32, the factor of `Y`, which is not read if it is 0). `n` and `pitch` must be multiples of 2, and `k` one of 8; the
/// planes are aligned to 16 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PlanesMatmulKernel {
    wide: bool,
}

impl PlanesMatmulKernel {
    /// Creates a kernel with tiles of 128 × 256 elements, for many columns.
    pub fn wide() -> Self {
        Self { wide: true }
    }

    /// Creates a kernel with tiles of 128 × 128 elements.
    pub fn narrow() -> Self {
        Self { wide: false }
    }

    fn ring(self) -> Ring {
        let cols = if self.wide { 256 } else { 128 };
        Ring::of_halves(BF16, cols, Inputs::Planes)
    }
}

impl Kernel for PlanesMatmulKernel {
    fn first_target(&self) -> Target {
        Target::Sm90a
    }

    fn name(&self) -> String {
        let Ring { rows, cols, .. } = self.ring();
        format!("multiply_planes_{rows}x{cols}")
    }

    fn generate(&self, target: Target) -> Result<PtxKernel> {
        let ring = self.ring();
        let (mut k, [a, b]) = begun(self.name(), target, ring);
        let mut p = Product::declare_sums(&mut k, a, b);
        p.pitch = k.scalar("pitch", U32);
        let planes = k.scalar("planes", U32);
        p.finish = Finish::declare(&mut k, Epilogue::NONE, F32);
        let block = Block::new(&mut k, &p, ring, [None, Some(planes)]);
        block.run(k, &p, Block::consume)
    }
}
