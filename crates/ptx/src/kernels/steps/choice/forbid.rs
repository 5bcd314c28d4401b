//! Tokens that may not be chosen.

use crate::build::Builder;
use crate::error::Result;
use crate::inst::{Op, Special};
use crate::kernel::{Extent, Launch, PtxKernel};
use crate::kernels::Kernel;
use crate::types::PtxType::{F32, U32};
use crate::types::Target;

const THREADS: u32 = 256;

/// Sets the logits of tokens that are not allowed to −10³⁰. This is below all other logits and has no probability.
///
/// Parameters: `allowed` (u32, bit `token % 32` of word `token / 32` allows a token), `logits` (f32, `n`), `n` (u32).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ForbidKernel;

impl ForbidKernel {
    /// The logit of a token that is not allowed.
    pub const LOGIT: f32 = -1e30;
}

impl Kernel for ForbidKernel {
    fn name(&self) -> String {
        "forbid".to_owned()
    }

    fn generate(&self, target: Target) -> Result<PtxKernel> {
        let grid = [
            Extent::Tiles("n", THREADS),
            Extent::Fixed(1),
            Extent::Fixed(1),
        ];
        let launch = Launch::new(THREADS, grid).overlapping(target);
        let mut k = Builder::new(self.name(), target, launch);
        let (allowed, logits) = (k.pointer("allowed", U32), k.pointer("logits", F32));
        let n = k.scalar("n", U32);
        let (block, thread) = (k.special(Special::CtaidX), k.special(Special::TidX));
        let token = k.fma(block, THREADS, thread);
        k.wait_for_grid();
        let exists = k.lt(token, n);
        k.when(exists, |k| {
            let place = k.shr(token, 5);
            let at = k.at(allowed, place, 4);
            let word = k.ld(Op::LdGlobal, U32, at, 0);
            let bit = k.and(token, 31);
            let bits = k.shr(word, bit);
            let is_allowed = k.and(bits, 1);
            let is_forbidden = k.eq(is_allowed, 0);
            k.when(is_forbidden, |k| {
                let at = k.at(logits, token, 4);
                let logit = k.value(F32, Self::LOGIT);
                k.st_global(F32, at, 0, logit);
            });
        });
        k.finish()
    }
}
