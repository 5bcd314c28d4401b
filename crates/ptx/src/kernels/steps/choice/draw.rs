//! A draw of a token.

use super::rank::RankKernel;
use super::weights::weight;
use crate::build::Builder;
use crate::error::Result;
use crate::inst::{Op, Reg, Special};
use crate::kernel::{Extent, Launch, PtxKernel};
use crate::kernels::Kernel;
use crate::types::PtxType::{F32, U32};
use crate::types::Target;

const RANKED: u32 = RankKernel::RANKED as u32;

/// Writes the index of the token that a random number draws among ranked ones, by their probabilities within limits; −1
/// where it may be one that is not ranked, or where the first one is NaN.
///
/// Parameters: `ranked` (f32, 64 pairs of a logit and its index, the largest first), `sums` (f32, whose sum is that of all
/// [weights](super::SumWeightsKernel); not read where the ranked ones are all), `index` (f32, one element), `count` (how
/// many of the ranked ones may be drawn, at most 64), `is_all` (1 if limits leave out all that are not ranked), `parts` (the
/// number of sums) (u32), `temperature` (not 0), `top_p` (the share of the probabilities that the likeliest tokens must
/// have, 1 for all), `min_p` (the least weight), `fraction` (f32, the random number, from 0 to below 1). `ranked` is aligned
/// to 8 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct DrawKernel;

impl Kernel for DrawKernel {
    fn name(&self) -> String {
        "draw".to_owned()
    }

    fn generate(&self, target: Target) -> Result<PtxKernel> {
        let launch = Launch::new(RANKED, [Extent::Fixed(1); 3]).overlapping(target);
        let mut k = Builder::new(self.name(), target, launch);
        let [ranked, sums, index] = ["ranked", "sums", "index"].map(|name| k.pointer(name, F32));
        let [count, is_all, parts] = ["count", "is_all", "parts"].map(|name| k.scalar(name, U32));
        let [temperature, top_p, min_p, fraction] =
            ["temperature", "top_p", "min_p", "fraction"].map(|name| k.scalar(name, F32));
        let thread = k.special(Special::TidX);
        let weights = k.shared("weights", F32, RANKED);
        k.wait_for_grid();
        let largest = k.ld(Op::LdGlobal, F32, ranked, 0);
        let at = k.at(ranked, thread, 8);
        let logit = k.ld(Op::LdGlobal, F32, at, 0);
        let own = weight(&mut k, logit, [largest, temperature]);
        let to = k.fma(thread, 4, weights);
        k.st_shared(F32, to, 0, own);
        k.barrier();
        let draw = Drawing {
            ranked,
            weights,
            count,
            is_all: k.ne(is_all, 0),
        };
        let first = k.eq(thread, 0);
        k.when(first, |k| {
            let (kept, total) = draw.within_least(k, min_p);
            let left_out = k.lt(kept, count);
            let is_all = k.or(draw.is_all, left_out);
            let others = k.not(is_all);
            k.when(others, |k| {
                let all = k.value(F32, 0.0f32);
                k.for_range(0, parts, 1, |k, i| {
                    let at = k.at(sums, i, 4);
                    let part = k.ld(Op::LdGlobal, F32, at, 0);
                    k.add_assign(all, part);
                });
                k.assign(total, all);
            });
            // Whether the kept ones are all that may be drawn.
            let one = k.value(U32, 1);
            let is_decided = k.select(is_all, one, 0u32);
            let has_nucleus = k.lt(top_p, 1.0f32);
            k.when(has_nucleus, |k| {
                let enough = k.mul(top_p, total);
                let (nucleus, of_nucleus) = draw.nucleus(k, kept, enough);
                let reached = k.ge(of_nucleus, enough);
                let reached = k.select(reached, one, is_decided);
                k.assign(is_decided, reached);
                k.assign(kept, nucleus);
                k.assign(total, of_nucleus);
            });
            let rest = k.mul(fraction, total);
            let drawn = draw.drawn(k, kept, rest);
            let found = k.ge(drawn, 0.0f32);
            let decided = k.ne(is_decided, 0);
            let first = k.ld(Op::LdGlobal, F32, ranked, 4);
            // Rounding leaves a rest among all.
            let otherwise = k.select(decided, first, -1.0f32);
            let drawn = k.select(found, drawn, otherwise);
            let undecided_nucleus = k.not(decided);
            let undecided_nucleus = k.and(has_nucleus, undecided_nucleus);
            let drawn = k.select(undecided_nucleus, -1.0f32, drawn);
            let is_number = k.eq(largest, largest);
            let drawn = k.select(is_number, drawn, -1.0f32);
            k.st_global(F32, index, 0, drawn);
        });
        k.finish()
    }
}

struct Drawing {
    ranked: Reg,
    weights: Reg,
    count: Reg,
    is_all: Reg,
}

impl Drawing {
    fn weight(&self, k: &mut Builder, i: Reg) -> Reg {
        let at = k.fma(i, 4, self.weights);
        k.ld_shared(F32, at, 0)
    }

    /// Counts the tokens at the beginning, up to the first one that has less than the least weight or is forbidden.
    /// Returns their number and the sum of their weights.
    fn within_least(&self, k: &mut Builder, least: Reg) -> (Reg, Reg) {
        let (kept, total) = (k.value(U32, 0), k.value(F32, 0.0f32));
        k.for_range(0, self.count, 1, |k, i| {
            let weight = self.weight(k, i);
            let enough = k.ge(weight, least);
            let some = k.gt(weight, 0.0f32);
            let keeps = k.and(enough, some);
            // All before it are kept.
            let next = k.eq(kept, i);
            let keeps = k.and(keeps, next);
            k.when(keeps, |k| {
                k.add_assign(kept, 1);
                k.add_assign(total, weight);
            });
        });
        (kept, total)
    }

    /// Returns the least number of kept tokens, at least one, whose sum of weights is large enough, and that sum.
    fn nucleus(&self, k: &mut Builder, kept: Reg, enough: Reg) -> (Reg, Reg) {
        let (nucleus, total) = (k.value(U32, 0), k.value(F32, 0.0f32));
        k.for_range(0, kept, 1, |k, i| {
            let first = k.eq(i, 0);
            let below = k.lt(total, enough);
            let takes = k.or(first, below);
            let next = k.eq(nucleus, i);
            let takes = k.and(takes, next);
            k.when(takes, |k| {
                let weight = self.weight(k, i);
                k.add_assign(nucleus, 1);
                k.add_assign(total, weight);
            });
        });
        (nucleus, total)
    }

    /// Returns the index of the token at which the weights so far exceed `rest`, or −1.
    fn drawn(&self, k: &mut Builder, kept: Reg, rest: Reg) -> Reg {
        let drawn = k.value(F32, -1.0f32);
        k.for_range(0, kept, 1, |k, i| {
            let weight = self.weight(k, i);
            let after = k.sub(rest, weight);
            k.assign(rest, after);
            let below = k.lt(rest, 0.0f32);
            let undrawn = k.lt(drawn, 0.0f32);
            let draws = k.and(below, undrawn);
            k.when(draws, |k| {
                let at = k.at(self.ranked, i, 8);
                let index = k.ld(Op::LdGlobal, F32, at, 4);
                k.assign(drawn, index);
            });
        });
        drawn
    }
}
