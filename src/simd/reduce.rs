//! Many values to one.
//!
//! Sums go block by block: within a block each of several vectors gathers a short chain of
//! terms, and the blocks' sums are added in `f64`. That keeps the rounding errors of any
//! length to those of one block, at no measurable cost.

use super::InstructionSet;
use super::elementwise::Binary;
use super::functions::Maximum;
use super::isa::{Isa, Kernel, dispatch};
use std::ops::Range;

/// The number of vectors that gather terms side by side: enough to hide the latency of additions.
const SUMS: usize = 8;

/// The number of terms that one lane gathers in a block, which bounds the rounding error.
const CHAIN: usize = 16;

/// The number of values in a block of [`argmax`]: it computes their maximum and compares it with the largest value so
/// far.
const ARGMAX_BLOCK: usize = 512;

/// `Σ xᵢ`.
pub(super) fn sum(isa: InstructionSet, x: &[f32]) -> f32 {
    dispatch(isa, Sum(Values(x))) as f32
}

/// `Σ aᵢ · bᵢ` of slices of one length.
pub(super) fn dot(isa: InstructionSet, a: &[f32], b: &[f32]) -> f32 {
    dispatch(isa, Sum(Products(a, b))) as f32
}

/// `Σ xᵢ / n`, where the sum may exceed the range of `f32`.
pub(super) fn mean(isa: InstructionSet, x: &[f32]) -> f32 {
    (dispatch(isa, Sum(Values(x))) / x.len() as f64) as f32
}

/// `f(x₀, f(x₁, …))` for an `f` that is associative and commutative; NaN if there are no values.
pub(super) fn fold<F: Binary>(isa: InstructionSet, f: F, x: &[f32]) -> f32 {
    dispatch(isa, Fold { f, x })
}

/// The index of the first largest value, or of the first NaN; 0 of no values.
pub(crate) fn argmax(isa: InstructionSet, x: &[f32]) -> usize {
    dispatch(isa, Argmax(x))
}

/// The terms of a sum.
pub(super) trait Terms: Copy {
    fn len(self) -> usize;
    /// The terms of the range, which must lie within.
    fn slice(self, range: Range<usize>) -> Self;
    /// `sum` plus the first terms; missing ones count as 0.
    fn add_first<I: Isa>(self, isa: I, sum: I::F32) -> I::F32;
    /// `sum` plus the first `LANES` terms, which must be there.
    fn add<I: Isa>(self, isa: I, sum: I::F32) -> I::F32;
    /// The sum in the range and precision of `f64`.
    fn sum_f64(self) -> f64;
}

#[derive(Clone, Copy)]
pub(super) struct Values<'a>(pub(super) &'a [f32]);

impl Terms for Values<'_> {
    #[inline(always)]
    fn len(self) -> usize {
        self.0.len()
    }

    #[inline(always)]
    fn slice(self, range: Range<usize>) -> Self {
        Values(&self.0[range])
    }

    #[inline(always)]
    fn add_first<I: Isa>(self, isa: I, sum: I::F32) -> I::F32 {
        isa.add(sum, isa.load_first(self.0, 0.0))
    }

    #[inline(always)]
    fn add<I: Isa>(self, isa: I, sum: I::F32) -> I::F32 {
        isa.add(sum, isa.load(self.0))
    }

    fn sum_f64(self) -> f64 {
        self.0.iter().map(|&x| f64::from(x)).sum()
    }
}

#[derive(Clone, Copy)]
pub(super) struct Products<'a>(pub(super) &'a [f32], pub(super) &'a [f32]);

impl Terms for Products<'_> {
    #[inline(always)]
    fn len(self) -> usize {
        self.0.len().min(self.1.len())
    }

    #[inline(always)]
    fn slice(self, range: Range<usize>) -> Self {
        Products(&self.0[range.clone()], &self.1[range])
    }

    #[inline(always)]
    fn add_first<I: Isa>(self, isa: I, sum: I::F32) -> I::F32 {
        isa.mul_add(
            isa.load_first(self.0, 0.0),
            isa.load_first(self.1, 0.0),
            sum,
        )
    }

    #[inline(always)]
    fn add<I: Isa>(self, isa: I, sum: I::F32) -> I::F32 {
        isa.mul_add(isa.load(self.0), isa.load(self.1), sum)
    }

    fn sum_f64(self) -> f64 {
        let products = self.0.iter().zip(self.1);
        products.map(|(&a, &b)| f64::from(a) * f64::from(b)).sum()
    }
}

pub(super) struct Sum<T>(pub(super) T);

impl<T: Terms> Kernel for Sum<T> {
    type Output = f64;

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) -> f64 {
        let len = self.0.len();
        let block = CHAIN * SUMS * I::LANES;
        let mut total = 0.0_f64;
        let mut start = 0;
        // A total that is NaN stays so.
        while start < len && !total.is_nan() {
            let end = len.min(start + block);
            let terms = self.0.slice(start..end);
            add_block(&mut total, sum_block(isa, terms), terms);
            start = end;
        }
        total
    }
}

/// Adds the sum of a block's terms to the total.
#[inline(always)]
pub(super) fn add_block<T: Terms>(total: &mut f64, sum: f32, terms: T) {
    // An overflow within the block may yet cancel outside it; a total that is NaN stays so.
    *total += if sum.is_finite() || total.is_nan() {
        f64::from(sum)
    } else {
        terms.sum_f64()
    };
}

#[inline(always)]
fn sum_block<I: Isa, T: Terms>(isa: I, terms: T) -> f32 {
    sum_lanes(isa, sum_vectors(isa, terms))
}

/// The sum of all vectors of terms; the last one may be filled up with zeros.
#[inline(always)]
pub(super) fn sum_vectors<I: Isa, T: Terms>(isa: I, terms: T) -> I::F32 {
    let len = terms.len();
    let mut sums = [isa.splat(0.0); SUMS];
    let mut at = 0;
    while len - at >= SUMS * I::LANES {
        let row = terms.slice(at..at + SUMS * I::LANES);
        for (i, sum) in sums.iter_mut().enumerate() {
            *sum = row.slice(i * I::LANES..(i + 1) * I::LANES).add(isa, *sum);
        }
        at += SUMS * I::LANES;
    }
    let mut rest = isa.splat(0.0);
    while at < len {
        let end = len.min(at + I::LANES);
        let row = terms.slice(at..end);
        rest = if end == at + I::LANES {
            row.add(isa, rest)
        } else {
            row.add_first(isa, rest)
        };
        at = end;
    }
    let [a, b, c, d, e, f, g, h] = sums;
    let low = isa.add(isa.add(a, b), isa.add(c, d));
    let high = isa.add(isa.add(e, f), isa.add(g, h));
    isa.add(isa.add(low, high), rest)
}

/// The sum of a vector's lanes, pairwise.
#[inline(always)]
pub(super) fn sum_lanes<I: Isa>(isa: I, values: I::F32) -> f32 {
    let mut lanes = isa.to_array(values);
    let mut width = I::LANES / 2;
    while width > 0 {
        for i in 0..width {
            lanes[i] += lanes[i + width];
        }
        width /= 2;
    }
    lanes[0]
}

pub(super) struct Fold<'a, F> {
    pub(super) f: F,
    pub(super) x: &'a [f32],
}

impl<F: Binary> Kernel for Fold<'_, F> {
    type Output = f32;

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) -> f32 {
        let Some(&first) = self.x.first() else {
            return f32::NAN;
        };
        let mut folds = [isa.splat(first); 4];
        let rows = self.x.chunks_exact(4 * I::LANES);
        let rest = rows.remainder();
        for row in rows {
            for (fold, x) in folds.iter_mut().zip(row.chunks_exact(I::LANES)) {
                *fold = self.f.eval(isa, *fold, isa.load(x));
            }
        }
        let [mut all, b, c, d] = folds;
        let vectors = rest.chunks_exact(I::LANES);
        let last = isa.load_first(vectors.remainder(), first);
        for x in vectors {
            all = self.f.eval(isa, all, isa.load(x));
        }
        all = self.f.eval(isa, all, last);
        let both = self.f.eval(isa, self.f.eval(isa, c, d), b);
        let lanes = isa.to_array(self.f.eval(isa, all, both));
        let mut all = isa.splat(lanes[0]);
        for &lane in &lanes[1..I::LANES] {
            all = self.f.eval(isa, all, isa.splat(lane));
        }
        isa.to_array(all)[0]
    }
}

struct Argmax<'a>(&'a [f32]);

impl Kernel for Argmax<'_> {
    type Output = usize;

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) -> usize {
        let mut best = f32::NEG_INFINITY;
        let mut best_start = 0;
        for (index, x) in self.0.chunks(ARGMAX_BLOCK).enumerate() {
            let largest = Fold { f: Maximum, x }.run(isa);
            if largest > best || largest.is_nan() {
                best = largest;
                best_start = index * ARGMAX_BLOCK;
            }
            if best.is_nan() {
                break;
            }
        }
        let block = self.0.iter().skip(best_start);
        let is_best = |&x: &f32| x == best || (best.is_nan() && x.is_nan());
        best_start + block.copied().position(|x| is_best(&x)).unwrap_or(0)
    }
}
