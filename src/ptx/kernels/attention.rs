//! Attention, forward: `softmax(scale · Q · Kᵀ) · V` for every head.

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
use crate::ptx::build::Builder;
use crate::ptx::error::{Error, Result};
use crate::ptx::inst::{Op, Reg, Special};
use crate::ptx::kernel::PtxKernel;
use crate::ptx::types::PtxType::{self, F32, U32, U64};
use crate::ptx::types::Target;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Method {
    Simple,
    Flash,
    FlashMma,
    FlashTiled,
}

/// Attention of `heads` heads of `dim` values: `q` and `o` are `batch × heads × seq_q × dim`, `k` and
/// `v` are `batch × kv_heads × seq_k × dim`, all row-major; `heads` is a multiple of `kv_heads`, and
/// each of these serves as many heads that follow each other.
///
/// Parameters: `q`, `k`, `v`, `o`, `batch`, `heads`, `kv_heads`, `seq_q`, `seq_k` (u32, at least 1),
/// `scale` (f32, positive). `batch` and `heads` are at most 65,535 each, the most blocks of a grid along
/// z and y: [`PtxKernel::grid`] refuses more. With a causal mask, query `i` sees the keys up to
/// `i + seq_k − seq_q`, and `seq_q` may not exceed `seq_k`. Keys whose score is −∞ count nothing; a
/// query that has no others is NaN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AttentionKernel {
    method: Method,
    ty: PtxType,
    dim: u32,
    causal: bool,
}

impl AttentionKernel {
    /// f32, one warp to a query, for any GPU; `dim` is a multiple of 32 up to 256. Good for
    /// reading, and for single queries.
    pub fn simple(dim: u32) -> Self {
        AttentionKernel {
            method: Method::Simple,
            ty: F32,
            dim,
            causal: false,
        }
    }

    /// bf16 or f16 on Hopper's tensor cores (`sm_90a`), for `dim` 64 or 128: tiles of keys pass
    /// by in shared memory, and no matrix of scores is ever stored (Dao et al., 2022; Shah et
    /// al., 2024). `q`, `k` and `v` are tensor maps; `o` has the inputs' type.
    pub fn flash(ty: PtxType, dim: u32) -> Self {
        AttentionKernel {
            method: Method::Flash,
            ty,
            dim,
            causal: false,
        }
    }

    /// The same by `mma.sync`, on the tensor cores of any GPU since Ampere (`sm_80`; Dao, 2023).
    /// `q`, `k`, `v` and `o` are aligned to 16 bytes.
    pub fn flash_mma(ty: PtxType, dim: u32) -> Self {
        AttentionKernel {
            method: Method::FlashMma,
            ty,
            dim,
            causal: false,
        }
    }

    /// f32 by tiles in shared memory and registers, on any GPU, for `dim` 64 or 128 and matrices
    /// aligned to 16 bytes (Dao et al., 2022).
    pub fn flash_tiled(dim: u32) -> Self {
        AttentionKernel {
            method: Method::FlashTiled,
            ty: F32,
            dim,
            causal: false,
        }
    }

    /// With a causal mask.
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

/// The sizes, and this block's place among the heads.
struct Heads {
    seq_q: Reg,
    seq_k: Reg,
    scale: Reg,
    /// Which matrix of `q` and `o`, and which of `k` and `v`.
    plane: Reg,
    kv_plane: Reg,
}

impl Heads {
    /// Declares the parameters after the matrices. Blocks have their head along y and their
    /// batch along z.
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

/// Where row `row` of plane `plane` lies, of planes of `rows` rows of so many bytes.
fn row_at(k: &mut Builder, base: Reg, [plane, rows, row]: [Reg; 3], bytes: u32) -> Reg {
    let row = k.widen(row);
    let from = [plane.into(), rows.into(), row.into()];
    let row = k.op(Op::MadWide, U32, U64, &from);
    k.fma(row, i64::from(bytes), base)
}
