//! Matmuls `C = act(α · A · B + β · C + bias)` of row-major matrices.
//!
//! Each method has a file: `naive` is the definition, `tiled` is for any GPU, and the others use
//! the tensor cores of one generation.

mod epilogue;
mod mma;
mod naive;
mod splits;
mod store;
mod tiled;
mod wgmma;
mod wmma;

pub use epilogue::{Activation, Epilogue};
pub(super) use epilogue::{activate, narrow, widen};
pub use splits::SplitSumKernel;
pub use tiled::Tile;
pub use wgmma::PlanesMatmulKernel;

use super::Kernel;
use crate::build::Builder;
use crate::error::{Error, Result};
use crate::inst::{Reg, Special};
use crate::kernel::{Extent, PtxKernel};
use crate::types::PtxType::{self, F16, F32, U32};
use crate::types::Target;

/// The method of a matmul.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Method {
    Naive,
    Tiled(Tile),
    /// WMMA, with the number of elements that are loaded at once.
    Wmma(u32),
    Mma,
    Wgmma(wgmma::Shape),
    WgmmaTf32,
}

/// A matmul `C = act(α · A · B + β · C + bias)`: `A` is `m × k`, `B` is `k × n`, `C` is `m × n`,
/// all row-major and contiguous.
///
/// Parameters: `a`, `b`, `c`, `m`, `n`, `k` (u32), `alpha`, `beta` (f32), and `bias` (f32, `n`
/// elements) if the [`Epilogue`] has one; [`GemmKernel::batched`] adds more. `C` is not read if β
/// is 0. Sizes must be below 2³¹. A grid has at most 65,535 blocks along the rows; kernels with
/// `wgmma` have no such limit.
///
/// ```
/// use relampago_ptx::{GemmKernel, Kernel, Target};
///
/// # fn main() -> Result<(), relampago_ptx::Error> {
/// let kernel = GemmKernel::tiled();
/// let text = kernel.emit_ptx_for_target(Target::Sm80)?;
/// assert!(text.contains(".entry"));
/// let built = kernel.build(Target::Sm80)?;
/// assert_eq!(built.params()[0].name, "a");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GemmKernel {
    method: Method,
    /// The type of `A` and `B`, and the type of `C`.
    types: [PtxType; 2],
    epilogue: Epilogue,
    batched: bool,
}

impl GemmKernel {
    fn new(method: Method, types: [PtxType; 2]) -> Self {
        GemmKernel {
            method,
            types,
            epilogue: Epilogue::default(),
            batched: false,
        }
    }

    /// Creates an f32 matmul with one thread for each element of `C`, for any GPU. It is a simple
    /// reference, and not fast.
    pub fn naive() -> Self {
        Self::new(Method::Naive, [F32, F32])
    }

    /// Creates an f32 matmul with tiles in shared memory and registers, for any GPU and any sizes.
    pub fn tiled() -> Self {
        Self::tiled_by(Tile::LARGE)
    }

    /// Creates a [`GemmKernel::tiled`] matmul with another tile.
    pub fn tiled_by(tile: Tile) -> Self {
        Self::new(Method::Tiled(tile), [F32, F32])
    }

    /// Creates an f16 matmul with f32 accumulators, on the tensor cores of Volta and later GPUs,
    /// for any sizes. `C` is f32.
    pub fn wmma_fp16() -> Self {
        Self::new(Method::Wmma(1), [F16, F32])
    }

    /// Creates a [`GemmKernel::wmma_fp16`] matmul with `C` in f16.
    pub fn tensor_core() -> Self {
        Self::new(Method::Wmma(1), [F16, F16])
    }

    /// Creates a bf16 or f16 matmul with f32 accumulators, on the tensor cores of Ampere and later
    /// GPUs (`sm_80`). `C` has the inputs' type. For f32 it is [`GemmKernel::mma_tf32`].
    ///
    /// `n` and `k` must be multiples of 8, and all matrices aligned to 16 bytes.
    pub fn mma(ty: PtxType) -> Self {
        Self::new(Method::Mma, [ty, ty])
    }

    /// Creates a matmul of f32 rounded to tf32 (11 significant bits) with f32 accumulators, on the
    /// tensor cores of Ampere and later GPUs (`sm_80`). `n` and `k` must be multiples of 4, and all
    /// matrices aligned to 16 bytes.
    pub fn mma_tf32() -> Self {
        Self::new(Method::Mma, [F32, F32])
    }

    /// Creates a persistent bf16 or f16 matmul with f32 accumulators, on Hopper's tensor cores
    /// (`sm_90a`), for large sizes. `C` has the inputs' type.
    ///
    /// `a` and `b` are tensor maps. `n` and `k` must be multiples of 8, and all matrices aligned to
    /// 16 bytes.
    pub fn wgmma(ty: PtxType) -> Self {
        Self::wgmma_by(ty, 256)
    }

    /// Creates a [`GemmKernel::wgmma`] matmul with tiles of 128 or 256 columns.
    pub fn wgmma_by(ty: PtxType, cols: u32) -> Self {
        Self::new(Method::Wgmma(wgmma::Shape { cols, split: false }), [ty, ty])
    }

    /// Creates a persistent matmul of f32 as tf32 with f32 accumulators, on Hopper's tensor cores
    /// (`sm_90a`), for large sizes. `B` is rounded to 11 significant bits, and `A` is truncated.
    ///
    /// `a` and `b` are tensor maps. `n` and `k` must be multiples of 4, and all matrices aligned to
    /// 16 bytes.
    pub fn wgmma_tf32() -> Self {
        Self::new(Method::WgmmaTf32, [F32, F32])
    }

    /// Creates a matmul for few tiles and a large `k`, which is split so that every multiprocessor
    /// has work. Each part writes an f32 matrix of partial results without an epilogue.
    /// [`SplitSumKernel`] adds them up.
    ///
    /// Parameters: `a`, `b` (tensor maps as for [`GemmKernel::wgmma`]), `c` (f32, `splits`
    /// consecutive matrices), `m`, `n`, `k`, `splits` (u32, at least 1).
    pub fn wgmma_split(ty: PtxType, cols: u32) -> Self {
        Self::new(Method::Wgmma(wgmma::Shape { cols, split: true }), [ty, F32])
    }

    /// Requires `n` and `k` to be multiples of 8 and matrices to be aligned to 16 bytes, which
    /// makes WMMA kernels several times as fast. Other kernels do not change.
    #[must_use]
    pub fn aligned(self) -> Self {
        let method = match self.method {
            Method::Wmma(_) => Method::Wmma(8),
            method => method,
        };
        GemmKernel { method, ..self }
    }

    /// Computes up to 65,535 matmuls of the same size. It adds the last parameters `batch`,
    /// `stride_a`, `stride_b`, `stride_c` (u32): the number of matmuls, and the distance between
    /// consecutive matrices in elements. A stride of 0 shares one matrix, except for `C`. Alignment
    /// requirements apply to every matrix. All matmuls share the bias.
    ///
    /// Kernels with `wgmma` cannot be batched, since their tensor maps describe single matrices.
    #[must_use]
    pub fn batched(self) -> Self {
        GemmKernel {
            batched: true,
            ..self
        }
    }

    /// Returns the number of matmuls in the grid, along z.
    fn products(&self) -> Extent {
        if self.batched {
            Extent::Param("batch")
        } else {
            Extent::Fixed(1)
        }
    }

    /// Sets the epilogue that is applied before `C` is stored.
    #[must_use]
    pub fn with_epilogue(self, epilogue: Epilogue) -> Self {
        GemmKernel { epilogue, ..self }
    }
}

/// The registers that hold a matmul's parameters.
struct Product {
    a: Reg,
    b: Reg,
    c: Reg,
    m: Reg,
    n: Reg,
    k: Reg,
    /// The number of elements from a row of `C` to the next.
    pitch: Reg,
    /// The size of an element of `C` in bytes.
    c_bytes: u32,
    finish: epilogue::Finish,
}

impl Product {
    /// Declares the parameters.
    fn declare(k: &mut Builder, gemm: &GemmKernel) -> Self {
        let [input, _] = gemm.types;
        let (a, b) = (k.pointer("a", input), k.pointer("b", input));
        Self::declare_with(k, gemm, a, b)
    }

    /// Declares the parameters after the first two.
    fn declare_with(k: &mut Builder, gemm: &GemmKernel, a: Reg, b: Reg) -> Self {
        let ([_, output], epilogue) = (gemm.types, gemm.epilogue);
        let mut product = Self::declare_sizes(k, [a, b], output);
        product.finish = epilogue::Finish::declare(k, epilogue, output);
        if gemm.batched {
            let _ = k.scalar("batch", U32);
            let index = k.special(Special::CtaidZ);
            product.a = matrix_of(k, "stride_a", product.a, index, gemm.types[0]);
            product.b = matrix_of(k, "stride_b", product.b, index, gemm.types[0]);
            product.c = matrix_of(k, "stride_c", product.c, index, output);
        }
        product
    }

    /// Declares the parameters of a matmul without an epilogue.
    fn declare_sums(k: &mut Builder, a: Reg, b: Reg) -> Self {
        Self::declare_sizes(k, [a, b], F32)
    }

    fn declare_sizes(k: &mut Builder, [a, b]: [Reg; 2], output: PtxType) -> Self {
        let c = k.pointer("c", output);
        let (m, n, depth) = (k.scalar("m", U32), k.scalar("n", U32), k.scalar("k", U32));
        Product {
            a,
            b,
            c,
            m,
            n,
            k: depth,
            pitch: n,
            c_bytes: output.bytes(),
            finish: epilogue::Finish::none(),
        }
    }
}

/// Computes the address of the matrix of matmul `index`.
fn matrix_of(k: &mut Builder, stride: &'static str, first: Reg, index: Reg, ty: PtxType) -> Reg {
    let stride = k.scalar(stride, U32);
    let zero = k.value(U32, 0);
    k.at_2d(first, index, stride, zero, ty.bytes())
}

impl Kernel for GemmKernel {
    fn first_target(&self) -> Target {
        match self.method {
            Method::Mma => Target::Sm80,
            Method::Wgmma(_) | Method::WgmmaTf32 => Target::Sm90a,
            _ => Target::Sm70,
        }
    }

    fn name(&self) -> String {
        let [input, output] = self.types;
        let method = match self.method {
            Method::Naive => "gemm_naive".to_owned(),
            Method::Tiled(tile) => format!("gemm_tiled_{}", tile.suffix()),
            Method::Wmma(width) => format!("gemm_wmma_v{width}_{input}_{output}"),
            Method::Mma if input == F32 => "gemm_mma_tf32".to_owned(),
            Method::Mma => format!("gemm_mma_{input}_{output}"),
            Method::Wgmma(wgmma::Shape { cols, split }) => {
                let split = if split { "_split" } else { "" };
                format!("gemm_wgmma{split}_128x{cols}_{input}_{output}")
            }
            Method::WgmmaTf32 => "gemm_wgmma_tf32_256x128".to_owned(),
        };
        let batched = if self.batched { "_batched" } else { "" };
        method + &self.epilogue.suffix() + batched
    }

    fn generate(&self, target: Target) -> Result<PtxKernel> {
        let by_maps = matches!(self.method, Method::Wgmma(_) | Method::WgmmaTf32);
        if self.batched && by_maps {
            let requirement = "false for wgmma kernels, which take tensor maps: launch each matrix";
            return Err(Error::invalid("batched", "true", requirement));
        }
        match self.method {
            Method::Naive => naive::build(self, target),
            Method::Tiled(tile) => tiled::build(self, target, tile),
            Method::Wmma(width) => wmma::build(self, target, width),
            Method::Mma => mma::build(self, target),
            Method::Wgmma(shape) => wgmma::build(self, target, shape),
            Method::WgmmaTf32 => wgmma::build_tf32(self, target),
        }
    }
}
