//! Softmax of rows, and its logarithm.
//!
//! A row goes block by block, so that memory is passed twice and not three times: first each
//! block's exponentials are relative to its own maximum, then all are brought to the row's. The
//! rescaling is M. Milakov and N. Gimelshein's, "Online normalizer calculation for softmax"
//! (2018).

use super::InstructionSet;
#[cfg(not(target_arch = "wasm32"))]
use super::elementwise::Binary;
use super::elementwise::{Larger, Log, Scale, Unary, map, unary};
use super::isa::{Isa, Kernel, dispatch};
use super::math;
use super::reduce::{Fold, sum_lanes};
#[cfg(not(target_arch = "wasm32"))]
use super::reduce::{Values, sum_vectors};
#[cfg(not(target_arch = "wasm32"))]
use super::short_rows::{OfColumns, ShortRows, gain_side_by_side};

/// Values in a block, which stays in the first-level cache between its maximum and its
/// exponentials.
pub(super) const BLOCK: usize = 4096;

/// Vectors of exponentials that are added up before their sum goes to `f64`, which bounds the
/// rounding error.
const CHAIN: usize = 16;

// The download has no room for rows side by side.
#[cfg(target_arch = "wasm32")]
pub(super) use softmax as softmax_rows;

/// [`softmax`] of any number of rows.
#[cfg(not(target_arch = "wasm32"))]
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
    dispatch(isa, ShortRows { f, x, y, cols });
}

/// Softmax of each row of `cols` values, or its logarithm.
pub(super) fn softmax(isa: InstructionSet, logarithm: bool, x: &[f32], cols: usize, y: &mut [f32]) {
    let mut blocks = Vec::new();
    // No values are no rows, whatever their length.
    let cols = cols.max(1);
    for (x, y) in x.chunks_exact(cols).zip(y.chunks_exact_mut(cols)) {
        blocks.clear();
        let partials = &mut blocks;
        dispatch(isa, Exponentials { x, y, partials });
        let total = &dispatch(isa, Sum(&blocks));
        let partials = &blocks;
        Finish {
            logarithm,
            x,
            y,
            partials,
            total,
        }
        .run(isa);
    }
}

/// The maximum of a block, and the sum of its exponentials relative to that.
#[derive(Clone, Copy)]
pub(super) struct Partial {
    max: f32,
    sum: f64,
}

/// What turns the exponentials of a row's blocks into the row's result.
pub(super) struct Total {
    max: f32,
    sum: f64,
}

/// Writes `exp(xᵢ − m)`, where `m` is the maximum of a block, and adds what is known of each
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
            self.partials.push(Partial { max, sum });
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

impl Total {
    /// From exponentials relative to a block's maximum to those relative to the row's.
    #[inline(always)]
    fn rescaling<I: Isa>(&self, isa: I, partial: &Partial) -> f32 {
        let x = finite_below(partial.max) - self.max;
        isa.to_array(math::exp(isa, isa.splat(x)))[0]
    }
}

/// What the blocks of a row come to: NaN where a value is NaN or ∞, or all are −∞.
pub(super) struct Sum<'a>(pub(super) &'a [Partial]);

impl Kernel for Sum<'_> {
    type Output = Total;

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) -> Total {
        // Where a maximum is NaN, so is a sum.
        let maxima = self.0.iter().map(|partial| partial.max);
        let mut total = Total {
            max: maxima.fold(f32::NEG_INFINITY, f32::max),
            sum: 0.0,
        };
        for partial in self.0 {
            total.sum += partial.sum * f64::from(total.rescaling(isa, partial));
        }
        total
    }
}

/// What is left to do once the exponentials of a row are known.
pub(super) struct Finish<'a> {
    pub(super) logarithm: bool,
    pub(super) x: &'a [f32],
    pub(super) y: &'a mut [f32],
    pub(super) partials: &'a [Partial],
    pub(super) total: &'a Total,
}

impl Finish<'_> {
    /// Turns the exponentials in `y` into softmax, or writes its logarithm there.
    pub(super) fn run(self, isa: InstructionSet) {
        let Total { max, sum } = *self.total;
        if !self.logarithm {
            return dispatch(isa, Normalize(self));
        }
        let mut log_sum = [0.0];
        map(isa, Log {}, &[sum as f32], &mut log_sum);
        let [log_sum] = log_sum;
        map(isa, LogNormalize { max, log_sum }, self.x, self.y);
    }
}

struct Normalize<'a>(Finish<'a>);

impl Kernel for Normalize<'_> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let Finish {
            y, partials, total, ..
        } = self.0;
        for (y, partial) in y.chunks_mut(BLOCK).zip(partials) {
            let rescaling = f64::from(total.rescaling(isa, partial));
            let factor = (rescaling / total.sum) as f32;
            scale(isa, Scale { factor }, y);
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
        let (mut vectors, mut out) = (x.chunks_exact(I::LANES), y.chunks_exact_mut(I::LANES));
        for (x, y) in (&mut vectors).zip(&mut out) {
            let e = math::exp_difference(isa, isa.sub(isa.load(x), max));
            isa.store(e, y);
            sum = isa.add(sum, e);
        }
        let tail = out.into_remainder();
        if !tail.is_empty() {
            // The fill gives exponentials of 0.
            let x = isa.load_first(vectors.remainder(), f32::NEG_INFINITY);
            let e = math::exp_difference(isa, isa.sub(x, max));
            isa.store_first(e, tail);
            sum = isa.add(sum, e);
        }
        total += f64::from(sum_lanes(isa, sum));
    }
    total
}

/// `f(y)` in place.
#[inline(always)]
fn scale<I: Isa, F: Unary>(isa: I, f: F, y: &mut [f32]) {
    let mut vectors = y.chunks_exact_mut(I::LANES);
    for y in &mut vectors {
        isa.store(f.eval(isa, isa.load(y)), y);
    }
    let tail = vectors.into_remainder();
    isa.store_first(f.eval(isa, isa.load_first(tail, 0.0)), tail);
}

/// Softmax of columns, or its logarithm: NaN where a value is NaN or ∞, or all are −∞.
#[cfg(not(target_arch = "wasm32"))]
#[derive(Clone, Copy)]
struct SideBySide {
    logarithm: bool,
}

#[cfg(not(target_arch = "wasm32"))]
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
