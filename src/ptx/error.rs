//! What can be wrong with a kernel, its launch, or its text.

use super::types::{PtxType, Target};
use std::borrow::Cow;
use std::panic::Location;

/// Everything that can go wrong in writing, checking or interpreting PTX.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An operand is not what the instruction's row in the table asks for, or a condition of the
    /// builder is no predicate.
    #[error("{at}: `{instruction}` takes {wanted} as operand {position}, not {found}")]
    Operand {
        /// Where the instruction was emitted.
        at: Place,
        /// Its text, with `{}` for the type, or the builder's method.
        instruction: &'static str,
        /// The operand's number, results first, from 1 on.
        position: usize,
        /// What the table asks for.
        wanted: String,
        /// What was given.
        found: String,
    },
    /// An instruction was given too few or too many operands.
    #[error("{at}: `{instruction}` takes {wanted} operands, not {found}")]
    OperandCount {
        /// Where the instruction was emitted.
        at: Place,
        /// Its text, with `{}` for the type.
        instruction: &'static str,
        /// How many it takes.
        wanted: usize,
        /// How many were given.
        found: usize,
    },
    /// An instruction does not exist for this type.
    #[error("{at}: `{instruction}` does not exist for {ty}")]
    NoSuchType {
        /// Where the instruction was emitted.
        at: Place,
        /// Its text, with `{}` for the type.
        instruction: &'static str,
        /// The type.
        ty: PtxType,
    },
    /// A register of another builder is used.
    #[error(
        "{at}: `{instruction}` takes registers of its own builder, not one of another, of type {ty}"
    )]
    OtherBuilder {
        /// Where it is used.
        at: Place,
        /// The instruction's text, with `{}` for the type, or the builder's method.
        instruction: &'static str,
        /// The register's type.
        ty: PtxType,
    },
    /// A guard, a branch or a loop stands under a guard, which holds instructions alone.
    #[error("{at}: `{what}` stands under a guard, which holds instructions alone")]
    UnderGuard {
        /// Where it begins.
        at: Place,
        /// The builder's method.
        what: &'static str,
    },
    /// The target does not have what the kernel needs.
    #[error("{what} needs {}, and the target is {target}: ask for {needed}", and_later(*needed))]
    Target {
        /// The kernel, and the instruction if it is that of a builder's own.
        what: String,
        /// The first target that has it.
        needed: Target,
        /// The target asked for.
        target: Target,
    },
    /// A register is read where it may not have been written.
    #[error("{kernel}: `{instruction}` reads a register of type {ty} that may not be written yet")]
    Unwritten {
        /// The kernel.
        kernel: String,
        /// The instruction that reads it.
        instruction: String,
        /// The register's type.
        ty: PtxType,
    },
    /// Threads that must execute an instruction together may not all reach it.
    #[error("{kernel}: `{instruction}` stands where only some threads of a {group} may come")]
    Divergent {
        /// The kernel.
        kernel: String,
        /// The instruction.
        instruction: String,
        /// A block or a warp.
        group: &'static str,
    },
    /// A register of an accumulator is used while the tensor cores may still write it.
    #[error("{kernel}: `{instruction}` uses an accumulator before `wgmma.wait_group`")]
    InFlight {
        /// The kernel.
        kernel: String,
        /// The instruction.
        instruction: String,
    },
    /// An access at a constant address lies beyond its shared array.
    #[error("{kernel}: bytes {from}..{to} of `{array}`, which has {bytes}")]
    SharedBounds {
        /// The kernel.
        kernel: String,
        /// The array.
        array: String,
        /// The first byte.
        from: i64,
        /// The byte after the last.
        to: i64,
        /// The array's size.
        bytes: u32,
    },
    /// Something is larger than the target or the hardware allows.
    #[error("{what} is {value}, beyond the limit of {limit}")]
    Limit {
        /// What was measured.
        what: String,
        /// Its value.
        value: u64,
        /// The largest possible.
        limit: u64,
    },
    /// A parameter lies outside its range.
    #[error("{}`{what}` is {value}, but must be {requirement}", prefix(kernel.as_ref()))]
    Invalid {
        /// The kernel, if it is a kernel's.
        kernel: Option<String>,
        /// The parameter.
        what: &'static str,
        /// What was given.
        value: String,
        /// What is allowed.
        requirement: Cow<'static, str>,
    },
    /// A launch's arguments do not match the kernel's parameters.
    #[error("{kernel}: argument {position} must be {wanted}, not {found}")]
    Argument {
        /// The kernel.
        kernel: String,
        /// The argument's number, from 1 on.
        position: usize,
        /// The parameter, by name and type.
        wanted: String,
        /// What was given.
        found: String,
    },
    /// No target has this name.
    #[error("there is no target `{name}`: targets are sm_70 to sm_120")]
    UnknownTarget {
        /// What was asked for.
        name: String,
    },
    /// Text is not PTX, or has an instruction that the interpreter does not know.
    #[error("line {line}: {message}")]
    Parse {
        /// The line, from 1 on.
        line: usize,
        /// What is wrong with it.
        message: String,
    },
    /// A kernel did something undefined while it was interpreted.
    #[error("line {line}, block {block:?}, thread {thread}: {message}")]
    Fault {
        /// The line of the text, from 1 on.
        line: usize,
        /// The block.
        block: [u32; 3],
        /// The thread in the block.
        thread: u32,
        /// What it did.
        message: String,
    },
}

impl Error {
    /// [`Error::Invalid`] for a parameter.
    pub(crate) fn invalid(
        what: &'static str,
        value: impl Into<String>,
        requirement: impl Into<Cow<'static, str>>,
    ) -> Self {
        Error::Invalid {
            kernel: None,
            what,
            value: value.into(),
            requirement: requirement.into(),
        }
    }

    /// The same error of this kernel, unless it names one already.
    pub(super) fn of(mut self, name: impl Into<String>) -> Self {
        if let Error::Invalid { kernel, .. } = &mut self {
            kernel.get_or_insert_with(|| name.into());
        }
        self
    }

    /// What kind it is; the same in every release.
    pub fn code(&self) -> &'static str {
        match self {
            Error::Target { .. } => "UNSUPPORTED",
            Error::Limit { .. } => "LIMIT_EXCEEDED",
            Error::Invalid { .. } | Error::Argument { .. } | Error::UnknownTarget { .. } => {
                "INVALID_ARGUMENT"
            }
            _ => "INVALID_KERNEL",
        }
    }
}

fn prefix(kernel: Option<&String>) -> String {
    kernel.map_or_else(String::new, |name| format!("{name}: "))
}

/// What Hopper alone has is not on later targets.
fn and_later(target: Target) -> String {
    match target {
        Target::Sm90a => format!("{target} itself"),
        _ => format!("{target} or later"),
    }
}

/// Where in the program an instruction was emitted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Place(pub(crate) &'static Location<'static>);

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.0.file(), self.0.line())
    }
}

/// The module's result type.
pub type Result<T, E = Error> = std::result::Result<T, E>;
