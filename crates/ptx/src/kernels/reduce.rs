//! Sums, extremes and dot products of vectors.

use super::Kernel;
use super::common::{BlockReduce, Combine, along_x};
use super::values::{check, first_target, load};
use crate::build::Builder;
use crate::error::Result;
use crate::inst::{Reg, Special};
use crate::kernel::{Extent, Launch, PtxKernel};
use crate::types::PtxType::{self, F32, U32};
use crate::types::Target;

const THREADS: u32 = 512;
/// The number of elements loaded at once.
const WIDTH: u32 = 4;
const LOADS: u32 = 4;

/// A reduction of a vector to one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(
    all(target_arch = "wasm32", feature = "js"),
    derive(serde::Deserialize, tsify::Tsify),
    serde(rename_all = "snake_case")
)]
#[non_exhaustive]
pub enum Reduction {
    /// The sum; 0 for an empty vector.
    Sum,
    /// The largest element that is not NaN; −∞ for an empty vector.
    Max,
    /// The smallest element that is not NaN; ∞ for an empty vector.
    Min,
    /// The largest element, or NaN if any is NaN; −∞ for an empty vector.
    Maximum,
    /// The smallest element, or NaN if any is NaN; ∞ for an empty vector.
    Minimum,
    /// The dot product with another vector.
    Dot,
}

/// A reduction with one result for each block. The results of a kernel with many blocks are the
/// input of one with a single block. The order of operations depends only on `n` and the number of
/// the GPU's multiprocessors.
///
/// Parameters: `x`, for [`Reduction::Dot`] another vector `z` (of the kernel's type, aligned to 16
/// bytes), `y` (f32, one value a block), `n` (u32, below 2³¹).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ReduceKernel {
    reduction: Reduction,
    ty: PtxType,
    blocks: Extent,
}

impl ReduceKernel {
    /// The number of blocks of [`ReduceKernel::parts`] for each multiprocessor.
    pub const PARTS: u32 = 4;

    /// Creates a reduction of f32 by one block.
    pub fn new(reduction: Reduction) -> Self {
        ReduceKernel {
            reduction,
            ty: F32,
            blocks: Extent::Fixed(1),
        }
    }

    /// Sets the type of the elements: f16, bf16 or f32.
    #[must_use]
    pub fn of(self, ty: PtxType) -> Self {
        ReduceKernel { ty, ..self }
    }

    /// Uses [`ReduceKernel::PARTS`] blocks for each multiprocessor, for long vectors. One block
    /// must then reduce the results: sums and dot products with [`Reduction::Sum`].
    #[must_use]
    pub fn parts(self) -> Self {
        ReduceKernel {
            blocks: Extent::Multiprocessors(Self::PARTS),
            ..self
        }
    }

    fn combine(self) -> Combine {
        match self.reduction {
            Reduction::Sum | Reduction::Dot => Combine::Sum,
            Reduction::Max => Combine::Max,
            Reduction::Min => Combine::Min,
            Reduction::Maximum => Combine::Maximum,
            Reduction::Minimum => Combine::Minimum,
        }
    }
}

impl Kernel for ReduceKernel {
    fn name(&self) -> String {
        let reduction = format!("{:?}", self.reduction).to_lowercase();
        let parts = match self.blocks {
            Extent::Fixed(_) => "",
            _ => "_parts",
        };
        format!("reduce_{reduction}_{}{parts}", self.ty)
    }

    fn first_target(&self) -> Target {
        first_target(self.ty)
    }

    fn generate(&self, target: Target) -> Result<PtxKernel> {
        check(self.ty)?;
        let launch = Launch::new(THREADS, along_x(self.blocks));
        let mut k = Builder::new(self.name(), target, launch.overlapping(target));
        let mut inputs = vec![k.pointer("x", self.ty)];
        if self.reduction == Reduction::Dot {
            inputs.push(k.pointer("z", self.ty));
        }
        let (y, n) = (k.pointer("y", F32), k.scalar("n", U32));
        let block = k.special(Special::CtaidX);
        let reduce = BlockReduce::new(&mut k, THREADS, false);
        k.wait_for_grid();
        let value = self.own(&mut k, &inputs, n);
        let total = reduce.all(&mut k, self.combine(), value);
        let thread = k.special(Special::TidX);
        let first = k.eq(thread, 0);
        k.when(first, |k| {
            let to = k.at(y, block, 4);
            k.st_global(F32, to, 0, total);
        });
        k.finish()
    }
}

impl ReduceKernel {
    /// Reduces this thread's share: several loads at a time while all of them are inside the
    /// vector, then single elements.
    fn own(self, k: &mut Builder, inputs: &[Reg], n: Reg) -> Reg {
        let combine = self.combine();
        let (block, blocks) = (k.special(Special::CtaidX), k.special(Special::NctaidX));
        let thread = k.special(Special::TidX);
        let totals = k.filled(F32, LOADS as usize, combine.neutral());
        // The number of elements that all blocks process in a round.
        let round = k.mul(blocks, THREADS * WIDTH * LOADS);
        let rounds = k.div(n, round);
        let whole = k.mul(rounds, round);
        let of_block = k.mul(block, THREADS * WIDTH * LOADS);
        let first = k.fma(thread, WIDTH, of_block);
        k.for_range(first, whole, round, |k, at| {
            for (load, &total) in totals.iter().enumerate() {
                let at = k.offset(at, load as u32 * THREADS * WIDTH);
                for value in self.values(k, inputs, at, WIDTH as usize) {
                    combine.apply(k, total, value);
                }
            }
        });
        let rest = k.fma(block, THREADS, thread);
        let rest = k.add(rest, whole);
        let step = k.mul(blocks, THREADS);
        k.for_range(rest, n, step, |k, at| {
            for value in self.values(k, inputs, at, 1) {
                combine.apply(k, totals[0], value);
            }
        });
        for &total in &totals[1..] {
            combine.apply(k, totals[0], total);
        }
        totals[0]
    }

    /// Computes the numbers to combine from the elements at `at`.
    fn values(self, k: &mut Builder, inputs: &[Reg], at: Reg, count: usize) -> Vec<Reg> {
        let mut loaded = inputs.iter().map(|&input| {
            let from = k.at(input, at, self.ty.bytes());
            load(k, self.ty, count, from)
        });
        let (x, z) = (loaded.next().unwrap_or_default(), loaded.next());
        drop(loaded);
        match z {
            None => x,
            Some(z) => x.iter().zip(z).map(|(&x, z)| k.mul(x, z)).collect(),
        }
    }
}
