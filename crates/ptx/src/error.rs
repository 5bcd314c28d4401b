//! Errors in a kernel, its launch or its text.

use super::types::{PtxType, Target};
use std::borrow::Cow;
use std::panic::Location;

/// An error in building, verifying, launching or interpreting PTX.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An operand does not match the instruction's row in the table, or a condition is not a
    /// predicate.
    #[error("{at}: `{instruction}` takes {wanted} as operand {position}, not {found}")]
    Operand {
        /// The location of the call that emitted the instruction.
        at: Place,
        /// The instruction's name, or the builder's method.
        instruction: String,
        /// The operand's position, results first, from 1 on.
        position: usize,
        /// The operand that the table requires.
        wanted: String,
        /// The actual value.
        found: String,
    },
    /// An instruction was given too few or too many operands.
    #[error("{at}: `{instruction}` takes {wanted} operands, not {found}")]
    OperandCount {
        /// The location of the call that emitted the instruction.
        at: Place,
        /// The instruction's name.
        instruction: String,
        /// The required number of operands.
        wanted: usize,
        /// The actual number of operands.
        found: usize,
    },
    /// An instruction does not exist for this type.
    #[error("{at}: `{instruction}` does not exist for {ty}, only for {types}")]
    NoSuchType {
        /// The location of the call that emitted the instruction.
        at: Place,
        /// The instruction's name without the type.
        instruction: String,
        /// The type.
        ty: PtxType,
        /// The types that the instruction exists for.
        types: String,
    },
    /// A register belongs to another builder.
    #[error("{at}: `{instruction}` uses a register of type {ty} that belongs to another builder")]
    OtherBuilder {
        /// The location of the call that uses the register.
        at: Place,
        /// The instruction's name, or the builder's method.
        instruction: String,
        /// The register's type.
        ty: PtxType,
    },
    /// A guard, a branch or a loop is inside a guard, which may contain only instructions.
    #[error("{at}: `{what}` is inside a guard, which may contain only instructions")]
    UnderGuard {
        /// The location of the call.
        at: Place,
        /// The builder's method.
        what: &'static str,
    },
    /// The target lacks a feature of the kernel.
    #[error("{what} needs {}, and the target is {target}: ask for {needed}", and_later(*needed))]
    Target {
        /// The kernel, and the instruction if there is one.
        what: String,
        /// The oldest target that supports it.
        needed: Target,
        /// The requested target.
        target: Target,
    },
    /// A register may be read before it is written.
    #[error("{kernel}: `{instruction}` reads a register of type {ty} that may not be written yet")]
    Unwritten {
        /// The kernel.
        kernel: String,
        /// The instruction that reads it.
        instruction: String,
        /// The register's type.
        ty: PtxType,
    },
    /// Not all threads that must execute an instruction together may reach it.
    #[error(
        "{kernel}: all threads of a {group} must reach `{instruction}`, but some may not reach it"
    )]
    Divergent {
        /// The kernel.
        kernel: String,
        /// The instruction.
        instruction: String,
        /// The group of threads: a block or a warp.
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
    /// An access at a constant address is outside its shared array.
    #[error("{kernel}: access to bytes {from}..{to} of `{array}`, which has {bytes} bytes")]
    SharedBounds {
        /// The kernel.
        kernel: String,
        /// The array.
        array: String,
        /// The first byte.
        from: i64,
        /// The position after the last byte.
        to: i64,
        /// The array's size.
        bytes: u32,
    },
    /// A quantity exceeds the limit of the target or of the hardware.
    #[error("{what} is {value}, beyond the limit of {limit}")]
    Limit {
        /// The quantity.
        what: String,
        /// The actual value.
        value: u64,
        /// The limit.
        limit: u64,
    },
    /// A parameter is outside its range.
    #[error("{}`{what}` is {value}, but must be {requirement}", prefix(kernel.as_ref()))]
    Invalid {
        /// The kernel that the parameter belongs to, if any.
        kernel: Option<String>,
        /// The parameter.
        what: &'static str,
        /// The actual value.
        value: String,
        /// The allowed values.
        requirement: Cow<'static, str>,
    },
    /// A launch's arguments do not match the kernel's parameters.
    #[error("{kernel}: argument {position} must be {wanted}, not {found}")]
    Argument {
        /// The kernel.
        kernel: String,
        /// The argument's position, from 1 on.
        position: usize,
        /// The parameter, by name and type.
        wanted: String,
        /// The actual value.
        found: String,
    },
    /// No target has this name.
    #[error("there is no target `{name}`: targets are sm_70 to sm_120")]
    UnknownTarget {
        /// The requested name.
        name: String,
    },
    /// The text is not valid PTX, or has an instruction that the interpreter does not support.
    #[error("line {line}: {message}")]
    Parse {
        /// The line, from 1 on.
        line: usize,
        /// The problem in the line.
        message: String,
    },
    /// A kernel had undefined behaviour during interpretation.
    #[error("line {line}, block {block:?}, thread {thread}: {message}")]
    Fault {
        /// The line of the text, from 1 on.
        line: usize,
        /// The block.
        block: [u32; 3],
        /// The thread in the block.
        thread: u32,
        /// The undefined action.
        message: String,
    },
}

impl Error {
    /// Creates [`Error::Invalid`] for a parameter.
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

    /// Adds the kernel's name, unless the error has one already.
    pub(super) fn of(mut self, name: impl Into<String>) -> Self {
        if let Error::Invalid { kernel, .. } = &mut self {
            kernel.get_or_insert_with(|| name.into());
        }
        self
    }

    /// Returns the error's code, which is the same in every release.
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

/// Describes the targets that support a feature: features of `sm_90a` are not on later targets.
fn and_later(target: Target) -> String {
    match target {
        Target::Sm90a => format!("{target} itself"),
        _ => format!("{target} or later"),
    }
}

/// The source location of a call to the builder.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Place(pub(crate) &'static Location<'static>);

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.0.file(), self.0.line())
    }
}

/// The module's result type.
pub type Result<T, E = Error> = std::result::Result<T, E>;
