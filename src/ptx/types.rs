//! Types of registers and memory, targets, and versions of PTX.

use super::text::Word;
use std::fmt;

/// A type of PTX, of a register or of what an instruction works on.
///
/// Types shorter than 16 bits exist in memory only: they are loaded into wider registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(
    all(target_arch = "wasm32", feature = "js-ptx"),
    derive(serde::Serialize, tsify::Tsify),
    serde(rename_all = "lowercase")
)]
pub enum PtxType {
    /// One bit: the result of a comparison.
    Pred,
    /// Unsigned, 8 bits, in memory.
    U8,
    /// Signed, 8 bits, in memory.
    S8,
    /// Untyped, 16 bits.
    B16,
    /// Unsigned, 16 bits.
    U16,
    /// Signed, 16 bits.
    S16,
    /// Untyped, 32 bits.
    B32,
    /// Unsigned, 32 bits.
    U32,
    /// Signed, 32 bits.
    S32,
    /// Untyped, 64 bits.
    B64,
    /// Unsigned, 64 bits. Addresses have this type.
    U64,
    /// Signed, 64 bits.
    S64,
    /// IEEE binary16.
    F16,
    /// The upper half of an `f32`.
    BF16,
    /// Two [`PtxType::F16`] in one register, the first in the low half.
    F16x2,
    /// Two [`PtxType::BF16`] in one register, the first in the low half.
    BF16x2,
    /// An `f32` of which tensor cores read the upper 19 bits, in an untyped register.
    TF32,
    /// IEEE binary32.
    F32,
    /// IEEE binary64.
    F64,
}

/// Where registers of one declaration live; PTX checks operands by it.
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

    /// The type of the declaration, and the prefix of the registers' names.
    pub(crate) fn names(self) -> (&'static str, &'static str) {
        match self {
            Class::Pred => ("pred", "%p"),
            Class::B16 => ("b16", "%h"),
            Class::B32 => ("b32", "%r"),
            Class::B64 => ("b64", "%rd"),
            Class::F32 => ("f32", "%f"),
            Class::F64 => ("f64", "%fd"),
        }
    }
}

/// The names as words of a text.
static WORDS: [Word; PtxType::ALL.len()] = {
    let (mut words, mut i) = ([Word::EMPTY; PtxType::ALL.len()], 0);
    while i < words.len() {
        words[i] = Word::new(PtxType::ALL[i].name());
        i += 1;
    }
    words
};

/// Which types of registers may stand for each type, one bit each: asked of every operand.
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
    /// Every type, in the order of their numbers.
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

    /// As it is written in instructions.
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

    /// The same as a word of a text.
    #[inline]
    pub(super) fn word(self) -> &'static Word {
        &WORDS[self as usize]
    }

    /// Bytes in memory; a predicate has none.
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

    /// The untyped type of the same size.
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

    /// Its place in a set of types.
    pub(crate) const fn bit(self) -> u32 {
        1 << self as u32
    }

    /// Whether a register of type `self` may stand where an instruction takes `wanted`.
    #[inline]
    pub(crate) fn fits(self, wanted: PtxType) -> bool {
        wanted.fitting() & self.bit() != 0
    }

    /// The types whose registers may stand where an instruction takes `self`.
    #[inline]
    pub(crate) fn fitting(self) -> u32 {
        FITTING[self as usize]
    }

    /// The rule behind [`PtxType::fits`]: of the same size, both integers or one of them untyped.
    /// That is PTX's own rule, but stricter for floating-point numbers in untyped registers:
    /// `f16` is not `bf16`.
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

    /// The type of twice the size that a widening multiplication gives.
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

/// What the text is written for: the oldest GPU that runs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Target {
    /// Volta.
    Sm70,
    /// Turing.
    Sm75,
    /// Ampere, A100.
    Sm80,
    /// Ampere, consumer.
    Sm86,
    /// Ada.
    Sm89,
    /// Hopper, without what only Hopper has.
    Sm90,
    /// Hopper alone: `wgmma` and `setmaxnreg`.
    Sm90a,
    /// Blackwell, data centre.
    Sm100,
    /// Blackwell, consumer.
    Sm120,
}

impl Target {
    /// Every target, oldest first.
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

    /// The name, the number, and the first version of PTX that knows it.
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

    /// As in `.target sm_90a`.
    pub fn name(self) -> &'static str {
        self.facts().0
    }

    /// Compute capability: 90 for both `sm_90` and `sm_90a`.
    pub const fn capability(self) -> u16 {
        self.facts().1
    }

    /// Whether it has what `needed` has. What belongs to Hopper alone is on no later target.
    pub(crate) fn has(self, needed: Target) -> bool {
        self == needed || (self > needed && needed != Target::Sm90a)
    }

    /// The first version of PTX that knows the target.
    pub fn since(self) -> Version {
        self.facts().2
    }

    /// The best target for a GPU of compute capability `major.minor`, none before 7.0.
    pub fn for_capability(major: u32, minor: u32) -> Option<Target> {
        let capability = major.saturating_mul(10).saturating_add(minor);
        let runs = |target: &&Target| match target {
            Target::Sm90a => capability == 90,
            _ => u32::from(target.capability()) <= capability,
        };
        Target::ALL.iter().rev().find(runs).copied()
    }

    /// The most shared memory that one block can ask for, in bytes.
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
