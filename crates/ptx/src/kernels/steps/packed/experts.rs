//! Products by the matrices of experts.

use super::{PackedFormat, Weights, unit};
use crate::build::Builder;
use crate::error::Result;
use crate::inst::{Op, Special};
use crate::kernel::{Extent, Launch, PtxKernel};
use crate::kernels::Kernel;
use crate::kernels::common::{Combine, WARP, over_lanes};
use crate::types::PtxType::{F32, S32, U32};
use crate::types::Target;

const WARPS: u32 = 4;
const THREADS: u32 = WARPS * WARP;

/// Multiplies rows of f32 by the packed matrices of the experts that each row chose. The matrix of an expert follows that of
/// the one before. A warp has a row of weights.
///
/// Parameters: `x` (f32, `tokens × k`, or that for each expert that a token uses if the kernel mixes), `routes` (f32, of
/// [`RouteKernel`](crate::kernels::RouteKernel)), `words`, `scales` (as those of
/// [`PackedMatmulKernel`](super::PackedMatmulKernel)), `y` (f32), all aligned to 16 bytes; `tokens` (at most 65,535), `rows`
/// (of an expert's matrix), `k`, `used` (the experts of a token, at most 65,535), `results` (1 if the kernel mixes, else
/// `used`), `stride` (elements from a row of `y` to the next), `mixes` (1 to add the weighted sum of a token's products to
/// `rows` elements of `y`, 0 to write the products one after the other), `group_shift` (u32); `least`, `scale` (of sums)
/// (f32).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PackedExpertsKernel {
    format: PackedFormat,
}

impl PackedExpertsKernel {
    /// Creates a kernel for weights of a format.
    pub fn new(format: PackedFormat) -> Self {
        Self { format }
    }
}

impl Kernel for PackedExpertsKernel {
    fn name(&self) -> String {
        format!("experts_{}", self.format.name())
    }

    fn generate(&self, target: Target) -> Result<PtxKernel> {
        let grid = [
            Extent::Tiles("rows", WARPS),
            Extent::Param("tokens"),
            Extent::Param("results"),
        ];
        let launch = Launch::new(THREADS, grid).overlapping(target);
        let mut k = Builder::new(self.name(), target, launch);
        let [x, routes] = ["x", "routes"].map(|name| k.pointer(name, F32));
        let words = k.pointer("words", U32);
        let [scales, y] = ["scales", "y"].map(|name| k.pointer(name, F32));
        let [_, rows, depth, used] =
            ["tokens", "rows", "k", "used"].map(|name| k.scalar(name, U32));
        let [_, stride, mixes, group_shift] =
            ["results", "stride", "mixes", "group_shift"].map(|name| k.scalar(name, U32));
        let [least, scale] = ["least", "scale"].map(|name| k.scalar(name, F32));
        let weights = Weights::new(
            &mut k,
            self.format,
            [words, scales],
            [depth, group_shift, least],
        );
        let mixes = k.ne(mixes, 0);
        let (block, thread) = (k.special(Special::CtaidX), k.special(Special::TidX));
        let (token, own) = (k.special(Special::CtaidY), k.special(Special::CtaidZ));
        let (warp, lane) = (k.shr(thread, 5), k.and(thread, WARP - 1));
        let row = k.fma(block, WARPS, warp);
        let exists = k.lt(row, rows);
        let after = k.add(own, 1);
        let end = k.select(mixes, used, after);
        let sum = k.value(F32, 0.0f32);
        k.wait_for_grid();
        k.for_range(own, end, 1, |k, i| {
            // Numbers that the products do not need are computed here, so that their registers are free meanwhile.
            let (both, zero) = (k.mul(used, 2), k.value(U32, 0));
            let route = k.at_2d(routes, token, both, i, 4);
            let expert = k.ld(Op::LdGlobal, F32, route, 0);
            let expert = k.convert(Op::CvtS32F32, S32, &[expert.into()]);
            let expert = k.value(U32, expert);
            let route = k.at(route, used, 4);
            let weight = k.ld(Op::LdGlobal, F32, route, 0);
            let weight = k.select(mixes, weight, 1.0f32);
            let last = k.sub(rows, 1);
            let known = k.min(row, last);
            let of_weights = k.fma(expert, rows, known);
            let of_weights = weights.row(k, of_weights);
            let of_expert = k.fma(token, used, i);
            let of_x = k.select(mixes, of_expert, token);
            let x = k.at_2d(x, of_x, depth, zero, 4);
            let product = k.value(F32, 0.0f32);
            k.for_range(lane, weights.units, WARP, |k, i| {
                let x = unit(k, self.format, x, i);
                let loaded = weights.load(k, &of_weights, i);
                for (x, weight) in x.into_iter().zip(weights.values(k, &loaded)) {
                    k.fma_assign(product, x, weight);
                }
            });
            k.fma_assign(sum, weight, product);
        });
        let sum = over_lanes(&mut k, Combine::Sum, sum, WARP);
        let first = k.eq(lane, 0);
        let writes = k.and(first, exists);
        k.when(writes, |k| {
            let column = k.fma(own, rows, row);
            let at = k.at_2d(y, token, stride, column, 4);
            let result = k.value(F32, sum);
            k.when(mixes, |k| {
                let old = k.ld(Op::LdGlobal, F32, at, 0);
                let new = k.fma(sum, scale, old);
                k.assign(result, new);
            });
            k.st_global(F32, at, 0, result);
        });
        k.finish()
    }
}
