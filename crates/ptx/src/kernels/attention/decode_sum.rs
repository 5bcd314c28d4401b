//! The combination of the parts of attention whose keys are split.

use super::state::LOWEST;
use crate::build::Builder;
use crate::error::{Error, Result};
use crate::inst::{Op, Reg, Special};
use crate::kernel::{Extent, Launch, PtxKernel};
use crate::kernels::Kernel;
use crate::kernels::values::{check, first_target, load, store};
use crate::types::PtxType::{self, F32, U32};
use crate::types::Target;

/// Combines the results of [`super::DecodeAttentionKernel`] for the parts of the keys.
///
/// Parameters: `sums`, `stats` (f32, as that leaves them), `o` (of the kernel's type, `rows × dim`),
/// `rows` (`batch × heads`), `splits` (u32, at least 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DecodeSumKernel {
    ty: PtxType,
    dim: u32,
}

impl DecodeSumKernel {
    /// Returns the number of threads that share a row's parts, for each four elements.
    fn teams(self) -> u32 {
        (1024 / (self.dim / 4)).min(8)
    }

    /// Creates a kernel for results of bf16, f16 or f32; `dim` is a multiple of 4 up to 1024.
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

    fn generate(&self, target: Target) -> Result<PtxKernel> {
        check(self.ty)?;
        if !self.dim.is_multiple_of(4) || !(4..=1024).contains(&self.dim) {
            let dim = self.dim.to_string();
            return Err(Error::invalid("dim", dim, "a multiple of 4 up to 1024"));
        }
        let grid = [Extent::Param("rows"), Extent::Fixed(1), Extent::Fixed(1)];
        let (team, teams) = (self.dim / 4, self.teams());
        let launch = Launch::new(team * teams, grid).overlapping(target);
        let mut k = Builder::new(self.name(), target, launch);
        let (sums, stats) = (k.pointer("sums", F32), k.pointer("stats", F32));
        let o = k.pointer("o", self.ty);
        let _ = k.scalar("rows", U32);
        let splits = k.scalar("splits", U32);
        let (row, thread) = (k.special(Special::CtaidX), k.special(Special::TidX));
        let (number, lane) = (k.div(thread, team), k.rem(thread, team));
        k.wait_for_grid();
        let first = k.mul(row, splits);
        let end = k.add(first, splits);
        let own = k.add(first, number);
        let part = Part::new(&mut k);
        k.for_range(own, end, teams, |k, split| {
            let at = k.at(stats, split, 8);
            let stat = k.ld_vector(Op::LdGlobalNc, F32, 2, at, 0);
            let at = k.at(sums, split, self.dim * 4);
            let at = k.at(at, lane, 16);
            let values = load(k, F32, 4, at);
            part.add(k, [stat[0], stat[1]], &values);
        });
        let shared = k.shared("parts", F32, team * teams * 8);
        let to = k.fma(thread, 32, shared);
        k.st_shared(F32, to, 0, part.values.as_slice());
        k.st_shared(F32, to, 16, [part.max, part.sum].as_slice());
        k.barrier();
        let stores = k.lt(thread, team);
        k.when(stores, |k| {
            let total = Part::new(k);
            let from = k.fma(lane, 32, shared);
            for i in 0..teams {
                let at = (i * team * 32) as i32;
                let values = k.ld_vector(Op::LdShared, F32, 4, from, at);
                let stat = k.ld_vector(Op::LdShared, F32, 2, from, at + 16);
                total.add(k, [stat[0], stat[1]], &values);
            }
            let scale = k.rcp(total.sum);
            let values = total.values.iter().map(|&value| k.mul(value, scale));
            let values: Vec<Reg> = values.collect();
            let to = k.at(o, row, self.dim * self.ty.bytes());
            let to = k.at(to, lane, 4 * self.ty.bytes());
            store(k, self.ty, &values, to);
        });
        k.finish()
    }
}

/// The sum of several parts relative to the largest score, for four elements of a row.
struct Part {
    max: Reg,
    sum: Reg,
    values: Vec<Reg>,
}

impl Part {
    fn new(k: &mut Builder) -> Self {
        Part {
            max: k.value(F32, LOWEST),
            sum: k.value(F32, 0.0f32),
            values: k.filled(F32, 4, 0.0f32),
        }
    }

    fn add(&self, k: &mut Builder, [max, sum]: [Reg; 2], values: &[Reg]) {
        let both = k.max(self.max, max);
        let [old, new] = [self.max, max].map(|of| {
            let down = k.sub(of, both);
            k.ex2(down)
        });
        k.assign(self.max, both);
        let pairs = self.values.iter().zip(values).chain([(&self.sum, &sum)]);
        for (&total, &value) in pairs {
            k.mul_assign(total, old);
            k.fma_assign(total, new, value);
        }
    }
}
