//! Numbers as sums of bf16, for [`PlanesMatmulKernel`](crate::kernels::PlanesMatmulKernel).

use super::packed::{PackedFormat, Row, Weights};
use crate::build::Builder;
use crate::error::Result;
use crate::inst::{Op, Reg, Special};
use crate::kernel::{Extent, Launch, PtxKernel};
use crate::kernels::Kernel;
use crate::kernels::common::along_x;
use crate::kernels::fragments::bf16_parts;
use crate::types::PtxType::{B32, BF16, F32, U32};
use crate::types::Target;

const THREADS: u32 = 256;

/// Rounds numbers to bf16, and the remainders, too, if there are two planes: `y` has the rounded numbers, and after them the
/// rounded remainders. The remainder of an infinity is NaN.
///
/// Parameters: `x` (f32), `y` (bf16, `planes · len` elements), both aligned to 16 bytes; `len` (a multiple of 8), `planes` (1
/// or 2) (u32).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SplitKernel;

impl Kernel for SplitKernel {
    fn first_target(&self) -> Target {
        Target::Sm80
    }

    fn name(&self) -> String {
        "split".to_owned()
    }

    fn generate(&self, target: Target) -> Result<PtxKernel> {
        let launch = Launch::new(THREADS, along_x(Extent::Tiles("len", 8 * THREADS)));
        let mut k = Builder::new(self.name(), target, launch.overlapping(target));
        let (x, y) = (k.pointer("x", F32), k.pointer("y", BF16));
        let (len, planes) = (k.scalar("len", U32), k.scalar("planes", U32));
        let i = eighth(&mut k);
        let count = k.shr(len, 3);
        let exists = k.lt(i, count);
        k.wait_for_grid();
        k.when(exists, |k| {
            let x = k.at(x, i, 32);
            let numbers: Vec<Reg> = [0, 16]
                .into_iter()
                .flat_map(|at| k.ld_vector(Op::LdGlobal, F32, 4, x, at))
                .collect();
            store(k, &numbers, [y, i, len], planes);
        });
        k.finish()
    }
}

/// Writes packed weights as numbers, rounded as [`SplitKernel`] does.
///
/// Parameters: `words`, `scales` (as those of [`PackedMatmulKernel`](super::PackedMatmulKernel)), `y` (bf16, `planes · len`
/// elements), aligned to 16 bytes; `len` (the number of weights, whole groups), `group_shift`, `planes` (1 or 2) (u32),
/// `least` (f32).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct UnpackKernel {
    format: PackedFormat,
}

impl UnpackKernel {
    /// Creates a kernel for weights of a format.
    pub fn new(format: PackedFormat) -> Self {
        Self { format }
    }
}

impl Kernel for UnpackKernel {
    fn first_target(&self) -> Target {
        Target::Sm80
    }

    fn name(&self) -> String {
        format!("unpack_{}", self.format.name())
    }

    fn generate(&self, target: Target) -> Result<PtxKernel> {
        let launch = Launch::new(THREADS, along_x(Extent::Tiles("len", 8 * THREADS)));
        let mut k = Builder::new(self.name(), target, launch.overlapping(target));
        let words = k.pointer("words", U32);
        let (scales, y) = (k.pointer("scales", F32), k.pointer("y", BF16));
        let [len, group_shift, planes] =
            ["len", "group_shift", "planes"].map(|name| k.scalar(name, U32));
        let least = k.scalar("least", F32);
        let weights = Weights::new(
            &mut k,
            self.format,
            [words, scales],
            [len, group_shift, least],
        );
        let i = eighth(&mut k);
        let count = k.shr(len, 3);
        let exists = k.lt(i, count);
        k.wait_for_grid();
        k.when(exists, |k| {
            // Rows have whole groups and follow each other: they are one long row.
            let loaded = weights.load_eight(k, &Row { words, scales }, i);
            let values = weights.values(k, &loaded);
            store(k, &values, [y, i, len], planes);
        });
        k.finish()
    }
}

/// Returns the number of this thread in the grid.
fn eighth(k: &mut Builder) -> Reg {
    let (block, thread) = (k.special(Special::CtaidX), k.special(Special::TidX));
    k.fma(block, THREADS, thread)
}

/// Stores the `i`-th eight numbers in one or two planes of `len` elements.
fn store(k: &mut Builder, numbers: &[Reg], [y, i, len]: [Reg; 3], planes: Reg) {
    let [first, second] = bf16_parts(k, numbers).map(|pairs| words(k, &pairs));
    let to = k.at(y, i, 16);
    k.st_global(B32, to, 0, first.as_slice());
    let both = k.gt(planes, 1);
    k.when(both, |k| {
        let to = k.at(to, len, 2);
        k.st_global(B32, to, 0, second.as_slice());
    });
}

fn words(k: &mut Builder, pairs: &[Reg]) -> Vec<Reg> {
    let word = |&pair: &Reg| k.op(Op::Mov, B32, B32, &[pair.into()]);
    pairs.iter().map(word).collect()
}
