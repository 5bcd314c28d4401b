//! Weights in ggml's block formats: dequantised, or multiplied with a vector as they are.

mod digits;
mod direct;
mod dot;
mod formats;
mod gemm;
mod kept;
mod mma;
mod ring;
mod spans;
mod window;

pub use formats::QuantFormat;

use super::Kernel;
use super::common::along_x;
use crate::ptx::build::Builder;
use crate::ptx::error::Result;
use crate::ptx::inst::Special;
use crate::ptx::kernel::{Extent, Launch, PtxKernel};
use crate::ptx::types::PtxType::{self, F32, U8, U32};
use crate::ptx::types::Target;

/// What is done with the weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Task {
    Dequantize,
    Gemv,
    GemvMma,
    Gemm(PtxType, gemm::Shares),
}

/// Kernels for weights in one of ggml's block formats, bit-exact to its layouts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct QuantizeKernel {
    format: QuantFormat,
    task: Task,
}

impl QuantizeKernel {
    /// The most columns that [`QuantizeKernel::gemv_mma`] takes.
    pub const GEMV_MMA_COLS: u32 = 1 << 25;

    /// Writes the weights as f32, rounded where ggml's own reference rounds.
    ///
    /// Parameters: `w` (blocks), `y` (f32), `blocks` (u32).
    pub fn dequantize(format: QuantFormat) -> Self {
        QuantizeKernel {
            format,
            task: Task::Dequantize,
        }
    }

    /// Multiplies a matrix of weights, `rows × cols` with each row in whole blocks, with a vector:
    /// one warp to a row.
    ///
    /// Parameters: `w` (blocks), `x` (f32, `cols` values), `y` (f32, `rows` values), `rows`,
    /// `cols` (u32, a multiple of the format's block).
    pub fn gemv(format: QuantFormat) -> Self {
        QuantizeKernel {
            format,
            task: Task::Gemv,
        }
    }

    /// The same on the tensor cores of any GPU since Ampere (`sm_80`), for speed, with up to
    /// [`QuantizeKernel::GEMV_MMA_COLS`] columns. `w` and `x` are aligned to 16 bytes. Each value of `x` is rounded by at most 2⁻¹⁵ of the largest among 32, or of
    /// 10⁻³⁰ where that is more; sums of 32 products are exact. Where `x` is not finite, or 32 of its
    /// values add up to what is not, every row is NaN. It begins while kernels before are at work, which
    /// may write `x`, but not `w`.
    pub fn gemv_mma(format: QuantFormat) -> Self {
        QuantizeKernel {
            format,
            task: Task::GemvMma,
        }
    }

    /// `Y = X · Wᵀ`: multiplies rows of bf16 or f16 with a matrix of weights, `n × k` with each row in
    /// whole blocks, on the tensor cores of any GPU since Ampere (`sm_80`). Weights are rounded to the
    /// type of `X`, sums are f32. Any sizes; `w` and `x` are aligned to 16 bytes.
    ///
    /// Parameters: `w` (blocks), `x` (`m × k` values), `y` (`m × n`, of the same type), `m`, `n`, `k`
    /// (u32, `k` a multiple of the format's block).
    pub fn gemm(format: QuantFormat, ty: PtxType) -> Self {
        QuantizeKernel {
            format,
            task: Task::Gemm(ty, gemm::Shares::MANY),
        }
    }

    /// The same product as shared out best for `m` rows of `X` and `n` of weights; others stay as they
    /// are.
    #[must_use]
    pub fn for_size(self, m: u32, n: u32) -> Self {
        let task = match self.task {
            Task::Gemm(ty, _) => Task::Gemm(ty, gemm::Shares::for_size(m, n)),
            task => task,
        };
        QuantizeKernel { task, ..self }
    }

    /// The format of the weights.
    pub fn format(&self) -> QuantFormat {
        self.format
    }
}

impl Kernel for QuantizeKernel {
    fn name(&self) -> String {
        let format = self.format.name();
        match self.task {
            Task::Dequantize => format!("dequantize_{format}"),
            Task::Gemv => format!("gemv_{format}"),
            Task::GemvMma => format!("gemv_mma_{format}"),
            Task::Gemm(ty, shares) => format!("gemm_{format}_{ty}_{}", shares.suffix()),
        }
    }

    fn first_target(&self) -> Target {
        match self.task {
            Task::Dequantize | Task::Gemv => Target::Sm70,
            Task::GemvMma | Task::Gemm(..) => Target::Sm80,
        }
    }

    fn generate(&self, target: Target) -> Result<PtxKernel> {
        match self.task {
            Task::Dequantize => dequantize(*self, target),
            Task::Gemv => dot::build(*self, target),
            Task::GemvMma => mma::build(*self, target),
            Task::Gemm(ty, shares) => gemm::build(*self, ty, shares, target),
        }
    }
}

/// One thread to a weight.
fn dequantize(kernel: QuantizeKernel, target: Target) -> Result<PtxKernel> {
    let format = kernel.format;
    let (values, bytes) = format.block();
    let launch = Launch::new(values, along_x(Extent::Param("blocks")));
    let mut k = Builder::new(kernel.name(), target, launch);
    let (w, y) = (k.pointer("w", U8), k.pointer("y", F32));
    let _ = k.scalar("blocks", U32);
    let (block, i) = (k.special(Special::CtaidX), k.special(Special::TidX));
    let block_at = k.at(w, block, bytes);
    let value = format.dequantize(&mut k, block_at, i);
    let first = k.at(y, block, values * 4);
    let to = k.at(first, i, 4);
    k.st_global(F32, to, 0, value);
    k.finish()
}
