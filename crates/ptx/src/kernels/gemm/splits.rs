//! The sum of the partial results of a matmul whose `k` is split, in a fixed order, followed by the
//! epilogue.

use super::Epilogue;
use super::epilogue::Finish;
use crate::build::Builder;
use crate::error::Result;
use crate::inst::{Op, Special};
use crate::kernel::{Extent, Launch, PtxKernel};
use crate::kernels::Kernel;
use crate::types::PtxType::{self, F32, U32};
use crate::types::Target;

/// The number of threads of a block.
const THREADS: u32 = 128;
/// The number of values of each thread.
const WIDTH: u32 = 4;

/// Computes `C = act(α · (S₀ + S₁ + …) + β · C + bias)` of `splits` consecutive `m × n` matrices,
/// the results of [`super::GemmKernel::wgmma_split`]. `n` must be a multiple of 4, and matrices
/// aligned to 16 bytes.
///
/// Parameters: `sums` (f32), `c`, `m`, `n`, `splits` (u32, at least 1), `alpha`, `beta` (f32), and
/// `bias` (f32, `n` values) if the [`Epilogue`] has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SplitSumKernel {
    output: PtxType,
    epilogue: Epilogue,
}

impl SplitSumKernel {
    /// Creates a kernel for `C` of type f32, f16 or bf16.
    pub fn new(output: PtxType) -> Self {
        SplitSumKernel {
            output,
            epilogue: Epilogue::default(),
        }
    }

    /// Sets the epilogue.
    #[must_use]
    pub fn with_epilogue(self, epilogue: Epilogue) -> Self {
        SplitSumKernel { epilogue, ..self }
    }
}

impl Kernel for SplitSumKernel {
    fn name(&self) -> String {
        format!("split_sum_{}{}", self.output, self.epilogue.suffix())
    }

    fn first_target(&self) -> Target {
        match self.output {
            PtxType::BF16 => Target::Sm80,
            _ => Target::Sm70,
        }
    }

    fn generate(&self, target: Target) -> Result<PtxKernel> {
        let grid = [
            Extent::Tiles("n", THREADS * WIDTH),
            Extent::Param("m"),
            Extent::Fixed(1),
        ];
        let launch = Launch::new(THREADS, grid).overlapping(target);
        let mut k = Builder::new(self.name(), target, launch);
        let (sums, c) = (k.pointer("sums", F32), k.pointer("c", self.output));
        let (m, n) = (k.scalar("m", U32), k.scalar("n", U32));
        let splits = k.scalar("splits", U32);
        let finish = Finish::declare(&mut k, self.epilogue, self.output);
        let (block, row) = (k.special(Special::CtaidX), k.special(Special::CtaidY));
        let thread = k.special(Special::TidX);
        let index = k.fma(block, THREADS, thread);
        let col = k.mul(index, WIDTH);
        let inside = k.lt(col, n);
        k.wait_for_grid();
        k.when(inside, |k| {
            let total = k.filled(F32, WIDTH as usize, 0.0f32);
            let from = k.at_2d(sums, row, n, col, 4);
            let size = [m.into(), n.into()];
            let size = k.op(Op::MulWide, U32, PtxType::U64, &size);
            let step = k.mul(size, 4);
            k.for_range(0, splits, 1, |k, _| {
                let part = k.ld_vector(Op::LdGlobalNc, F32, WIDTH as usize, from, 0);
                for (&total, part) in total.iter().zip(part) {
                    k.add_assign(total, part);
                }
                k.add_assign(from, step);
            });
            let to = k.at_2d(c, row, n, col, self.output.bytes());
            finish.store(k, &total, to, 0, col);
        });
        k.finish()
    }
}
