//! Kernels for weights in ggml's block formats: dequantisation, and matmuls on quantised weights.

mod digit_cache;
mod digits;
mod direct;
mod dot;
mod formats;
mod gemm;
mod mma;
mod ring;
mod spans;
mod window;

pub use formats::QuantFormat;

use super::Kernel;
use super::common::along_x;
use crate::build::Builder;
use crate::error::Result;
use crate::inst::Special;
use crate::kernel::{Extent, Launch, PtxKernel};
use crate::types::PtxType::{self, F32, U8, U32};
use crate::types::Target;

/// The operation on the weights.
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
    /// The maximum number of columns of [`QuantizeKernel::gemv_mma`].
    pub const GEMV_MMA_COLS: u32 = 1 << 25;

    /// Creates a kernel that converts weights to f32, with the rounding of ggml's reference.
    ///
    /// Parameters: `w` (blocks), `y` (f32), `blocks` (u32).
    pub fn dequantize(format: QuantFormat) -> Self {
        QuantizeKernel {
            format,
            task: Task::Dequantize,
        }
    }

    /// Creates a gemv: a `rows × cols` matrix of weights, each row in whole blocks, times a vector.
    ///
    /// Parameters: `w` (blocks), `x` (f32, `cols` values), `y` (f32, `rows` values), `rows`,
    /// `cols` (u32, a multiple of the format's block).
    pub fn gemv(format: QuantFormat) -> Self {
        QuantizeKernel {
            format,
            task: Task::Gemv,
        }
    }

    /// Creates a faster gemv on the tensor cores of Ampere and later GPUs (`sm_80`), with up to
    /// [`QuantizeKernel::GEMV_MMA_COLS`] columns. `w` and `x` must be aligned to 16 bytes. Each
    /// element of `x` is rounded by at most 2⁻¹⁵ of the larger of 10⁻³⁰ and the largest of 32
    /// consecutive elements; sums of 32 products are exact. If an element of `x`, or the sum of 32
    /// of them, is not finite, every row is NaN. The kernel overlaps with preceding kernels, which
    /// may write `x`, but not `w`.
    pub fn gemv_mma(format: QuantFormat) -> Self {
        QuantizeKernel {
            format,
            task: Task::GemvMma,
        }
    }

    /// Creates a matmul `Y = X · Wᵀ` of a bf16 or f16 matrix and an `n × k` matrix of weights, each
    /// row in whole blocks, on the tensor cores of Ampere and later GPUs (`sm_80`). Weights are
    /// rounded to the type of `X`, accumulators are f32. Sizes are arbitrary; `w` and `x` must be
    /// aligned to 16 bytes.
    ///
    /// Parameters: `w` (blocks), `x` (`m × k` values), `y` (`m × n`, of the same type), `m`, `n`, `k`
    /// (u32, `k` a multiple of the format's block).
    pub fn gemm(format: QuantFormat, ty: PtxType) -> Self {
        QuantizeKernel {
            format,
            task: Task::Gemm(ty, gemm::Shares::MANY),
        }
    }

    /// Optimises a [`QuantizeKernel::gemm`] for `m` rows of `X` and `n` rows of weights. Other
    /// kernels do not change.
    #[must_use]
    pub fn for_size(self, m: u32, n: u32) -> Self {
        let task = match self.task {
            Task::Gemm(ty, _) => Task::Gemm(ty, gemm::Shares::for_size(m, n)),
            task => task,
        };
        QuantizeKernel { task, ..self }
    }

    /// Returns the format of the weights.
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

/// Builds the dequantisation kernel, with one thread for each weight.
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
