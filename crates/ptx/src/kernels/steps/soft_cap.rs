//! Bounded scores and logits.

use crate::build::Builder;
use crate::error::Result;
use crate::inst::{Op, Reg, Special};
use crate::kernel::{Extent, Launch, PtxKernel};
use crate::kernels::Kernel;
use crate::types::PtxType::{F32, U32};
use crate::types::Target;

const THREADS: u32 = 128;

/// Bounds elements in place: `x[i] = cap · tanh(x[i] / cap)`, with an error of 2⁻²¹ of the cap.
///
/// Parameters: `x` (f32, `len` elements), `len` (u32), `cap` (f32, positive).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SoftCapKernel;

impl Kernel for SoftCapKernel {
    fn name(&self) -> String {
        "soft_cap".to_owned()
    }

    fn generate(&self, target: Target) -> Result<PtxKernel> {
        let grid = [
            Extent::Tiles("len", THREADS),
            Extent::Fixed(1),
            Extent::Fixed(1),
        ];
        let launch = Launch::new(THREADS, grid).overlapping(target);
        let mut k = Builder::new(self.name(), target, launch);
        let x = k.pointer("x", F32);
        let len = k.scalar("len", U32);
        let cap = k.scalar("cap", F32);
        let (block, thread) = (k.special(Special::CtaidX), k.special(Special::TidX));
        let i = k.fma(block, THREADS, thread);
        let exists = k.lt(i, len);
        k.wait_for_grid();
        k.when(exists, |k| {
            let at = k.at(x, i, 4);
            let value = k.ld(Op::LdGlobal, F32, at, 0);
            soft_cap(k, value, cap);
            k.st_global(F32, at, 0, value);
        });
        k.finish()
    }
}

/// Replaces a value `x` by `cap · tanh(x / cap)`.
pub(super) fn soft_cap(k: &mut Builder, x: Reg, cap: Reg) {
    let quotient = k.div(x, cap);
    let doubled = k.mul(quotient, 2.0f32);
    // An infinite exponential gives the cap.
    let exponential = k.exp(doubled);
    let sum = k.add(exponential, 1.0f32);
    let inverse = k.rcp(sum);
    let below = k.mul(inverse, -2.0f32);
    let tanh = k.add(below, 1.0f32);
    let capped = k.mul(tanh, cap);
    k.assign(x, capped);
}
