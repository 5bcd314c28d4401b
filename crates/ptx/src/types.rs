//! Types of registers and memory, targets, and versions of PTX.

use std::fmt;

/// A PTX type, of a register or of an instruction.
///
/// Types shorter than 16 bits exist in memory only and are loaded into wider registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(
    all(target_arch = "wasm32", feature = "js"),
    derive(serde::Serialize, tsify::Tsify),
    serde(rename_all = "lowercase")
)]
#[non_exhaustive]
pub enum PtxType {
    /// A predicate: the result of a comparison.
    Pred,
    /// An unsigned 8-bit integer, in memory only.
    U8,
    /// A signed 8-bit integer, in memory only.
    S8,
    /// Untyped 16 bits.
    B16,
    /// An unsigned 16-bit integer.
    U16,
    /// A signed 16-bit integer.
    S16,
    /// Untyped 32 bits.
    B32,
    /// An unsigned 32-bit integer.
    U32,
    /// A signed 32-bit integer.
    S32,
    /// Untyped 64 bits.
    B64,
    /// An unsigned 64-bit integer. Addresses have this type.
    U64,
    /// A signed 64-bit integer.
    S64,
    /// A 16-bit floating-point number (IEEE binary16).
    F16,
    /// A bfloat16: the upper half of an `f32`.
    BF16,
    /// Two [`PtxType::F16`] in one register, the first in the low half.
    F16x2,
    /// Two [`PtxType::BF16`] in one register, the first in the low half.
    BF16x2,
    /// An `f32` in an untyped register; tensor cores read its upper 19 bits.
    TF32,
    /// A 32-bit floating-point number (IEEE binary32).
    F32,
    /// A 64-bit floating-point number (IEEE binary64).
    F64,
}

/// The class of registers that are declared together. PTX checks operands by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Class {
    Pred,
    B16,
    B32,
    B64,
    F32,
    F64,
}

impl Class {
    pub(crate) const ALL: [Class; 6] = [
        Class::Pred,
        Class::B16,
        Class::B32,
        Class::B64,
        Class::F32,
        Class::F64,
    ];

    /// Returns the type of the declaration.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Class::Pred => "pred",
            Class::B16 => "b16",
            Class::B32 => "b32",
            Class::B64 => "b64",
            Class::F32 => "f32",
            Class::F64 => "f64",
        }
    }

    /// Returns the prefix of the registers' names.
    pub(crate) const fn prefix(self) -> &'static str {
        match self {
            Class::Pred => "%p",
            Class::B16 => "%h",
            Class::B32 => "%r",
            Class::B64 => "%rd",
            Class::F32 => "%f",
            Class::F64 => "%fd",
        }
    }
}

/// The set of register types that each type accepts, one bit each. It is a table since every
/// operand is checked.
static FITTING: [u32; PtxType::ALL.len()] = {
    let (mut fitting, mut wanted) = ([0; PtxType::ALL.len()], 0);
    while wanted < fitting.len() {
        let mut i = 0;
        while i < fitting.len() {
            if PtxType::ALL[i].may_stand_for(PtxType::ALL[wanted]) {
                fitting[wanted] |= PtxType::ALL[i].bit();
            }
            i += 1;
        }
        wanted += 1;
    }
    fitting
};

impl PtxType {
    /// All types, in the order of their discriminants.
    pub(crate) const ALL: [PtxType; 19] = {
        use PtxType::{
            B16, B32, B64, BF16, BF16x2, F16, F16x2, F32, F64, Pred, S8, S16, S32, S64, TF32, U8,
            U16, U32, U64,
        };
        [
            Pred, U8, S8, B16, U16, S16, B32, U32, S32, B64, U64, S64, F16, BF16, F16x2, BF16x2,
            TF32, F32, F64,
        ]
    };

    /// Returns the name in instructions.
    pub const fn name(self) -> &'static str {
        match self {
            PtxType::Pred => "pred",
            PtxType::U8 => "u8",
            PtxType::S8 => "s8",
            PtxType::B16 => "b16",
            PtxType::U16 => "u16",
            PtxType::S16 => "s16",
            PtxType::B32 => "b32",
            PtxType::U32 => "u32",
            PtxType::S32 => "s32",
            PtxType::B64 => "b64",
            PtxType::U64 => "u64",
            PtxType::S64 => "s64",
            PtxType::F16 => "f16",
            PtxType::BF16 => "bf16",
            PtxType::F16x2 => "f16x2",
            PtxType::BF16x2 => "bf16x2",
            PtxType::TF32 => "tf32",
            PtxType::F32 => "f32",
            PtxType::F64 => "f64",
        }
    }

    /// Returns the size in memory in bytes, 0 for predicates.
    pub const fn bytes(self) -> u32 {
        match self {
            PtxType::Pred => 0,
            PtxType::U8 | PtxType::S8 => 1,
            PtxType::B16 | PtxType::U16 | PtxType::S16 | PtxType::F16 | PtxType::BF16 => 2,
            PtxType::B64 | PtxType::U64 | PtxType::S64 | PtxType::F64 => 8,
            _ => 4,
        }
    }

    pub(crate) fn class(self) -> Class {
        match self {
            PtxType::Pred => Class::Pred,
            PtxType::F32 => Class::F32,
            PtxType::F64 => Class::F64,
            _ => match self.bytes() {
                1 | 2 => Class::B16,
                4 => Class::B32,
                _ => Class::B64,
            },
        }
    }

    /// Returns the untyped type of the same size.
    #[must_use]
    pub fn untyped(self) -> PtxType {
        match self.bytes() {
            0 => PtxType::Pred,
            1 | 2 => PtxType::B16,
            4 => PtxType::B32,
            _ => PtxType::B64,
        }
    }

    pub(crate) const fn is_integer(self) -> bool {
        use PtxType::{S16, S32, S64, U16, U32, U64};
        matches!(self, U16 | S16 | U32 | S32 | U64 | S64)
    }

    const fn is_untyped(self) -> bool {
        matches!(self, PtxType::B16 | PtxType::B32 | PtxType::B64)
    }

    /// Returns the type's bit in a set of types.
    pub(crate) const fn bit(self) -> u32 {
        1 << self as u32
    }

    /// Whether an operand of type `wanted` accepts a register of type `self`.
    #[inline]
    pub(crate) fn fits(self, wanted: PtxType) -> bool {
        wanted.fitting() & self.bit() != 0
    }

    /// Returns the set of register types that an operand of type `self` accepts.
    #[inline]
    pub(crate) fn fitting(self) -> u32 {
        FITTING[self as usize]
    }

    /// Implements the rule of [`PtxType::fits`]: both types have the same size, and both are
    /// integers or one is untyped. This is PTX's own rule, but stricter for floating-point numbers
    /// in untyped registers: `f16` is not `bf16`.
    const fn may_stand_for(self, wanted: PtxType) -> bool {
        let (integers, predicate) = (
            self.is_integer() && wanted.is_integer(),
            matches!(self, PtxType::Pred) || matches!(wanted, PtxType::Pred),
        );
        self as u32 == wanted as u32
            || (self.bytes() == wanted.bytes()
                && !predicate
                && (self.is_untyped() || wanted.is_untyped() || integers))
    }

    /// Returns the result type of a widening multiplication, which has twice the size.
    pub(crate) fn doubled(self) -> Option<PtxType> {
        match self {
            PtxType::U16 => Some(PtxType::U32),
            PtxType::S16 => Some(PtxType::S32),
            PtxType::U32 => Some(PtxType::U64),
            PtxType::S32 => Some(PtxType::S64),
            _ => None,
        }
    }
}

impl fmt::Display for PtxType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A version of the PTX language, written `.version 8.0`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(pub u8, pub u8);

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0, self.1)
    }
}

/// The target of the text: the oldest GPU architecture that runs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Target {
    /// Volta.
    Sm70,
    /// Turing.
    Sm75,
    /// Ampere, data centre (A100).
    Sm80,
    /// Ampere, consumer.
    Sm86,
    /// Ada.
    Sm89,
    /// Hopper, without the features that only Hopper has.
    Sm90,
    /// Hopper only, with `wgmma` and `setmaxnreg`.
    Sm90a,
    /// Blackwell, data-centre GPUs.
    Sm100,
    /// Blackwell, consumer GPUs.
    Sm120,
}

impl Target {
    /// All targets, oldest first.
    pub const ALL: [Target; 9] = [
        Target::Sm70,
        Target::Sm75,
        Target::Sm80,
        Target::Sm86,
        Target::Sm89,
        Target::Sm90,
        Target::Sm90a,
        Target::Sm100,
        Target::Sm120,
    ];

    /// Returns the name, the compute capability, and the first version of PTX that supports the
    /// target.
    const fn facts(self) -> (&'static str, u16, Version) {
        match self {
            Target::Sm70 => ("sm_70", 70, Version(6, 0)),
            Target::Sm75 => ("sm_75", 75, Version(6, 3)),
            Target::Sm80 => ("sm_80", 80, Version(7, 0)),
            Target::Sm86 => ("sm_86", 86, Version(7, 1)),
            Target::Sm89 => ("sm_89", 89, Version(7, 8)),
            Target::Sm90 => ("sm_90", 90, Version(7, 8)),
            Target::Sm90a => ("sm_90a", 90, Version(8, 0)),
            Target::Sm100 => ("sm_100", 100, Version(8, 6)),
            Target::Sm120 => ("sm_120", 120, Version(8, 7)),
        }
    }

    /// Returns the name, as in `.target sm_90a`.
    pub fn name(self) -> &'static str {
        self.facts().0
    }

    /// Returns the compute capability: 90 for both `sm_90` and `sm_90a`.
    pub const fn capability(self) -> u16 {
        self.facts().1
    }

    /// Whether the target has all features of `needed`. No later target has the features of
    /// `sm_90a`.
    pub fn has(self, needed: Target) -> bool {
        self == needed || (self > needed && needed != Target::Sm90a)
    }

    /// Returns the first version of PTX that supports the target.
    pub fn since(self) -> Version {
        self.facts().2
    }

    /// Returns the best target for a GPU of compute capability `major.minor`, or `None` below 7.0.
    pub fn for_capability(major: u32, minor: u32) -> Option<Target> {
        let capability = major.saturating_mul(10).saturating_add(minor);
        let runs = |target: &&Target| match target {
            Target::Sm90a => capability == 90,
            _ => u32::from(target.capability()) <= capability,
        };
        Target::ALL.iter().rev().find(runs).copied()
    }

    /// Returns the maximum size of a block's shared memory, in bytes.
    pub fn max_shared(self) -> u32 {
        let kib = match self {
            Target::Sm70 => 96,
            Target::Sm75 => 64,
            Target::Sm80 => 163,
            Target::Sm86 | Target::Sm89 | Target::Sm120 => 99,
            Target::Sm90 | Target::Sm90a | Target::Sm100 => 227,
        };
        kib * 1024
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl std::str::FromStr for Target {
    type Err = super::Error;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let found = Target::ALL.into_iter().find(|target| target.name() == name);
        found.ok_or_else(|| super::Error::UnknownTarget {
            name: name.to_owned(),
        })
    }
}
