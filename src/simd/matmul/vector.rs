//! Products of few rows or few values, where packing does not pay.

use super::Product;
use crate::simd::isa::{Isa, Kernel};

/// Rows of `B` that are added up before their sum goes to `C`.
const DEPTH: usize = 8;

/// Each row of `C` as a sum of multiples of the rows of `B`, which are read in order.
pub(super) struct Rows<'a>(pub(super) Product<'a>);

impl Kernel for Rows<'_> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let Product { a, b, c, k, n, .. } = self.0;
        for (a, c) in a.chunks_exact(k).zip(c.chunks_exact_mut(n)) {
            c.fill(0.0);
            let groups = a.chunks_exact(DEPTH);
            let rest = groups.remainder();
            for (a, b) in groups.zip(b.chunks_exact(DEPTH * n)) {
                add_multiples::<I, DEPTH>(isa, a, b, c);
            }
            for (a, b) in rest
                .chunks_exact(1)
                .zip(b[(k - rest.len()) * n..].chunks_exact(n))
            {
                add_multiples::<I, 1>(isa, a, b, c);
            }
        }
    }
}

/// Adds the `N` rows of `b`, times the `N` values of `a`, to `c`.
#[inline(always)]
fn add_multiples<I: Isa, const N: usize>(isa: I, a: &[f32], b: &[f32], c: &mut [f32]) {
    let n = c.len();
    let mut factors = [isa.splat(0.0); N];
    for (factor, &a) in factors.iter_mut().zip(a) {
        *factor = isa.splat(a);
    }
    let whole = n / I::LANES * I::LANES;
    for j in (0..whole).step_by(I::LANES) {
        let mut sum = isa.mul(factors[0], isa.load(&b[j..]));
        for (i, &factor) in factors.iter().enumerate().skip(1) {
            sum = isa.mul_add(factor, isa.load(&b[i * n + j..]), sum);
        }
        let c = &mut c[j..];
        isa.store(isa.add(isa.load(c), sum), c);
    }
    if whole < n {
        let mut sum = isa.splat(0.0);
        for (i, &factor) in factors.iter().enumerate() {
            let b = isa.load_first(&b[i * n + whole..(i + 1) * n], 0.0);
            sum = isa.mul_add(factor, b, sum);
        }
        let c = &mut c[whole..];
        isa.store_first(isa.add(isa.load_first(c, 0.0), sum), c);
    }
}
