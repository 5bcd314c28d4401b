//! Functions of two operands; one is in memory.

use std::ops::RangeFrom;

use crate::simd::elementwise::Binary;
use crate::simd::isa::{AHEAD, Isa};

/// The other operand: the elements that the loop covers, and its position.
#[derive(Clone, Copy)]
pub(crate) struct Other<'a> {
    values: &'a [f32],
    is_first: bool,
}

impl<'a> Other<'a> {
    // An option, since elsewhere there is none.
    #[allow(clippy::unnecessary_wraps)]
    pub(crate) fn of(values: &'a [f32], is_first: bool) -> Option<Self> {
        Some(Self { values, is_first })
    }

    pub(super) fn values(self, places: RangeFrom<usize>) -> &'a [f32] {
        &self.values[places]
    }

    /// Returns the operand with other elements.
    pub(super) fn with(self, values: &[f32]) -> Option<Other<'_>> {
        Other::of(values, self.is_first)
    }

    /// Applies a function to vectors and this operand's elements from `at` on.
    #[inline(always)]
    pub(super) fn each<I: Isa, F: Binary, const N: usize>(
        self,
        isa: I,
        f: F,
        at: usize,
        vectors: &mut [I::F32; N],
    ) {
        let values = &self.values[at..][..N * I::LANES];
        for (vector, values) in vectors.iter_mut().zip(values.chunks_exact(I::LANES)) {
            isa.prefetch(values.as_ptr().wrapping_add(AHEAD));
            let values = isa.load(values);
            *vector = if self.is_first {
                f.eval(isa, values, *vector)
            } else {
                f.eval(isa, *vector, values)
            };
        }
    }
}
