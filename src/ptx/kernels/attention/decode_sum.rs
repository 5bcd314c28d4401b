//! The end of attention whose keys were divided.

use super::decode::LOWEST;
use crate::ptx::build::Builder;
use crate::ptx::error::{Error, Result};
use crate::ptx::inst::{Op, Reg, Special};
use crate::ptx::kernel::{Extent, Launch, PtxKernel};
use crate::ptx::kernels::Kernel;
use crate::ptx::kernels::common::Combine;
use crate::ptx::kernels::values::{check, first_target, load, store};
use crate::ptx::types::PtxType::{self, F32, U32};
use crate::ptx::types::Target;

/// Puts together what [`super::DecodeAttentionKernel`] leaves of each part of the keys.
///
/// Parameters: `sums`, `stats` (f32, as that leaves them), `o` (of the kernel's type, `rows × dim`),
/// `rows` (`batch × heads`), `splits` (u32, at least 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DecodeSumKernel {
    ty: PtxType,
    dim: u32,
}

impl DecodeSumKernel {
    /// For results of bf16, f16 or f32; `dim` is a multiple of 4 up to 1024.
    pub fn new(ty: PtxType, dim: u32) -> Self {
        DecodeSumKernel { ty, dim }
    }
}

impl Kernel for DecodeSumKernel {
    fn name(&self) -> String {
        format!("attention_decode_sum_{}_{}", self.ty, self.dim)
    }

    fn first_target(&self) -> Target {
        first_target(self.ty)
    }

    fn build(&self, target: Target) -> Result<PtxKernel> {
        check(self.ty)?;
        if !self.dim.is_multiple_of(4) || !(4..=1024).contains(&self.dim) {
            return Err(Error::Invalid {
                what: "dim",
                value: self.dim.to_string(),
                requirement: "a multiple of 4 up to 1024",
            });
        }
        let grid = [Extent::Param("rows"), Extent::Fixed(1), Extent::Fixed(1)];
        let launch = Launch::new(self.dim / 4, grid).overlapping(target);
        let mut k = Builder::new(self.name(), target, launch);
        let (sums, stats) = (k.pointer("sums", F32), k.pointer("stats", F32));
        let o = k.pointer("o", self.ty);
        let _ = k.scalar("rows", U32);
        let splits = k.scalar("splits", U32);
        let (row, thread) = (k.special(Special::CtaidX), k.special(Special::TidX));
        k.wait_for_grid();
        let first = k.mul(row, splits);
        let end = k.add(first, splits);
        let max = k.value(F32, LOWEST);
        k.for_range(first, end, 1, |k, part| {
            let at = k.at(stats, part, 8);
            let of_part = k.ld_global(F32, at, 0);
            Combine::Max.apply(k, max, of_part);
        });
        let total = k.value(F32, 0.0f32);
        let values = k.filled(F32, 4, 0.0f32);
        k.for_range(first, end, 1, |k, part| {
            let at = k.at(stats, part, 8);
            let stat = k.ld_vector(Op::LdGlobalNc, F32, 2, at, 0);
            let down = k.sub(stat[0], max);
            let weight = k.ex2(down);
            k.fma_assign(total, weight, stat[1]);
            let at = k.at(sums, part, self.dim * 4);
            let at = k.at(at, thread, 16);
            let part = load(k, F32, 4, at);
            for (&value, part) in values.iter().zip(part) {
                k.fma_assign(value, weight, part);
            }
        });
        let scale = k.rcp(total);
        let values: Vec<Reg> = values.iter().map(|&value| k.mul(value, scale)).collect();
        let to = k.at(o, row, self.dim * self.ty.bytes());
        let to = k.at(to, thread, 4 * self.ty.bytes());
        store(&mut k, self.ty, &values, to);
        k.finish()
    }
}
