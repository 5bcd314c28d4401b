//! The choice of experts.

use super::argmax::{Best, rank_of};
use crate::build::Builder;
use crate::error::Result;
use crate::inst::{Op, Special};
use crate::kernel::{Extent, Launch, PtxKernel};
use crate::kernels::Kernel;
use crate::kernels::common::{Combine, WARP, over_lanes};
use crate::types::PtxType::{F32, U32};
use crate::types::Target;

/// Writes the numbers of the largest elements of each row, in order and the first of equal ones first, and then their
/// weights by softmax: a warp has a row.
///
/// Parameters: `logits` (f32, `rows × experts`), `routes` (f32, `rows × 2·used`: the numbers of a row's elements, and then
/// their weights), `rows`, `experts` (at most 2²⁴), `used` (from 1 to `experts`), `normalises` (1 if the weights that a row
/// gets add up to 1, 0 if those of all its elements do) (u32).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct RouteKernel;

impl Kernel for RouteKernel {
    fn name(&self) -> String {
        "route".to_owned()
    }

    fn generate(&self, target: Target) -> Result<PtxKernel> {
        let grid = [Extent::Param("rows"), Extent::Fixed(1), Extent::Fixed(1)];
        let launch = Launch::new(WARP, grid).overlapping(target);
        let mut k = Builder::new(self.name(), target, launch);
        let [logits, routes] = ["logits", "routes"].map(|name| k.pointer(name, F32));
        let [_, experts, used, normalises] =
            ["rows", "experts", "used", "normalises"].map(|name| k.scalar(name, U32));
        let (row, lane) = (k.special(Special::CtaidX), k.special(Special::TidX));
        let zero = k.value(U32, 0);
        let logits = k.at_2d(logits, row, experts, zero, 4);
        let both = k.mul(used, 2);
        let routes = k.at_2d(routes, row, both, zero, 4);
        let first_lane = k.eq(lane, 0);
        let last = k.sub(experts, 1);
        // The element before, the largest one, and the sum of weights relative to it.
        let before = [k.value(U32, 0), k.value(U32, 0)];
        let [largest, total] = [0, 0].map(|_| k.value(F32, 0.0f32));
        k.wait_for_grid();
        k.for_range(0, used, 1, |k, number| {
            let is_first = k.eq(number, 0);
            let best = Best::new(k);
            k.for_range(lane, experts, WARP, |k, i| {
                let at = k.at(logits, i, 4);
                let value = k.ld(Op::LdGlobal, F32, at, 0);
                let rank = rank_of(k, value);
                let lower = k.lt(rank, before[0]);
                let same = k.eq(rank, before[0]);
                let later = k.gt(i, before[1]);
                let same = k.and(same, later);
                let left = k.or(lower, same);
                let left = k.or(left, is_first);
                // Those that were chosen rank below all numbers.
                let rank = k.select(left, rank, 0u32);
                let index = k.select(left, i, u32::MAX);
                best.offer(k, [rank, index]);
            });
            best.over_lanes(k);
            k.assign(before[0], best.rank);
            k.assign(before[1], best.index);
            let index = k.min(best.index, last);
            let at = k.at(logits, index, 4);
            let value = k.ld(Op::LdGlobal, F32, at, 0);
            k.guarded(is_first, true, |k| k.assign(largest, value));
            let below = k.sub(value, largest);
            let weight = k.exp(below);
            k.add_assign(total, weight);
            k.when(first_lane, |k| {
                let to = k.at(routes, number, 4);
                let index = k.convert(Op::CvtF32U32, F32, &[index.into()]);
                k.st_global(F32, to, 0, index);
                let to = k.at(to, used, 4);
                k.st_global(F32, to, 0, weight);
            });
        });
        let all = k.value(F32, 0.0f32);
        k.for_range(lane, experts, WARP, |k, i| {
            let at = k.at(logits, i, 4);
            let value = k.ld(Op::LdGlobal, F32, at, 0);
            let below = k.sub(value, largest);
            let weight = k.exp(below);
            k.add_assign(all, weight);
        });
        let all = over_lanes(&mut k, Combine::Sum, all, WARP);
        let normalises = k.ne(normalises, 0);
        let total = k.select(normalises, total, all);
        k.when(first_lane, |k| {
            k.for_range(0, used, 1, |k, number| {
                let number = k.add(number, used);
                let at = k.at(routes, number, 4);
                let weight = k.ld(Op::LdGlobal, F32, at, 0);
                let weight = k.div(weight, total);
                k.st_global(F32, at, 0, weight);
            });
        });
        k.finish()
    }
}
