//! A matrix, stored row by row, times a vector.

#[cfg(not(target_family = "wasm"))]
mod side_by_side;

use crate::simd::isa::{Isa, Kernel};
#[cfg(target_family = "wasm")]
use crate::simd::reduce::{Products, Sum};

/// A dot product a row of `a`.
pub(super) struct Columns<'a> {
    pub(super) a: &'a [f32],
    pub(super) b: &'a [f32],
    pub(super) c: &'a mut [f32],
}

impl Kernel for Columns<'_> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let Columns { a, b, c } = self;
        #[cfg(not(target_family = "wasm"))]
        side_by_side::dot_each(isa, a, b, c);
        // The download has no room for rows side by side.
        #[cfg(target_family = "wasm")]
        for (row, c) in a.chunks_exact(b.len()).zip(c) {
            *c = Sum(Products(row, b)).run(isa) as f32;
        }
    }
}
