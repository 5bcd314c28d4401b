//! The kinds of operands that a row of the table accepts.

use crate::types::PtxType;
use std::fmt;

/// The kind of operand that a position of an instruction accepts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind {
    /// A register or a constant of the instruction's type.
    Same,
    /// A register of twice the size of the instruction's type.
    Wide,
    /// A register or a constant of this type.
    Is(PtxType),
    /// An integer constant of this set.
    Int(Constants),
    /// A register of type `u32`, or a constant of this set.
    Word(Constants),
    /// A register of type `u32`, or a constant between zero and the preceding operand.
    Part,
    /// Memory in a space of 64-bit addresses.
    Global,
    /// Memory in the space of 32-bit addresses.
    Shared,
    /// The name of a shared array.
    SharedName,
    /// A kernel parameter.
    Param,
    /// A read-only register.
    Special,
    /// This number of registers of this type.
    Group(usize, PtxType),
    /// This number of 32-bit registers that hold elements of an input matrix. They may not be
    /// declared as `f32`, which these instructions do not read.
    Factor(usize),
    /// The accumulators: any number of registers of this type, read and written.
    Sums(PtxType),
    /// One, two or four registers of the instruction's type; for types shorter than a register also
    /// one 32-bit register.
    Vector,
    /// A box of a tensor with two or three dimensions.
    Box,
}

impl Kind {
    /// Returns the type of value that the position accepts in an instruction of type `ty`.
    #[inline]
    pub(crate) fn value(self, ty: PtxType) -> Option<PtxType> {
        match self {
            Kind::Same => Some(ty),
            Kind::Is(ty) => Some(ty),
            Kind::Wide => ty.doubled(),
            Kind::Word(_) | Kind::Part => Some(PtxType::U32),
            // There are no 8-bit registers.
            Kind::Vector => Some(if ty.bytes() == 1 { PtxType::U32 } else { ty }),
            _ => None,
        }
    }
}

/// A set of integer constants: every `step`th integer from `first` to `last`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Constants {
    first: i32,
    last: u32,
    step: u32,
}

impl Constants {
    pub(super) const fn new(first: i32, last: u32, step: u32) -> Self {
        Constants { first, last, step }
    }

    pub(crate) fn contains(self, value: i64) -> bool {
        let (first, last) = (i64::from(self.first), i64::from(self.last));
        (first..=last).contains(&value) && (value - first) % i64::from(self.step) == 0
    }
}

impl fmt::Display for Constants {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Constants { first, last, step } = *self;
        match i64::from(last) - i64::from(first) {
            0 => write!(f, "{first}"),
            range if range == i64::from(step) => write!(f, "{first} or {last}"),
            _ if step == 1 => write!(f, "{first} to {last}"),
            _ => write!(f, "a multiple of {step} from {first} to {last}"),
        }
    }
}
