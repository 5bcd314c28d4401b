//! The instruction table: what can be emitted, on which types, with which operands, and from
//! which target and version of PTX on.
//!
//! A row is one instruction. The builder, the verifier and the emitter all read it; nothing
//! else says what an instruction looks like. Source: NVIDIA's *PTX ISA*, release 9.0.

use super::text::Padded;
use super::types::{PtxType, Target, Version};
use std::fmt;

/// A register of a kernel under construction. It may be written more than once.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Reg {
    pub(crate) id: u32,
    pub(crate) ty: PtxType,
    /// The builder that made it: it takes no room that was not there.
    pub(crate) builder: u16,
}

/// Without the builder, whose number differs from run to run.
impl fmt::Debug for Reg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Reg {{ id: {}, ty: {:?} }}", self.id, self.ty)
    }
}

impl Reg {
    /// The type that the register was made with.
    pub fn ty(self) -> PtxType {
        self.ty
    }
}

/// A read-only register of the hardware.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // PTX's own names
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

/// What an instruction reads or writes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Operand<'a> {
    /// A register.
    Reg(Reg),
    /// An integer constant.
    Int(i64),
    /// An `f32` constant, written bit by bit.
    Float(f32),
    /// A read-only register.
    Special(Special),
    /// The address of a shared array, by its index in the kernel.
    Shared(usize),
    /// A kernel parameter, by its index in the kernel.
    Param(usize),
    /// Memory: an address and a constant number of bytes beyond it.
    At(Reg, i32),
    /// A box of a tensor: the tensor map's address and the coordinates, innermost first.
    Box(Reg, &'a [Reg]),
    /// Registers of one type that make a vector or a fragment of a matrix.
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

/// What may stand at one place of an instruction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind {
    /// A register or a constant of the instruction's type.
    Same,
    /// A register of twice the size.
    Wide,
    /// A register or a constant of this type.
    Is(PtxType),
    /// One of these constants.
    Int(Constants),
    /// A register of type `u32`, or one of these constants.
    Word(Constants),
    /// A register of type `u32`, or a constant from zero to the one before it.
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
    /// So many registers of this type.
    Group(usize, PtxType),
    /// So many registers of 32 bits that hold a factor's values. Those of `f32` are declared as
    /// such, which is not what these instructions read.
    Factor(usize),
    /// Any number of registers of this type, read and written.
    Sums(PtxType),
    /// One register of the instruction's type, or two or four; for types shorter than a register
    /// also one of 32 bits.
    Vector,
    /// A box of a tensor of two dimensions.
    Box,
}

impl Kind {
    /// The type of a value that may stand here, where the instruction has type `ty`.
    #[inline]
    pub(crate) fn value(self, ty: PtxType) -> Option<PtxType> {
        match self {
            Kind::Same => Some(ty),
            Kind::Is(ty) => Some(ty),
            Kind::Wide => ty.doubled(),
            Kind::Word(_) | Kind::Part => Some(PtxType::U32),
            // Bytes have no registers of their own.
            Kind::Vector => Some(if ty.bytes() == 1 { PtxType::U32 } else { ty }),
            _ => None,
        }
    }
}

/// Integer constants, every `step`th from `first` to `last`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Constants {
    first: i32,
    last: u32,
    step: u32,
}

impl Constants {
    const fn new(first: i32, last: u32, step: u32) -> Self {
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
            range if range == step.into() => write!(f, "{first} or {last}"),
            _ if step == 1 => write!(f, "{first} to {last}"),
            _ => write!(f, "a multiple of {step} from {first} to {last}"),
        }
    }
}

/// Which threads have to execute an instruction together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Together {
    Alone,
    Warp,
    Block,
}

/// What checks of a whole kernel look for.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Traits(u8);

impl Traits {
    /// Threads have to execute it together.
    pub(crate) const TOGETHER: Traits = Traits(1);
    /// It adds to sums asynchronously, which it therefore reads as well as writes.
    pub(crate) const MULTIPLIES: Traits = Traits(2);
    /// It changes how many registers a thread has.
    pub(crate) const GRANTS: Traits = Traits(4);

    #[inline]
    pub(crate) const fn with(self, other: Traits) -> Traits {
        Traits(self.0 | other.0)
    }

    #[inline]
    pub(crate) const fn has(self, other: Traits) -> bool {
        self.0 & other.0 != 0
    }

    const fn only_if(self, holds: bool) -> Traits {
        Traits(if holds { self.0 } else { 0 })
    }
}

/// What a row's text leaves open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hole {
    Nothing,
    /// `{}`: the type.
    Type,
    /// `{v}`: the vector's suffix.
    Vector,
    /// `{n}`: the columns of a `wgmma` accumulator.
    Columns,
}

/// A row of the table.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) text: &'static str,
    /// The text, cut at its holes: after the second there is none.
    pub(super) head: Padded<80>,
    pub(super) holes: [Hole; 2],
    pub(super) between: Padded<24>,
    /// The types that `{}` may be, one bit each.
    types: u32,
    pub(crate) to: &'static [Kind],
    pub(crate) from: &'static [Kind],
    /// The targets that have it, one bit each.
    targets: u32,
    pub(crate) since: Version,
    pub(crate) together: Together,
    pub(crate) traits: Traits,
    /// Whether an operand refers to another one, or to what the kernel declares.
    pub(crate) refers: bool,
    /// Whether its last operand is a mask of lanes.
    pub(crate) ends_in_mask: bool,
}

impl Row {
    const fn new(
        text: &'static str,
        types: Types,
        [to, from]: [&'static [Kind]; 2],
        since: Since,
    ) -> Self {
        let ([head, between, rest], holes) = cut(text);
        assert!(rest.is_empty());
        let (mut set, mut i) = (0, 0);
        while i < types.len() {
            set |= types[i].bit();
            i += 1;
        }
        let (mut refers, mut i) = (false, 0);
        while i < from.len() {
            refers |= matches!(from[i], Kind::Part | Kind::SharedName | Kind::Param);
            i += 1;
        }
        let has_type = matches!(holes[0], Hole::Type) || matches!(holes[1], Hole::Type);
        let warp = find(text, ".sync").is_some() || find(text, ".aligned").is_some();
        let together = if begins(text, "bar.sync") || begins(text, "barrier.cluster") {
            Together::Block
        } else if warp {
            Together::Warp
        } else {
            Together::Alone
        };
        Row {
            text,
            head: Padded::new(head),
            holes,
            between: Padded::new(between),
            types: if has_type { set } else { u32::MAX },
            to,
            from,
            targets: since.0,
            since: since.1,
            together,
            traits: Traits::TOGETHER
                .only_if(!matches!(together, Together::Alone))
                .with(Traits::MULTIPLIES.only_if(matches!(to, [Kind::Sums(_)])))
                .with(Traits::GRANTS.only_if(begins(text, "setmaxnreg"))),
            refers,
            ends_in_mask: begins(text, "shfl") || begins(text, "vote") || begins(text, "bar.warp"),
        }
    }

    /// Whether it exists for this type.
    pub(crate) fn has_type(&self, ty: PtxType) -> bool {
        self.types & ty.bit() != 0
    }

    #[inline]
    pub(crate) fn has(&self, traits: Traits) -> bool {
        self.traits.has(traits)
    }

    pub(crate) fn runs_on(&self, target: Target) -> bool {
        self.targets & (1 << target as u32) != 0
    }

    /// The first target that has it.
    pub(crate) fn first_target(&self) -> Target {
        let has = |target: &Target| self.runs_on(*target);
        Target::ALL.into_iter().find(has).unwrap_or(Target::Sm120)
    }
}

/// Where `part` begins in `text`.
const fn find(text: &str, part: &str) -> Option<usize> {
    let (text, part) = (text.as_bytes(), part.as_bytes());
    let mut at = 0;
    while at + part.len() <= text.len() {
        let mut same = 0;
        while same < part.len() && text[at + same] == part[same] {
            same += 1;
        }
        if same == part.len() {
            return Some(at);
        }
        at += 1;
    }
    None
}

const fn begins(text: &str, part: &str) -> bool {
    matches!(find(text, part), Some(0))
}

/// A row's text, cut at up to two holes.
const fn cut(text: &'static str) -> ([&'static str; 3], [Hole; 2]) {
    let (mut pieces, mut holes, mut rest) = ([""; 3], [Hole::Nothing; 2], text);
    let mut i = 0;
    while let Some(at) = find(rest, "{") {
        let (before, hole) = rest.split_at(at);
        pieces[i] = before;
        let (kind, length) = match hole.as_bytes()[1] {
            b'v' => (Hole::Vector, 3),
            b'n' => (Hole::Columns, 3),
            _ => (Hole::Type, 2),
        };
        holes[i] = kind;
        rest = hole.split_at(length).1;
        i += 1;
    }
    pieces[i] = rest;
    (pieces, holes)
}

macro_rules! instructions {
    ($($(#[$doc:meta])* $op:ident = $text:literal, $types:expr,
       [$($to:expr),*] <- [$($from:expr),*], $since:ident;)*) => {
        /// An instruction, by its row in the table.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Op {
            $($(#[$doc])* #[doc = concat!("`", $text, "`")] $op,)*
        }

        static TABLE: &[Row] = &[
            $(Row::new($text, $types, [&[$($to),*], &[$($from),*]], $since),)*
        ];

        impl Op {
            /// Every row of the table.
            pub const ALL: &[Op] = &[$(Op::$op,)*];
        }
    };
}

impl Op {
    pub(crate) fn row(self) -> &'static Row {
        &TABLE[self as usize]
    }
}

/// The targets and the first version of PTX.
type Since = (u32, Version);
const VOLTA: Since = (from(70), Version(6, 0));
const VOLTA_ALIGNED: Since = (from(70), Version(6, 3));
const TURING: Since = (from(75), Version(6, 5));
const AMPERE: Since = (from(80), Version(7, 0));
const AMPERE_HINTS: Since = (from(80), Version(7, 4));
const HOPPER: Since = (from(90), Version(8, 0));
/// What belongs to one architecture alone.
const HOPPER_ONLY: Since = (1 << Target::Sm90a as u32, Version(8, 0));

/// The targets of at least this compute capability.
const fn from(capability: u16) -> u32 {
    let (mut targets, mut i) = (0, 0);
    while i < Target::ALL.len() {
        if Target::ALL[i].capability() >= capability {
            targets |= 1 << Target::ALL[i] as u32;
        }
        i += 1;
    }
    targets
}

type Types = &'static [PtxType];
const NONE: Types = &[PtxType::B32];
const INTEGERS: Types = {
    use PtxType::{S16, S32, S64, U16, U32, U64};
    &[U16, S16, U32, S32, U64, S64]
};
const SHORT: Types = &[PtxType::U16, PtxType::S16, PtxType::U32, PtxType::S32];
const REALS: Types = &[PtxType::F32, PtxType::F64];
const F32: Types = &[PtxType::F32];
const HALVES: Types = &[PtxType::F16, PtxType::F16x2];
const SHIFTED: Types = INTEGERS;
const ORDERED: Types = {
    use PtxType::{F32, F64, S16, S32, S64, U16, U32, U64};
    &[U16, S16, U32, S32, U64, S64, F32, F64]
};
const SIGNEDS: Types = {
    use PtxType::{F32, F64, S16, S32, S64};
    &[S16, S32, S64, F32, F64]
};
const BITS: Types = &[PtxType::B16, PtxType::B32, PtxType::B64, PtxType::Pred];
const UNTYPED: Types = &[PtxType::B16, PtxType::B32, PtxType::B64];
const CHOSEN: Types = {
    use PtxType::{B16, B32, B64, F32, F64, S16, S32, S64, U16, U32, U64};
    &[B16, B32, B64, U16, S16, U32, S32, U64, S64, F32, F64]
};
const LOADED: Types = {
    use PtxType::{B16, B32, B64, F32, F64, S8, S16, S32, S64, U8, U16, U32, U64};
    &[
        U8, S8, B16, B32, B64, U16, S16, U32, S32, U64, S64, F32, F64,
    ]
};
const U32S: Types = &[PtxType::U32];
const U64S: Types = &[PtxType::U64];
const B32S: Types = &[PtxType::B32];
const PREDS: Types = &[PtxType::Pred];
const F16S: Types = &[PtxType::F16];

use Kind::{Factor, Global, Group, Int, Part, Same, Shared, Sums, Vector, Wide, Word};
const PRED: Kind = Kind::Is(PtxType::Pred);
const WORD: Kind = Kind::Is(PtxType::U32);
const LONG: Kind = Kind::Is(PtxType::U64);
const SIGNED: Kind = Kind::Is(PtxType::S32);
const REAL: Kind = Kind::Is(PtxType::F32);

/// A mask of lanes, or where a shuffle stops.
const LANES: Kind = Int(Constants::new(i32::MIN, u32::MAX, 1));
/// How many groups may be under way.
const GROUPS: Kind = Int(Constants::new(0, i32::MAX as u32, 1));
/// The block's barriers, and how many threads come to one.
const BARRIERS: Constants = Constants::new(0, 15, 1);
const THREADS: Kind = Int(Constants::new(32, 1024, 32));
/// What position and length of a field of bits may be.
const BYTE: Kind = Word(Constants::new(0, 255, 1));
const PARITY: Kind = Word(Constants::new(0, 1, 1));
/// What a factor is multiplied with, and whether it is transposed.
const SIGN: Kind = Int(Constants::new(-1, 1, 2));
const TURNED: Kind = Int(Constants::new(0, 1, 1));
const REGISTERS: Kind = Int(Constants::new(24, 256, 8));

instructions! {
    // Integers.
    Add = "add.{}", INTEGERS, [Same] <- [Same, Same], VOLTA;
    Sub = "sub.{}", INTEGERS, [Same] <- [Same, Same], VOLTA;
    MulLo = "mul.lo.{}", INTEGERS, [Same] <- [Same, Same], VOLTA;
    MulHi = "mul.hi.{}", INTEGERS, [Same] <- [Same, Same], VOLTA;
    MulWide = "mul.wide.{}", SHORT, [Wide] <- [Same, Same], VOLTA;
    MadLo = "mad.lo.{}", INTEGERS, [Same] <- [Same, Same, Same], VOLTA;
    MadWide = "mad.wide.{}", SHORT, [Wide] <- [Same, Same, Wide], VOLTA;
    Div = "div.{}", INTEGERS, [Same] <- [Same, Same], VOLTA;
    Rem = "rem.{}", INTEGERS, [Same] <- [Same, Same], VOLTA;
    And = "and.{}", BITS, [Same] <- [Same, Same], VOLTA;
    Or = "or.{}", BITS, [Same] <- [Same, Same], VOLTA;
    Xor = "xor.{}", BITS, [Same] <- [Same, Same], VOLTA;
    Not = "not.{}", BITS, [Same] <- [Same], VOLTA;
    Shl = "shl.{}", UNTYPED, [Same] <- [Same, WORD], VOLTA;
    Shr = "shr.{}", SHIFTED, [Same] <- [Same, WORD], VOLTA;
    /// Bits `length` from `position` on.
    Bfe = "bfe.{}", U32S, [Same] <- [Same, BYTE, BYTE], VOLTA;
    /// Chooses four bytes of two words.
    Prmt = "prmt.{}", B32S, [Same] <- [Same, Same, Same], VOLTA;
    /// Dot product of four signed bytes with four signed bytes, added to a word.
    Dp4a = "dp4a.s32.s32", NONE, [SIGNED] <- [SIGNED, SIGNED, SIGNED], VOLTA;

    // Floating-point numbers. Rounding is always stated, so that ptxas contracts nothing and a
    // GPU computes what the interpreter computes.
    AddRn = "add.rn.{}", REALS, [Same] <- [Same, Same], VOLTA;
    SubRn = "sub.rn.{}", REALS, [Same] <- [Same, Same], VOLTA;
    MulRn = "mul.rn.{}", REALS, [Same] <- [Same, Same], VOLTA;
    Fma = "fma.rn.{}", REALS, [Same] <- [Same, Same, Same], VOLTA;
    FmaHalf = "fma.rn.{}", HALVES, [Same] <- [Same, Same, Same], VOLTA;
    DivRn = "div.rn.{}", REALS, [Same] <- [Same, Same], VOLTA;
    SqrtRn = "sqrt.rn.{}", REALS, [Same] <- [Same], VOLTA;
    /// 1/x, rounded to nearest.
    RcpRn = "rcp.rn.{}", REALS, [Same] <- [Same], VOLTA;
    /// 1/√x with a relative error below 2⁻²².
    Rsqrt = "rsqrt.approx.{}", F32, [Same] <- [Same], VOLTA;
    /// 2ˣ with a relative error below 2⁻²²; −∞ gives 0.
    Ex2 = "ex2.approx.ftz.{}", F32, [Same] <- [Same], VOLTA;
    /// log₂ x with an absolute error below 2⁻²² near 1, a relative one elsewhere.
    Lg2 = "lg2.approx.{}", F32, [Same] <- [Same], VOLTA;
    Min = "min.{}", ORDERED, [Same] <- [Same, Same], VOLTA;
    Max = "max.{}", ORDERED, [Same] <- [Same, Same], VOLTA;
    Neg = "neg.{}", SIGNEDS, [Same] <- [Same], VOLTA;
    Abs = "abs.{}", SIGNEDS, [Same] <- [Same], VOLTA;

    // Comparisons. Those of floating-point numbers are false where either is NaN, but `neu`.
    SetEq = "setp.eq.{}", ORDERED, [PRED] <- [Same, Same], VOLTA;
    SetNe = "setp.ne.{}", INTEGERS, [PRED] <- [Same, Same], VOLTA;
    SetNeu = "setp.neu.{}", REALS, [PRED] <- [Same, Same], VOLTA;
    SetLt = "setp.lt.{}", ORDERED, [PRED] <- [Same, Same], VOLTA;
    SetLe = "setp.le.{}", ORDERED, [PRED] <- [Same, Same], VOLTA;
    SetGt = "setp.gt.{}", ORDERED, [PRED] <- [Same, Same], VOLTA;
    SetGe = "setp.ge.{}", ORDERED, [PRED] <- [Same, Same], VOLTA;
    /// The first where the predicate holds, the second elsewhere.
    Selp = "selp.{}", CHOSEN, [Same] <- [Same, Same, PRED], VOLTA;

    // Moves and conversions.
    Mov = "mov.{}", CHOSEN, [Same] <- [Same], VOLTA;
    MovSpecial = "mov.{}", U32S, [Same] <- [Kind::Special], VOLTA;
    MovShared = "mov.{}", U32S, [Same] <- [Kind::SharedName], VOLTA;
    /// The address of a parameter that the kernel does not load.
    MovParam = "mov.{}", &[PtxType::B64], [LONG] <- [Kind::Param], HOPPER;
    /// Two halves make a word, the first the low half.
    Pack = "mov.{}", B32S, [Same] <- [Group(2, PtxType::B16)], VOLTA;
    /// A word's halves, the low one first.
    Unpack = "mov.{}", B32S, [Group(2, PtxType::B16)] <- [Same], VOLTA;
    /// An address in global memory from a generic one.
    CvtaGlobal = "cvta.to.global.{}", U64S, [Same] <- [Same], VOLTA;
    /// A generic address from one of a parameter.
    CvtaParam = "cvta.param.{}", U64S, [Same] <- [Same], HOPPER;
    CvtU64U32 = "cvt.u64.u32", NONE, [LONG] <- [WORD], VOLTA;
    CvtU32U64 = "cvt.u32.u64", NONE, [WORD] <- [LONG], VOLTA;
    CvtU32U16 = "cvt.u32.u16", NONE, [WORD] <- [Kind::Is(PtxType::U16)], VOLTA;
    CvtU16U32 = "cvt.u16.u32", NONE, [Kind::Is(PtxType::U16)] <- [WORD], VOLTA;
    CvtF32U32 = "cvt.rn.f32.u32", NONE, [REAL] <- [WORD], VOLTA;
    CvtF32S32 = "cvt.rn.f32.s32", NONE, [REAL] <- [SIGNED], VOLTA;
    /// Rounded to the nearest integer, ties to even.
    CvtS32F32 = "cvt.rni.s32.f32", NONE, [SIGNED] <- [REAL], VOLTA;
    CvtF32F16 = "cvt.f32.f16", NONE, [REAL] <- [Kind::Is(PtxType::F16)], VOLTA;
    CvtF16F32 = "cvt.rn.f16.f32", NONE, [Kind::Is(PtxType::F16)] <- [REAL], VOLTA;
    CvtBf16F32 = "cvt.rn.bf16.f32", NONE, [Kind::Is(PtxType::BF16)] <- [REAL], AMPERE;
    /// Rounded to nearest, ties away from zero.
    CvtTf32F32 = "cvt.rna.tf32.f32", NONE, [Kind::Is(PtxType::TF32)] <- [REAL], AMPERE;
    /// Two numbers, the first into the upper half.
    CvtF16x2F32 = "cvt.rn.f16x2.f32", NONE, [Kind::Is(PtxType::F16x2)] <- [REAL, REAL], AMPERE;
    /// Two numbers, the first into the upper half.
    CvtBf16x2F32 = "cvt.rn.bf16x2.f32", NONE, [Kind::Is(PtxType::BF16x2)] <- [REAL, REAL], AMPERE;

    // Memory.
    LdParam = "ld.param.{}", LOADED, [Same] <- [Kind::Param], VOLTA;
    LdGlobal = "ld.global{v}.{}", LOADED, [Vector] <- [Global], VOLTA;
    /// For memory that nothing writes while the kernel runs.
    LdGlobalNc = "ld.global.nc{v}.{}", LOADED, [Vector] <- [Global], VOLTA;
    StGlobal = "st.global{v}.{}", LOADED, [] <- [Global, Vector], VOLTA;
    LdShared = "ld.shared{v}.{}", LOADED, [Vector] <- [Shared], VOLTA;
    StShared = "st.shared{v}.{}", LOADED, [] <- [Shared, Vector], VOLTA;
    /// Atomic addition without a result.
    RedAdd = "red.global.add.{}", &[PtxType::U32, PtxType::F32], [] <- [Global, Same], VOLTA;
    /// Copies so many bytes (16), of which so many come from memory and the rest are zeros.
    CpAsync16 = "cp.async.cg.shared.global", NONE, [] <- [Shared, Global, Int(Constants::new(16, 16, 1)), Part], AMPERE;
    /// The same, and brings the 128 bytes around them to the L2 cache.
    CpAsync16Near = "cp.async.cg.shared.global.L2::128B", NONE, [] <- [Shared, Global, Int(Constants::new(16, 16, 1)), Part], AMPERE_HINTS;
    /// Copies so many bytes (4 or 8), of which so many come from memory and the rest are zeros.
    CpAsync4 = "cp.async.ca.shared.global", NONE, [] <- [Shared, Global, Int(Constants::new(4, 8, 4)), Part], AMPERE;
    CpAsyncCommit = "cp.async.commit_group", NONE, [] <- [], AMPERE;
    /// Waits until at most so many groups are under way.
    CpAsyncWait = "cp.async.wait_group", NONE, [] <- [GROUPS], AMPERE;

    // Threads together.
    /// All threads of the block wait for each other, and see each other's writes.
    BarSync = "bar.sync", NONE, [] <- [Int(BARRIERS)], VOLTA;
    /// So many threads of the block wait at a barrier of this number.
    NamedBarrier = "barrier.sync.aligned", NONE, [] <- [Word(BARRIERS), THREADS], VOLTA;
    BarWarpSync = "bar.warp.sync", NONE, [] <- [LANES], VOLTA;
    /// Value of the lane whose number differs by an XOR.
    ShflBfly = "shfl.sync.bfly.{}", B32S, [Kind::Same] <- [Same, WORD, LANES, LANES], VOLTA;
    /// Value of a higher lane.
    ShflDown = "shfl.sync.down.{}", B32S, [Kind::Same] <- [Same, WORD, LANES, LANES], VOLTA;
    /// Value of one lane.
    ShflIdx = "shfl.sync.idx.{}", B32S, [Kind::Same] <- [Same, WORD, LANES, LANES], VOLTA;
    VoteAny = "vote.sync.any.{}", PREDS, [Same] <- [Same, LANES], VOLTA;
    VoteAll = "vote.sync.all.{}", PREDS, [Same] <- [Same, LANES], VOLTA;

    // Blocks of a cluster, which reach each other's shared memory.
    /// Says that this thread has come to the cluster's barrier; what it wrote before is visible to
    /// those who wait.
    ClusterArrive = "barrier.cluster.arrive.release.aligned", NONE, [] <- [], HOPPER;
    /// Waits until all threads of the cluster have come.
    ClusterWait = "barrier.cluster.wait.acquire.aligned", NONE, [] <- [], HOPPER;
    /// Where a shared address of this block lies in the block of a rank, for the two below.
    Mapa = "mapa.shared::cluster.{}", U32S, [Same] <- [Same, WORD], HOPPER;
    LdCluster = "ld.shared::cluster{v}.{}", LOADED, [Vector] <- [Shared], HOPPER;
    StCluster = "st.shared::cluster{v}.{}", LOADED, [] <- [Shared, Vector], HOPPER;

    // Matrices, a warp at a time.
    /// Four 8×8 matrices of 16-bit values; lane `8i + j` gives row `j` of matrix `i`.
    LdMatrix4 = "ldmatrix.sync.aligned.m8n8.x4.shared.b16", NONE, [Group(4, PtxType::B32)] <- [Shared], TURING;
    /// The same, each matrix transposed.
    LdMatrix4Trans = "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16", NONE, [Group(4, PtxType::B32)] <- [Shared], TURING;
    MmaF16 = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", NONE,
        [Group(4, PtxType::F32)] <- [Factor(4), Factor(2), Group(4, PtxType::F32)], AMPERE;
    MmaBf16 = "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", NONE,
        [Group(4, PtxType::F32)] <- [Factor(4), Factor(2), Group(4, PtxType::F32)], AMPERE;
    MmaTf32 = "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", NONE,
        [Group(4, PtxType::F32)] <- [Factor(4), Factor(2), Group(4, PtxType::F32)], AMPERE;
    /// Of signed bytes, with exact sums in whole numbers.
    MmaS8 = "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32", NONE,
        [Group(4, PtxType::S32)] <- [Factor(4), Factor(2), Group(4, PtxType::S32)], AMPERE;
    MmaS8Half = "mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32", NONE,
        [Group(4, PtxType::S32)] <- [Factor(2), Factor(1), Group(4, PtxType::S32)], AMPERE;
    WmmaLoadA = "wmma.load.a.sync.aligned.row.m16n16k16.shared.{}", F16S,
        [Factor(8)] <- [Shared, WORD], VOLTA_ALIGNED;
    WmmaLoadB = "wmma.load.b.sync.aligned.row.m16n16k16.shared.{}", F16S,
        [Factor(8)] <- [Shared, WORD], VOLTA_ALIGNED;
    WmmaMma = "wmma.mma.sync.aligned.row.row.m16n16k16.f32.f32", NONE,
        [Group(8, PtxType::F32)] <- [Factor(8), Factor(8), Group(8, PtxType::F32)], VOLTA_ALIGNED;
    WmmaStore = "wmma.store.d.sync.aligned.row.m16n16k16.shared.{}", F32,
        [] <- [Shared, Group(8, PtxType::F32), WORD], VOLTA_ALIGNED;

    // Asynchronous barriers in shared memory.
    /// A barrier of so many arrivals a phase.
    MbarrierInit = "mbarrier.init.shared::cta.b64", NONE, [] <- [Shared, WORD], HOPPER;
    MbarrierArrive = "mbarrier.arrive.shared::cta.b64 _,", NONE, [] <- [Shared], HOPPER;
    /// Arrives, and announces so many bytes of asynchronous copies in this phase.
    MbarrierExpect = "mbarrier.arrive.expect_tx.shared::cta.b64 _,", NONE, [] <- [Shared, WORD], HOPPER;
    /// Whether the phase of this parity is over; waits a while for it.
    MbarrierTryWait = "mbarrier.try_wait.parity.shared::cta.b64", NONE, [PRED] <- [Shared, PARITY], HOPPER;
    /// Makes initialised barriers visible to asynchronous copies and to the cluster.
    FenceMbarrierInit = "fence.mbarrier_init.release.cluster", NONE, [] <- [], HOPPER;
    /// Makes earlier writes to shared memory visible to asynchronous copies and `wgmma`.
    FenceProxyAsync = "fence.proxy.async.shared::cta", NONE, [] <- [], HOPPER;

    // The tensor memory accelerator: boxes of tensors between global and shared memory.
    PrefetchTensorMap = "prefetch.tensormap", NONE, [] <- [Kind::Global], HOPPER;
    TmaLoad = "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes", NONE,
        [] <- [Shared, Kind::Box, Shared], HOPPER;
    /// The same of one of several matrices.
    TmaLoad3 = "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes", NONE,
        [] <- [Shared, Kind::Box, Shared], HOPPER;
    TmaStore = "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group", NONE,
        [] <- [Kind::Box, Shared], HOPPER;
    BulkCommit = "cp.async.bulk.commit_group", NONE, [] <- [], HOPPER;
    /// Waits until at most so many groups of stores still read shared memory.
    BulkWaitRead = "cp.async.bulk.wait_group.read", NONE, [] <- [GROUPS], HOPPER;

    // Matrices, four warps at a time, asynchronously.
    WgmmaFence = "wgmma.fence.sync.aligned", NONE, [] <- [], HOPPER_ONLY;
    WgmmaCommit = "wgmma.commit_group.sync.aligned", NONE, [] <- [], HOPPER_ONLY;
    /// Waits until at most so many groups are under way.
    WgmmaWait = "wgmma.wait_group.sync.aligned", NONE, [] <- [GROUPS], HOPPER_ONLY;
    /// Sums += A·B of two descriptors; then: whether to add, the signs of A and B, and whether
    /// each is stored transposed.
    WgmmaBf16 = "wgmma.mma_async.sync.aligned.m64n{n}k16.f32.bf16.bf16", NONE,
        [Sums(PtxType::F32)] <- [LONG, LONG, PRED, SIGN, SIGN, TURNED, TURNED], HOPPER_ONLY;
    /// The same with A in registers, as `mma.sync` takes it: whether to add, the signs, and whether
    /// B is stored transposed.
    WgmmaBf16Regs = "wgmma.mma_async.sync.aligned.m64n{n}k16.f32.bf16.bf16", NONE,
        [Sums(PtxType::F32)] <- [Factor(4), LONG, PRED, SIGN, SIGN, TURNED], HOPPER_ONLY;
    WgmmaF16Regs = "wgmma.mma_async.sync.aligned.m64n{n}k16.f32.f16.f16", NONE,
        [Sums(PtxType::F32)] <- [Factor(4), LONG, PRED, SIGN, SIGN, TURNED], HOPPER_ONLY;
    /// The same of f32 without its last 13 bits: B lies along `k`.
    WgmmaTf32Regs = "wgmma.mma_async.sync.aligned.m64n{n}k8.f32.tf32.tf32", NONE,
        [Sums(PtxType::F32)] <- [Factor(4), LONG, PRED, SIGN, SIGN], HOPPER_ONLY;
    WgmmaF16 = "wgmma.mma_async.sync.aligned.m64n{n}k16.f32.f16.f16", NONE,
        [Sums(PtxType::F32)] <- [LONG, LONG, PRED, SIGN, SIGN, TURNED, TURNED], HOPPER_ONLY;
    /// Gives this warp more registers, taken from what others gave up.
    SetMaxRegInc = "setmaxnreg.inc.sync.aligned.u32", NONE, [] <- [REGISTERS], HOPPER_ONLY;
    /// Gives up all registers but so many.
    SetMaxRegDec = "setmaxnreg.dec.sync.aligned.u32", NONE, [] <- [REGISTERS], HOPPER_ONLY;

    /// Waits until the kernels before this one are over and their results visible, if it was
    /// launched to overlap with them.
    GridWait = "griddepcontrol.wait", NONE, [] <- [], HOPPER;
    /// Lets the next kernel begin, once all blocks have come here.
    GridLaunchNext = "griddepcontrol.launch_dependents", NONE, [] <- [], HOPPER;

    /// Ends the thread.
    Ret = "ret", NONE, [] <- [], VOLTA;
}
