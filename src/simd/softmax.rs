//! Softmax of rows, and its logarithm.
//!
//! A row goes block by block, so that memory is passed twice and not three times: first each
//! block's exponentials are relative to its own maximum, then all are brought to the row's. The
//! rescaling is M. Milakov and N. Gimelshein's, "Online normalizer calculation for softmax"
//! (2018).

use super::InstructionSet;
use super::elementwise::{Binary, Larger, Unary, map, unary};
use super::functions::{Exp, Log};
use super::isa::{Isa, Kernel, dispatch};
use super::math;
use super::reduce::{Fold, Values, sum_lanes, sum_vectors};
use super::short_rows::{OfColumns, gain_side_by_side, short_rows};

/// The number of values in a block, which stays in the first-level cache between its maximum and its exponentials.
pub(super) const BLOCK: usize = 4096;

/// The number of vectors of exponentials that are added up before their sum goes to `f64`, which bounds the rounding
/// error.
const CHAIN: usize = 16;

/// [`softmax`] of any number of rows.
pub(super) fn softmax_rows(
    isa: InstructionSet,
    logarithm: bool,
    x: &[f32],
    cols: usize,
    y: &mut [f32],
) {
    if !gain_side_by_side(x.len() / cols.max(1), cols) {
        return softmax(isa, logarithm, x, cols, y);
    }
    let f = SideBySide { logarithm };
    short_rows(isa, f, x, cols, y);
}

/// Softmax of each row of `cols` values, or its logarithm.
pub(crate) fn softmax(isa: InstructionSet, logarithm: bool, x: &[f32], cols: usize, y: &mut [f32]) {
    let mut blocks = Vec::new();
    // No values are no rows, whatever their length.
    let cols = cols.max(1);
    for (x, y) in x.chunks_exact(cols).zip(y.chunks_exact_mut(cols)) {
        blocks.clear();
        let partials = &mut blocks;
        dispatch(isa, Exponentials { x, y, partials });
        let total = &RowTotal::of(isa, &mut blocks);
        let partials = &blocks;
        FinishRow {
            logarithm,
            x,
            y,
            partials,
            total,
        }
        .run(isa);
    }
}

/// The maximum of a block, the sum of its exponentials relative to it, and the factor that rescales
/// them to the row's maximum once that is known.
#[derive(Clone, Copy)]
pub(super) struct Partial {
    max: f32,
    sum: f64,
    rescaling: f64,
}

/// The factors that turn the exponentials of a row's blocks into the row's result.
pub(super) struct RowTotal {
    max: f32,
    sum: f64,
}

/// Writes `exp(xᵢ − m)`, where `m` is the maximum of a block, and adds the partial result of each
/// block to `partials`.
pub(super) struct Exponentials<'a> {
    pub(super) x: &'a [f32],
    pub(super) y: &'a mut [f32],
    pub(super) partials: &'a mut Vec<Partial>,
}

impl Kernel for Exponentials<'_> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        for (x, y) in self.x.chunks(BLOCK).zip(self.y.chunks_mut(BLOCK)) {
            // Where a value is NaN, its exponential and the sum are; where one is ∞, its own
            // difference is.
            let max = Fold { f: Larger, x }.run(isa);
            let sum = exponentials(isa, x, finite_below(max), y);
            let rescaling = 1.0;
            self.partials.push(Partial {
                max,
                sum,
                rescaling,
            });
        }
    }
}

/// A block of only −∞ has exponentials of 0; it is the row that may have no other values.
fn finite_below(max: f32) -> f32 {
    if max == f32::NEG_INFINITY {
        f32::MIN
    } else {
        max
    }
}

impl RowTotal {
    /// Combines the partial results of a row's blocks; NaN if an element is NaN or ∞, or all are
    /// −∞.
    pub(super) fn of(isa: InstructionSet, partials: &mut [Partial]) -> Self {
        // Where a maximum is NaN, so is a sum.
        let maxima = partials.iter().map(|partial| partial.max);
        let mut total = Self {
            max: maxima.fold(f32::NEG_INFINITY, f32::max),
            sum: 0.0,
        };
        for partial in partials {
            // Of many short rows each has a single block.
            if partial.max != total.max {
                let difference = finite_below(partial.max) - total.max;
                partial.rescaling = of_one(isa, Exp {}, difference).into();
            }
            total.sum += partial.sum * partial.rescaling;
        }
        total
    }
}

fn of_one<F: Unary>(isa: InstructionSet, f: F, x: f32) -> f32 {
    let mut y = [0.0];
    map(isa, f, &[x], &mut y);
    y[0]
}

/// The last step, once the exponentials of a row are known.
pub(super) struct FinishRow<'a> {
    pub(super) logarithm: bool,
    pub(super) x: &'a [f32],
    pub(super) y: &'a mut [f32],
    pub(super) partials: &'a [Partial],
    pub(super) total: &'a RowTotal,
}

impl FinishRow<'_> {
    /// Turns the exponentials in `y` into softmax, or writes its logarithm there.
    pub(super) fn run(self, isa: InstructionSet) {
        let RowTotal { max, sum } = *self.total;
        if self.logarithm {
            let log_sum = of_one(isa, Log {}, sum as f32);
            return map(isa, LogNormalize { max, log_sum }, self.x, self.y);
        }
        for (y, partial) in self.y.chunks_mut(BLOCK).zip(self.partials) {
            let factor = (partial.rescaling / sum) as f32;
            dispatch(isa, Scaled { factor, y });
        }
    }
}

unary! {
    LogNormalize { max, log_sum } |isa, x| isa.sub(isa.sub(x, max), log_sum);
}

/// Writes `exp(xᵢ − max)` and returns the sum.
#[inline(always)]
fn exponentials<I: Isa>(isa: I, x: &[f32], max: f32, y: &mut [f32]) -> f64 {
    let max = isa.splat(max);
    let mut total = 0.0;
    let block = CHAIN * I::LANES;
    for (x, y) in x.chunks(block).zip(y.chunks_mut(block)) {
        let mut sum = isa.splat(0.0);
        let whole = y.len() / I::LANES * I::LANES;
        let ((x, rest), (y, tail)) = (x.split_at(whole), y.split_at_mut(whole));
        for (x, y) in x.chunks_exact(I::LANES).zip(y.chunks_exact_mut(I::LANES)) {
            let e = math::exp_difference(isa, isa.sub(isa.load(x), max));
            isa.store(e, y);
            sum = isa.add(sum, e);
        }
        if !tail.is_empty() {
            // The fill gives exponentials of 0.
            let x = isa.load_first(rest, f32::NEG_INFINITY);
            let e = math::exp_difference(isa, isa.sub(x, max));
            isa.store_first(e, tail);
            sum = isa.add(sum, e);
        }
        total += f64::from(sum_lanes(isa, sum));
    }
    total
}

/// `y · factor` in place.
struct Scaled<'a> {
    factor: f32,
    y: &'a mut [f32],
}

impl Kernel for Scaled<'_> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let factor = isa.splat(self.factor);
        let mut vectors = self.y.chunks_exact_mut(I::LANES);
        for y in &mut vectors {
            isa.store(isa.mul(isa.load(y), factor), y);
        }
        let tail = vectors.into_remainder();
        isa.store_first(isa.mul(isa.load_first(tail, 0.0), factor), tail);
    }
}

/// Softmax of columns, or its logarithm. A column with a NaN or ∞, or with only −∞, gives NaN.
#[derive(Clone, Copy)]
struct SideBySide {
    logarithm: bool,
}

impl OfColumns for SideBySide {
    #[inline(always)]
    fn eval<I: Isa>(self, isa: I, x: &[f32], y: &mut [f32]) {
        let mut max = isa.load(x);
        for x in x.chunks_exact(I::LANES).skip(1) {
            max = Larger.eval(isa, max, isa.load(x));
        }
        for (x, y) in x.chunks_exact(I::LANES).zip(y.chunks_exact_mut(I::LANES)) {
            isa.store(math::exp_difference(isa, isa.sub(isa.load(x), max)), y);
        }
        let sum = sum_vectors(isa, Values(y));
        let log_sum = math::log(isa, sum);
        let factor = isa.div(isa.splat(1.0), sum);
        for (x, y) in x.chunks_exact(I::LANES).zip(y.chunks_exact_mut(I::LANES)) {
            let value = if self.logarithm {
                isa.sub(isa.sub(isa.load(x), max), log_sum)
            } else {
                isa.mul(isa.load(y), factor)
            };
            isa.store(value, y);
        }
    }
}
