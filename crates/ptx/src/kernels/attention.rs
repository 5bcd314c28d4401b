//! Forward attention: `softmax(scale · Q · Kᵀ) · V` for every head.

mod decode;
mod decode_sum;
mod flash;
mod mma;
mod part;
mod simple;
mod state;
mod tiled;

pub use decode::DecodeAttentionKernel;
pub use decode_sum::DecodeSumKernel;

use super::Kernel;
use crate::build::Builder;
use crate::error::{Error, Result};
use crate::inst::{Op, Reg, Special};
use crate::kernel::PtxKernel;
use crate::types::PtxType::{self, F32, U32, U64};
use crate::types::Target;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Method {
    Simple,
    Flash,
    FlashMma,
    FlashTiled,
}

/// Attention with `heads` heads of dimension `dim`. `q` and `o` have shape `batch × heads × seq_q ×
/// dim`, `k` and `v` have shape `batch × kv_heads × seq_k × dim`, all row-major. `heads` is a
/// multiple of `kv_heads`, and consecutive query heads share a key head.
///
/// Parameters: `q`, `k`, `v`, `o`, `batch`, `heads`, `kv_heads`, `seq_q`, `seq_k` (u32, at least
/// 1), `scale` (f32, positive). `batch` and `heads` are at most 65,535 each, the limits of a grid
/// along z and y: [`PtxKernel::grid`] returns an error for more. With a causal mask, query `i` sees
/// the keys up to `i + seq_k − seq_q`, and `seq_q` may not exceed `seq_k`. Keys with a score of −∞
/// have weight 0; a query that has no other keys gives NaN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AttentionKernel {
    method: Method,
    ty: PtxType,
    dim: u32,
    causal: bool,
}

impl AttentionKernel {
    /// Attention in f32 with one warp for each query, on any GPU. `dim` is a multiple of 32 up to
    /// 256. It is a simple reference, and suits single queries.
    pub fn simple(dim: u32) -> Self {
        AttentionKernel {
            method: Method::Simple,
            ty: F32,
            dim,
            causal: false,
        }
    }

    /// Attention of bf16 or f16 on Hopper's tensor cores (`sm_90a`), for `dim` 64 or 128. Tiles of
    /// keys stream through shared memory, and the matrix of scores is never stored (Dao et al.,
    /// 2022; Shah et al., 2024). `q`, `k` and `v` are tensor maps; `o` has the inputs' type.
    pub fn flash(ty: PtxType, dim: u32) -> Self {
        AttentionKernel {
            method: Method::Flash,
            ty,
            dim,
            causal: false,
        }
    }

    /// Attention of bf16 or f16 with `mma.sync`, on the tensor cores of Ampere and later GPUs
    /// (`sm_80`; Dao, 2023), for `dim` 64 or 128. `q`, `k`, `v` and `o` are aligned to 16 bytes.
    pub fn flash_mma(ty: PtxType, dim: u32) -> Self {
        AttentionKernel {
            method: Method::FlashMma,
            ty,
            dim,
            causal: false,
        }
    }

    /// Attention in f32 with tiles in shared memory and registers, on any GPU, for `dim` 64 or 128
    /// and matrices aligned to 16 bytes (Dao et al., 2022).
    pub fn flash_tiled(dim: u32) -> Self {
        AttentionKernel {
            method: Method::FlashTiled,
            ty: F32,
            dim,
            causal: false,
        }
    }

    /// Adds a causal mask.
    #[must_use]
    pub fn causal(self) -> Self {
        AttentionKernel {
            causal: true,
            ..self
        }
    }
}

impl Kernel for AttentionKernel {
    fn name(&self) -> String {
        let method = match self.method {
            Method::Simple => "attention_simple",
            Method::Flash => "attention_flash",
            Method::FlashMma => "attention_flash_mma",
            Method::FlashTiled => "attention_flash_tiled",
        };
        let causal = if self.causal { "_causal" } else { "" };
        format!("{method}_{}_{}{causal}", self.ty, self.dim)
    }

    fn first_target(&self) -> Target {
        match self.method {
            Method::Simple | Method::FlashTiled => Target::Sm70,
            Method::Flash => Target::Sm90a,
            Method::FlashMma => Target::Sm80,
        }
    }

    fn generate(&self, target: Target) -> Result<PtxKernel> {
        match self.method {
            Method::Simple => simple::build(*self, target),
            Method::Flash => flash::build(*self, target),
            Method::FlashMma => mma::build(*self, target),
            Method::FlashTiled => tiled::build(*self, target),
        }
    }
}

impl AttentionKernel {
    fn check(self, allowed: &[u32], requirement: &'static str) -> Result<()> {
        if allowed.contains(&self.dim) {
            return Ok(());
        }
        Err(Error::invalid("dim", self.dim.to_string(), requirement))
    }
}

/// The sizes, and the head of this block.
struct Heads {
    seq_q: Reg,
    seq_k: Reg,
    scale: Reg,
    /// The index of this block's matrix in `q` and `o`, and in `k` and `v`.
    plane: Reg,
    kv_plane: Reg,
}

impl Heads {
    /// Declares the parameters after the matrices. The grid has heads along y and batches along z.
    fn declare(k: &mut Builder) -> Self {
        let _ = k.scalar("batch", U32);
        let (heads, kv_heads) = (k.scalar("heads", U32), k.scalar("kv_heads", U32));
        let (seq_q, seq_k) = (k.scalar("seq_q", U32), k.scalar("seq_k", U32));
        let scale = k.scalar("scale", F32);
        let (head, batch) = (k.special(Special::CtaidY), k.special(Special::CtaidZ));
        let sharing = k.div(heads, kv_heads);
        let kv_head = k.div(head, sharing);
        Heads {
            seq_q,
            seq_k,
            scale,
            plane: k.fma(batch, heads, head),
            kv_plane: k.fma(batch, kv_heads, kv_head),
        }
    }
}

/// Computes the address of row `row` of plane `plane`, where planes have `rows` rows of `bytes`
/// bytes.
fn row_at(k: &mut Builder, base: Reg, [plane, rows, row]: [Reg; 3], bytes: u32) -> Reg {
    let row = k.widen(row);
    let from = [plane.into(), rows.into(), row.into()];
    let row = k.op(Op::MadWide, U32, U64, &from);
    k.fma(row, i64::from(bytes), base)
}
