//! Biases and penalties of tokens.

use crate::build::Builder;
use crate::error::Result;
use crate::inst::{Op, Reg, Special};
use crate::kernel::{Extent, Launch, PtxKernel};
use crate::kernels::Kernel;
use crate::types::PtxType::{F32, S32, U32};
use crate::types::Target;

const THREADS: u32 = 64;

/// Adds biases to logits, and then lowers those of tokens that have occurred: a positive logit is divided by `repetition`,
/// another one multiplied, and `presence + frequency · count` is subtracted. Tokens without a logit change nothing.
///
/// Parameters: `changes` (f32, a token, its bias and how many times it occurred, for each change; a token has at most one),
/// `chosen` (f32, tokens that occurred once more each), `logits` (f32, `n`), `n`, `count` (the changes), `most` (the changes
/// and the chosen tokens) (u32), `repetition` (not 0), `presence`, `frequency` (f32).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ChangeLogitsKernel;

impl Kernel for ChangeLogitsKernel {
    fn name(&self) -> String {
        "change_logits".to_owned()
    }

    fn generate(&self, target: Target) -> Result<PtxKernel> {
        let grid = [
            Extent::Tiles("most", THREADS),
            Extent::Fixed(1),
            Extent::Fixed(1),
        ];
        let launch = Launch::new(THREADS, grid).overlapping(target);
        let mut k = Builder::new(self.name(), target, launch);
        let tokens = Tokens::declare(&mut k);
        let [n, count, most] = ["n", "count", "most"].map(|name| k.scalar(name, U32));
        let [repetition, presence, frequency] =
            ["repetition", "presence", "frequency"].map(|name| k.scalar(name, F32));
        let (block, thread) = (k.special(Special::CtaidX), k.special(Special::TidX));
        let i = k.fma(block, THREADS, thread);
        let since = k.sub(most, count);
        let zero = k.value(U32, 0);
        k.wait_for_grid();
        let [token, bias, times] = [-1.0, 0.0, 0.0].map(|value: f32| k.value(F32, value));
        let is_change = k.lt(i, count);
        k.when(is_change, |k| {
            let [of_change, own, before] = tokens.change(k, i);
            k.assign(token, of_change);
            k.assign(bias, own);
            let more = tokens.occurrences(k, token, [zero, since]);
            let all = k.add(before, more);
            k.assign(times, all);
        });
        let exists = k.lt(i, most);
        let is_chosen = k.ge(i, count);
        let is_chosen = k.and(exists, is_chosen);
        k.when(is_chosen, |k| {
            let place = k.sub(i, count);
            let own = tokens.chosen(k, place);
            // Its change, or the first one of its kind, counts it.
            let earlier = tokens.occurrences(k, own, [zero, place]);
            let listed = tokens.changes_of(k, own, count);
            let counted = k.add(earlier, listed);
            let is_first = k.eq(counted, 0.0f32);
            k.when(is_first, |k| {
                k.assign(token, own);
                let all = tokens.occurrences(k, own, [place, since]);
                k.assign(times, all);
            });
        });
        let index = k.convert(Op::CvtS32F32, S32, &[token.into()]);
        // That of no token is beyond all.
        let index = k.value(U32, index);
        let has_logit = k.lt(index, n);
        k.when(has_logit, |k| {
            let at = k.at(tokens.logits, index, 4);
            let logit = k.ld(Op::LdGlobal, F32, at, 0);
            k.add_assign(logit, bias);
            let occurred = k.gt(times, 0.0f32);
            k.when(occurred, |k| {
                let positive = k.gt(logit, 0.0f32);
                let inverse = k.rcp(repetition);
                let factor = k.select(positive, inverse, repetition);
                let lowered = k.mul(logit, factor);
                let penalty = k.fma(frequency, times, presence);
                let lowered = k.sub(lowered, penalty);
                k.assign(logit, lowered);
            });
            k.st_global(F32, at, 0, logit);
        });
        k.finish()
    }
}

struct Tokens {
    changes: Reg,
    chosen: Reg,
    logits: Reg,
}

impl Tokens {
    fn declare(k: &mut Builder) -> Self {
        let [changes, chosen, logits] =
            ["changes", "chosen", "logits"].map(|name| k.pointer(name, F32));
        Self {
            changes,
            chosen,
            logits,
        }
    }

    /// Returns a change's token, bias and count.
    fn change(&self, k: &mut Builder, i: Reg) -> [Reg; 3] {
        let at = k.at(self.changes, i, 12);
        [0, 4, 8].map(|offset| k.ld(Op::LdGlobal, F32, at, offset))
    }

    fn chosen(&self, k: &mut Builder, i: Reg) -> Reg {
        let at = k.at(self.chosen, i, 4);
        k.ld(Op::LdGlobal, F32, at, 0)
    }

    /// Returns how often a token occurs among the chosen tokens from the first up to the end.
    fn occurrences(&self, k: &mut Builder, token: Reg, [first, end]: [Reg; 2]) -> Reg {
        let total = k.value(F32, 0.0f32);
        k.for_range(first, end, 1, |k, i| {
            let other = self.chosen(k, i);
            count_equal(k, total, [other, token]);
        });
        total
    }

    /// Returns the number of changes of a token.
    fn changes_of(&self, k: &mut Builder, token: Reg, count: Reg) -> Reg {
        let total = k.value(F32, 0.0f32);
        k.for_range(0, count, 1, |k, i| {
            let [other, ..] = self.change(k, i);
            count_equal(k, total, [other, token]);
        });
        total
    }
}

fn count_equal(k: &mut Builder, total: Reg, [a, b]: [Reg; 2]) {
    let equal = k.eq(a, b);
    let one = k.select(equal, 1.0f32, 0.0f32);
    k.add_assign(total, one);
}
