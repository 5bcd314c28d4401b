//! Softmax of rows, and its logarithm.

use super::InstructionSet;
use super::elementwise::{Map, Maximum, Unary, unary};
use super::isa::{Isa, Kernel, dispatch};
use super::math;
use super::reduce::{Fold, sum_lanes};

/// Vectors of exponentials that are added up before their sum goes to `f64`, which bounds the
/// rounding error.
const CHAIN: usize = 16;

/// Softmax of each row of `cols` values, or its logarithm.
pub(super) fn softmax(isa: InstructionSet, logarithm: bool, x: &[f32], cols: usize, y: &mut [f32]) {
    if cols > 0 {
        dispatch(
            isa,
            Softmax {
                logarithm,
                x,
                cols,
                y,
            },
        );
    }
}

struct Softmax<'a> {
    logarithm: bool,
    x: &'a [f32],
    cols: usize,
    y: &'a mut [f32],
}

impl Kernel for Softmax<'_> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let rows = self.x.chunks_exact(self.cols);
        for (x, y) in rows.zip(self.y.chunks_exact_mut(self.cols)) {
            // NaN where any is; then so is every difference below, as where it is infinite.
            let max = Fold { f: Maximum, x }.run(isa);
            let sum = exponentials(isa, x, max, y);
            if self.logarithm {
                let log_sum = isa.to_array(math::log(isa, isa.splat(sum)))[0];
                let f = LogNormalize { max, log_sum };
                Map { f, x, y }.run(isa);
            } else {
                normalize(isa, sum, y);
            }
        }
    }
}

unary! {
    LogNormalize { max, log_sum } |isa, x| isa.sub(isa.sub(x, max), log_sum);
}

/// Writes `exp(xᵢ − max)` and returns the sum.
#[inline(always)]
fn exponentials<I: Isa>(isa: I, x: &[f32], max: f32, y: &mut [f32]) -> f32 {
    let max = isa.splat(max);
    let mut total = 0.0;
    let block = CHAIN * I::LANES;
    for (x, y) in x.chunks(block).zip(y.chunks_mut(block)) {
        let mut sum = isa.splat(0.0);
        for (x, y) in x.chunks(I::LANES).zip(y.chunks_mut(I::LANES)) {
            if y.len() == I::LANES {
                let e = math::exp_normal(isa, isa.sub(isa.load(x), max));
                isa.store(e, y);
                sum = isa.add(sum, e);
            } else {
                // The fill gives exponentials of 0.
                let x = isa.load_first(x, f32::NEG_INFINITY);
                let e = math::exp_normal(isa, isa.sub(x, max));
                isa.store_first(e, y);
                sum = isa.add(sum, e);
            }
        }
        total += f64::from(sum_lanes(isa, sum));
    }
    total as f32
}

/// `y / sum` in place.
#[inline(always)]
fn normalize<I: Isa>(isa: I, sum: f32, y: &mut [f32]) {
    let factor = isa.splat(1.0 / sum);
    let mut vectors = y.chunks_exact_mut(I::LANES);
    for y in &mut vectors {
        isa.store(isa.mul(isa.load(y), factor), y);
    }
    let tail = vectors.into_remainder();
    isa.store_first(isa.mul(isa.load_first(tail, 0.0), factor), tail);
}
