//! Registers, special registers and the operands of an instruction.

use crate::types::PtxType;
use std::fmt;

/// A register of a kernel under construction. It may be written more than once.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Reg {
    pub(crate) id: u32,
    pub(crate) ty: PtxType,
    /// The number of the builder that made the register. It fits into the padding.
    pub(crate) builder: u16,
}

/// Omits the builder's number, which differs from run to run.
impl fmt::Debug for Reg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Reg {{ id: {}, ty: {:?} }}", self.id, self.ty)
    }
}

impl Reg {
    /// Returns the register's type.
    pub fn ty(self) -> PtxType {
        self.ty
    }
}

/// A read-only register of the hardware.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // PTX's own names
#[non_exhaustive]
pub enum Special {
    TidX,
    TidY,
    NtidX,
    CtaidX,
    CtaidY,
    CtaidZ,
    NctaidX,
    LaneId,
    ClusterCtaRank,
}

impl Special {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Special::TidX => "%tid.x",
            Special::TidY => "%tid.y",
            Special::NtidX => "%ntid.x",
            Special::CtaidX => "%ctaid.x",
            Special::CtaidY => "%ctaid.y",
            Special::CtaidZ => "%ctaid.z",
            Special::NctaidX => "%nctaid.x",
            Special::LaneId => "%laneid",
            Special::ClusterCtaRank => "%cluster_ctarank",
        }
    }
}

/// An operand of an instruction.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Operand<'a> {
    /// A register.
    Reg(Reg),
    /// An integer constant.
    Int(i64),
    /// An `f32` constant, written as its bits.
    Float(f32),
    /// A read-only register.
    Special(Special),
    /// The address of a shared array, by its index in the kernel.
    Shared(usize),
    /// A kernel parameter, by its index in the kernel.
    Param(usize),
    /// A memory operand: an address and a constant offset in bytes.
    At(Reg, i32),
    /// A box of a tensor: the tensor map's address and the coordinates, innermost first.
    Box(Reg, &'a [Reg]),
    /// Registers of one type that form a vector or a fragment of a matrix.
    Group(&'a [Reg]),
}

impl From<Reg> for Operand<'_> {
    fn from(reg: Reg) -> Self {
        Operand::Reg(reg)
    }
}

impl<'a> From<&'a [Reg]> for Operand<'a> {
    fn from(regs: &'a [Reg]) -> Self {
        Operand::Group(regs)
    }
}

impl From<i32> for Operand<'_> {
    fn from(value: i32) -> Self {
        Operand::Int(value.into())
    }
}

impl From<u32> for Operand<'_> {
    fn from(value: u32) -> Self {
        Operand::Int(value.into())
    }
}

impl From<i64> for Operand<'_> {
    fn from(value: i64) -> Self {
        Operand::Int(value)
    }
}

impl From<f32> for Operand<'_> {
    fn from(value: f32) -> Self {
        Operand::Float(value)
    }
}

impl From<Special> for Operand<'_> {
    fn from(special: Special) -> Self {
        Operand::Special(special)
    }
}
