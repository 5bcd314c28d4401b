//! The one error type, with a stable code for each kind.

use std::borrow::Cow;
use std::panic::Location;

/// The most values of a slice, which holds at most `isize::MAX` bytes.
pub(crate) const MAX_LEN: usize = isize::MAX as usize / size_of::<f32>();

/// Everything that can go wrong, on every back-end.
///
/// [`Error::code`] is stable across releases and is what JavaScript sees as `error.code`.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A slice does not have the length that the operation or the stated shape asks for.
    #[error("`{what}` has {actual} values, but {expected} are needed")]
    LengthMismatch {
        /// The argument, by its name in the signature.
        what: &'static str,
        /// The length needed, in values.
        expected: usize,
        /// The length given, in values.
        actual: usize,
    },
    /// The product of a shape's dimensions does not fit into memory's address range.
    #[error(
        "the shape of `{what}`, {rows}×{cols}, has more values than {}, the most of an array",
        MAX_LEN
    )]
    ShapeOverflow {
        /// The argument whose shape overflows.
        what: &'static str,
        /// Its first dimension.
        rows: usize,
        /// Its second dimension.
        cols: usize,
    },
    /// A reduction that has no identity (max, min, mean, argmax) was given nothing to reduce.
    #[error("`{op}` of no values is not defined: at least 1 is needed")]
    Empty {
        /// The operation.
        op: &'static str,
    },
    /// A parameter lies outside its range.
    #[error("`{}` is {value}, but must be {requirement}", argument(what))]
    InvalidArgument {
        /// The parameter, by its name in the signature.
        what: &'static str,
        /// What was given.
        value: String,
        /// What is allowed.
        requirement: Cow<'static, str>,
    },
    /// The input is larger than the device, or the representation of the result, allows.
    #[error("{what} is {value}, beyond the limit of {limit}")]
    LimitExceeded {
        /// What was measured against the limit.
        what: &'static str,
        /// The size asked for.
        value: u64,
        /// The largest size possible.
        limit: u64,
    },
    /// Memory could not be allocated, on the host or on the device.
    #[error("out of memory: {bytes} bytes could not be allocated; drop buffers or divide the work")]
    OutOfMemory {
        /// The size asked for, in bytes.
        bytes: u64,
    },
    /// A GPU was insisted on and there is none to be had.
    #[error("no GPU: {reason}")]
    NoGpu {
        /// Why there is none.
        reason: String,
    },
    /// The GPU went away. Build a new device; buffers of the old one are gone.
    #[error("the GPU device was lost, make a new one: {reason}")]
    DeviceLost {
        /// What the driver said.
        reason: String,
    },
    /// The GPU's driver or its validation refused work that this crate thought valid.
    #[error("the GPU refused the work: {message}")]
    Gpu {
        /// What the validation layer said.
        message: String,
    },
    /// The WGSL of a function of the caller's own is refused.
    #[cfg(not(relampago_small))]
    #[error("the WGSL of `{name}` is refused: {message}")]
    Wgsl {
        /// The operation's name.
        name: &'static str,
        /// What is wrong with it, and where.
        message: String,
    },
    /// A function of the caller's own failed: one in JavaScript threw, or gave no number.
    #[cfg(not(relampago_small))]
    #[error("the function of `{name}` failed: {message}")]
    Function {
        /// The operation's name.
        name: &'static str,
        /// What it threw.
        message: String,
    },
    /// Where the values of a stream come from or go to failed.
    #[cfg(not(relampago_small))]
    #[error("the {by} of the stream failed: {message}")]
    Stream {
        /// The source or the sink.
        by: &'static str,
        /// What it said.
        message: String,
    },
    /// A buffer belongs to another batch or another device.
    #[error("`{what}` belongs to another {owner}: copy its values to this one")]
    Foreign {
        /// The argument, by its name in the signature.
        what: &'static str,
        /// What it should have belonged to: a batch or a device.
        owner: &'static str,
    },
    /// A batch was executed or recorded into after it had been executed.
    #[error("the batch was executed already; record a new one")]
    AlreadyExecuted,
    /// A batch's buffer was read before the batch was executed.
    #[error("the batch has not been executed yet: execute it before it is read")]
    NotExecuted,
    /// A batch with placeholders was executed, which have no values there.
    #[error("the batch has placeholders: compile it, and run the program with values for them")]
    Unbound,
    /// Recording an operation into a batch failed; reported by `execute` and `read`.
    #[error("recorded at {location}: {source}")]
    Record {
        /// Where the operation was recorded.
        location: &'static Location<'static>,
        /// What was wrong with it.
        source: Box<Error>,
    },
    /// A model's file is damaged, or needs what this version does not have.
    #[cfg(feature = "llm")]
    #[error("invalid model: {what}, at {place}")]
    InvalidModel {
        /// What is wrong, with the values found and allowed.
        what: String,
        /// The byte offset, the metadata key or the tensor.
        place: String,
    },
    /// JavaScript used an object after its `dispose`.
    #[error("this {what} was disposed of: make a new one")]
    Disposed {
        /// The object's class.
        what: &'static str,
    },
    /// The caller aborted the work (JavaScript's `AbortSignal`, or a stream's watch).
    #[error("aborted by the caller")]
    Aborted,
}

impl Error {
    /// [`Error::InvalidArgument`] for a parameter.
    pub(crate) fn invalid(
        what: &'static str,
        value: impl Into<String>,
        requirement: impl Into<Cow<'static, str>>,
    ) -> Self {
        Error::InvalidArgument {
            what,
            value: value.into(),
            requirement: requirement.into(),
        }
    }

    /// A stable identifier for programs to match on, in capitals.
    pub fn code(&self) -> &'static str {
        match self {
            Error::LengthMismatch { .. } => "LENGTH_MISMATCH",
            Error::ShapeOverflow { .. } => "SHAPE_OVERFLOW",
            Error::Empty { .. } => "EMPTY",
            Error::InvalidArgument { .. } => "INVALID_ARGUMENT",
            Error::LimitExceeded { .. } => "LIMIT_EXCEEDED",
            Error::OutOfMemory { .. } => "OUT_OF_MEMORY",
            Error::NoGpu { .. } => "NO_GPU",
            Error::DeviceLost { .. } => "DEVICE_LOST",
            Error::Gpu { .. } => "GPU",
            #[cfg(not(relampago_small))]
            Error::Wgsl { .. } => "WGSL",
            #[cfg(not(relampago_small))]
            Error::Function { .. } => "FUNCTION",
            #[cfg(not(relampago_small))]
            Error::Stream { .. } => "STREAM",
            Error::Foreign { .. } => "FOREIGN",
            Error::AlreadyExecuted => "ALREADY_EXECUTED",
            Error::NotExecuted => "NOT_EXECUTED",
            Error::Unbound => "UNBOUND",
            Error::Record { source, .. } => source.code(),
            #[cfg(feature = "llm")]
            Error::InvalidModel { .. } => "INVALID_MODEL",
            Error::Disposed { .. } => "DISPOSED",
            Error::Aborted => "ABORTED",
        }
    }
}

/// A parameter's name as the caller writes it: JavaScript has camel case.
#[cfg(all(target_arch = "wasm32", feature = "js"))]
fn argument(name: &str) -> String {
    let mut words = name.split('_');
    let mut camel = words.next().unwrap_or_default().to_owned();
    for word in words {
        let (first, rest) = word.split_at(1.min(word.len()));
        camel.push_str(&first.to_ascii_uppercase());
        camel.push_str(rest);
    }
    camel
}

#[cfg(not(all(target_arch = "wasm32", feature = "js")))]
fn argument(name: &str) -> &str {
    name
}

/// The crate's result type.
pub type Result<T, E = Error> = std::result::Result<T, E>;
