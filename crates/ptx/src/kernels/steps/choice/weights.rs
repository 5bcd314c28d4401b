//! Probabilities of tokens as fractions of the likeliest one's.

use crate::build::Builder;
use crate::error::Result;
use crate::inst::{Op, Reg, Special};
use crate::kernel::{Extent, Launch, PtxKernel};
use crate::kernels::Kernel;
use crate::kernels::common::{BlockReduce, Combine};
use crate::types::PtxType::{F32, U32};
use crate::types::Target;

const THREADS: u32 = 256;

/// Below all logits but those of forbidden tokens.
const FORBIDDEN: f32 = -1e29;

/// Adds up the weights `exp((x − largest) / temperature)` that are at least a limit. Elements below −10²⁹ are skipped.
///
/// Parameters: `x` (f32, `n` elements), `largest` (f32, one element), `sums` (f32, one for each block), `n`, `blocks` (u32),
/// `temperature` (not 0), `least` (f32, the limit).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SumWeightsKernel;

impl Kernel for SumWeightsKernel {
    fn name(&self) -> String {
        "sum_weights".to_owned()
    }

    fn generate(&self, target: Target) -> Result<PtxKernel> {
        let grid = [Extent::Param("blocks"), Extent::Fixed(1), Extent::Fixed(1)];
        let launch = Launch::new(THREADS, grid).overlapping(target);
        let mut k = Builder::new(self.name(), target, launch);
        let [x, largest, sums] = ["x", "largest", "sums"].map(|name| k.pointer(name, F32));
        let [n, blocks] = ["n", "blocks"].map(|name| k.scalar(name, U32));
        let [temperature, least] = ["temperature", "least"].map(|name| k.scalar(name, F32));
        let (block, thread) = (k.special(Special::CtaidX), k.special(Special::TidX));
        let reduce = BlockReduce::new(&mut k, THREADS, false);
        let first = k.fma(block, THREADS, thread);
        let step = k.mul(blocks, THREADS);
        k.wait_for_grid();
        let largest = k.ld(Op::LdGlobal, F32, largest, 0);
        let sum = k.value(F32, 0.0f32);
        k.for_range(first, n, step, |k, i| {
            let at = k.at(x, i, 4);
            let x = k.ld(Op::LdGlobal, F32, at, 0);
            let weight = weight(k, x, [largest, temperature]);
            let counts = k.ge(weight, least);
            let weight = k.select(counts, weight, 0.0f32);
            k.add_assign(sum, weight);
        });
        let sum = reduce.all(&mut k, Combine::Sum, sum);
        let first = k.eq(thread, 0);
        k.when(first, |k| {
            let to = k.at(sums, block, 4);
            k.st_global(F32, to, 0, sum);
        });
        k.finish()
    }
}

/// Returns a token's weight.
pub(super) fn weight(k: &mut Builder, logit: Reg, [largest, temperature]: [Reg; 2]) -> Reg {
    let down = k.sub(logit, largest);
    let down = k.div(down, temperature);
    let weight = k.exp(down);
    let forbidden = k.lt(logit, FORBIDDEN);
    k.select(forbidden, 0.0f32, weight)
}
