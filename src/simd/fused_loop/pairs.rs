//! Functions of two operands, one of which is in memory.

use std::ops::RangeFrom;

use crate::ops::Op;
use crate::simd::elementwise::{Add, Binary, Div, Maximum, Minimum, Mul, Sub};
use crate::simd::isa::{AHEAD, Isa};

/// The other operand: as many elements as the loop covers, and its position.
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
}

pub(super) fn is_pair(op: &Op) -> bool {
    matches!(
        op,
        Op::VecAdd | Op::Sub | Op::Mul | Op::Div | Op::Minimum | Op::Maximum
    )
}

/// Applies an operation to vectors and the other's values from `at` on.
#[inline(always)]
pub(super) fn each<I: Isa, const N: usize>(
    isa: I,
    op: &Op,
    other: Other,
    at: usize,
    vectors: &mut [I::F32; N],
) {
    let values = &other.values[at..][..N * I::LANES];
    let other = Other { values, ..other };
    match *op {
        Op::VecAdd => each_by(isa, Add, other, vectors),
        Op::Sub => each_by(isa, Sub, other, vectors),
        Op::Mul => each_by(isa, Mul, other, vectors),
        Op::Div => each_by(isa, Div, other, vectors),
        Op::Minimum => each_by(isa, Minimum, other, vectors),
        Op::Maximum => each_by(isa, Maximum, other, vectors),
        _ => debug_assert!(false, "{} is not cheap", op.name()),
    }
}

#[inline(always)]
fn each_by<I: Isa, F: Binary, const N: usize>(
    isa: I,
    f: F,
    other: Other,
    vectors: &mut [I::F32; N],
) {
    for (vector, values) in vectors.iter_mut().zip(other.values.chunks_exact(I::LANES)) {
        isa.prefetch(values.as_ptr().wrapping_add(AHEAD));
        let values = isa.load(values);
        *vector = if other.is_first {
            f.eval(isa, values, *vector)
        } else {
            f.eval(isa, *vector, values)
        };
    }
}
