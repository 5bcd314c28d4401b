//! A row of the instruction table, and the facts that its text implies.

use super::kind::Kind;
use super::table::{Since, Types};
use crate::types::{PtxType, Target, Version};

/// The group of threads that must execute an instruction together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Together {
    Alone,
    Warp,
    Block,
}

/// Properties of instructions that the checks of a whole kernel look for.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Traits(u8);

impl Traits {
    /// Threads must execute the instruction together.
    pub(crate) const TOGETHER: Traits = Traits(1);
    /// The instruction adds to accumulators asynchronously, so it reads and writes them.
    pub(crate) const MULTIPLIES: Traits = Traits(2);
    /// The instruction changes the number of registers of a thread.
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

/// A placeholder in a row's text.
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
    /// The text, split at its placeholders.
    pub(crate) parts: [&'static str; 3],
    /// The placeholder after each part.
    pub(crate) holes: [Hole; 3],
    /// The set of types for `{}`, one bit each.
    types: u32,
    pub(crate) to: &'static [Kind],
    pub(crate) from: &'static [Kind],
    /// The set of targets that support the instruction, one bit each.
    targets: u32,
    pub(crate) since: Version,
    pub(crate) together: Together,
    pub(crate) traits: Traits,
    /// Whether an operand refers to another operand, or to a declaration of the kernel.
    pub(crate) refers: bool,
    /// Whether the last operand is a mask of lanes.
    pub(crate) ends_in_mask: bool,
}

impl Row {
    pub(super) const fn new(
        text: &'static str,
        types: Types,
        [to, from]: [&'static [Kind]; 2],
        since: Since,
    ) -> Self {
        let (parts, holes) = cut(text);
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
            parts,
            holes,
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

    /// Returns the instruction's name with a type, for messages.
    pub(crate) fn name(&self, ty: PtxType) -> String {
        self.named(ty.name())
    }

    /// Returns the instruction's name without a type, for messages.
    pub(crate) fn name_without_type(&self) -> String {
        // The type's dot stands in the text.
        self.named("").trim_end_matches('.').replace("..", ".")
    }

    /// The length of a vector and the number of columns follow from operands, which may be invalid.
    fn named(&self, ty: &str) -> String {
        let text = self.text.replace("{}", ty);
        text.replace("{v}", "").replace("{n}", "N")
    }

    /// Lists the types that the instruction exists for.
    pub(crate) fn types(&self) -> String {
        let types = PtxType::ALL.iter().filter(|ty| self.has_type(**ty));
        let names: Vec<&str> = types.map(|ty| ty.name()).collect();
        names.join(", ")
    }

    /// Whether the instruction exists for this type.
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

    /// Returns the oldest target that supports the instruction.
    pub(crate) fn first_target(&self) -> Target {
        let has = |target: &Target| self.runs_on(*target);
        Target::ALL.into_iter().find(has).unwrap_or(Target::Sm120)
    }
}

/// Returns the first position of `part` in `text`.
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

/// Splits a row's text at its placeholders; there are at most two.
const fn cut(text: &'static str) -> ([&'static str; 3], [Hole; 3]) {
    let (mut parts, mut holes, mut rest) = ([""; 3], [Hole::Nothing; 3], text);
    let mut i = 0;
    while let Some(at) = find(rest, "{") {
        let (before, hole) = rest.split_at(at);
        parts[i] = before;
        let (kind, length) = match hole.as_bytes()[1] {
            b'v' => (Hole::Vector, 3),
            b'n' => (Hole::Columns, 3),
            _ => (Hole::Type, 2),
        };
        holes[i] = kind;
        rest = hole.split_at(length).1;
        i += 1;
    }
    parts[i] = rest;
    (parts, holes)
}
