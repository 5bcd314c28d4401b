//! A step of Stockham's algorithm.

use super::WIDTH;
use super::roots::Roots;
use crate::simd::isa::{Isa, Kernel};

/// A step of Stockham's algorithm: `step` is the product of the radices of the steps before.
pub(super) struct Pass<'a> {
    pub(super) roots: &'a Roots,
    pub(super) from: &'a [f32],
    pub(super) to: &'a mut [f32],
    pub(super) len: usize,
    pub(super) step: usize,
}

impl Kernel for Pass<'_> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(mut self, isa: I) {
        let left = self.len / self.step;
        if left == 2 {
            self.halves(isa);
            return;
        }
        for p in 0..left / 4 {
            self.quarters(isa, p);
        }
    }
}

/// A vector of complex numbers.
pub(super) type Pair<I> = [<I as Isa>::F32; 2];

impl Pass<'_> {
    /// Combines the halves of all columns.
    #[inline(always)]
    fn halves<I: Isa>(self, isa: I) {
        let half = 2 * WIDTH * self.step;
        let (first, second) = self.from.split_at(half);
        let (sums, differences) = self.to.split_at_mut(half);
        for at in (0..half).step_by(I::LANES) {
            let [a, b] = [isa.load(&first[at..]), isa.load(&second[at..])];
            isa.store(isa.add(a, b), &mut sums[at..]);
            isa.store(isa.sub(a, b), &mut differences[at..]);
        }
    }

    /// Combines the elements `p` of the quarters of what is left of each column.
    #[inline(always)]
    fn quarters<I: Isa>(&mut self, isa: I, p: usize) {
        let run = 2 * WIDTH * self.step;
        let quarter = 2 * WIDTH * (self.len / 4);
        let from = &self.from[p * run..];
        let (a, b) = (&from[..run], &from[quarter..][..run]);
        let (c, d) = (&from[2 * quarter..][..run], &from[3 * quarter..][..run]);
        let (low, high) = self.to[4 * p * run..][..4 * run].split_at_mut(2 * run);
        let (to0, to1) = low.split_at_mut(run);
        let (to2, to3) = high.split_at_mut(run);
        let w1 = self.roots.at(isa, p * self.step);
        let w2 = self.roots.at(isa, 2 * p * self.step);
        let w3 = self.roots.at(isa, 3 * p * self.step);
        for start in (0..run).step_by(2 * WIDTH) {
            for at in (start..start + WIDTH).step_by(I::LANES) {
                let (a, b) = (load(isa, a, at), load(isa, b, at));
                let (c, d) = (load(isa, c, at), load(isa, d, at));
                let (even, odd) = (add(isa, a, c), sub(isa, a, c));
                let (sum, [re, im]) = (add(isa, b, d), sub(isa, b, d));
                // Minus and plus i times the difference.
                let first = [isa.add(odd[0], im), isa.sub(odd[1], re)];
                let third = [isa.sub(odd[0], im), isa.add(odd[1], re)];
                store(isa, add(isa, even, sum), to0, at);
                store(isa, times(isa, first, w1), to1, at);
                store(isa, times(isa, sub(isa, even, sum), w2), to2, at);
                store(isa, times(isa, third, w3), to3, at);
            }
        }
    }
}

/// Loads complex numbers whose real parts begin at `at`.
#[inline(always)]
pub(super) fn load<I: Isa>(isa: I, from: &[f32], at: usize) -> Pair<I> {
    [isa.load(&from[at..]), isa.load(&from[at + WIDTH..])]
}

#[inline(always)]
pub(super) fn store<I: Isa>(isa: I, [re, im]: Pair<I>, to: &mut [f32], at: usize) {
    isa.store(re, &mut to[at..]);
    isa.store(im, &mut to[at + WIDTH..]);
}

#[inline(always)]
fn add<I: Isa>(isa: I, a: Pair<I>, b: Pair<I>) -> Pair<I> {
    [isa.add(a[0], b[0]), isa.add(a[1], b[1])]
}

#[inline(always)]
fn sub<I: Isa>(isa: I, a: Pair<I>, b: Pair<I>) -> Pair<I> {
    [isa.sub(a[0], b[0]), isa.sub(a[1], b[1])]
}

#[inline(always)]
pub(super) fn times<I: Isa>(isa: I, a: Pair<I>, b: Pair<I>) -> Pair<I> {
    [
        isa.neg_mul_add(a[1], b[1], isa.mul(a[0], b[0])),
        isa.mul_add(a[0], b[1], isa.mul(a[1], b[0])),
    ]
}

impl Roots {
    #[inline(always)]
    pub(super) fn at<I: Isa>(&self, isa: I, index: usize) -> Pair<I> {
        [isa.splat(self.re[index]), isa.splat(self.im[index])]
    }
}
