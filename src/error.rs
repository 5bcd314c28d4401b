//! The crate's error type, with a stable code for each kind.

use std::borrow::Cow;
use std::panic::Location;

/// The largest number of elements in a slice, which holds at most `isize::MAX` bytes.
pub(crate) const MAX_LEN: usize = isize::MAX as usize / size_of::<f32>();

/// All errors of the crate, on every back-end.
///
/// [`Error::code`] is stable across releases. JavaScript has it as `error.code`.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A slice does not have the length that the operation or the shape requires.
    #[error("`{what}` has {actual} values, but must have {expected}{reason}")]
    LengthMismatch {
        /// The argument, by its name in the signature.
        what: &'static str,
        /// The required length, in elements.
        expected: usize,
        /// The given length, in elements.
        actual: usize,
        /// The reason for the required length, such as `` like `a` `` or ` (m × k)`; empty if there is none.
        reason: &'static str,
    },
    /// Shapes of tensors do not fit each other or the operation.
    #[error("{}: {message}", argument(op))]
    ShapeMismatch {
        /// The operation.
        op: &'static str,
        /// The argument, its shape and the requirement of the operation.
        message: String,
    },
    /// The product of a shape's dimensions exceeds the address range.
    #[error(
        "`{what}` of shape {shape:?} has more values than {}, the most of an array",
        MAX_LEN
    )]
    ShapeOverflow {
        /// The argument whose shape overflows.
        what: &'static str,
        /// All dimensions of the shape.
        shape: Vec<usize>,
    },
    /// The input of an operation that needs at least one element is empty: `max`, `min`, `mean`, `argmax`, the rows of
    /// `argmax_rows` and `top_k_rows`, a prompt, tensors to join.
    #[error(
        "`{}` of an empty input is undefined: at least 1 value is needed",
        argument(op)
    )]
    Empty {
        /// The operation.
        op: &'static str,
    },
    /// A parameter is outside its range.
    #[error("`{}` is {value}, but must be {requirement}", argument(what))]
    InvalidArgument {
        /// The parameter, by its name in the signature.
        what: &'static str,
        /// The given value.
        value: String,
        /// The allowed values.
        requirement: Cow<'static, str>,
    },
    /// The input exceeds a limit of the device or of the result's representation.
    #[error("{what} is {value}, beyond the limit of {limit}")]
    LimitExceeded {
        /// The quantity that exceeds the limit.
        what: &'static str,
        /// The requested size.
        value: u64,
        /// The largest allowed size.
        limit: u64,
    },
    /// Memory could not be allocated, on the host or on the device.
    #[error("out of memory: {bytes} bytes could not be allocated; drop buffers or divide the work")]
    OutOfMemory {
        /// The requested size, in bytes.
        bytes: u64,
    },
    /// A GPU was required and none is available.
    #[error("no GPU: {reason}")]
    NoGpu {
        /// The reason.
        reason: String,
    },
    /// The GPU was lost. Build a new device; buffers of the old one are gone.
    #[error("the GPU device was lost, make a new one: {reason}")]
    DeviceLost {
        /// The driver's message.
        reason: String,
    },
    /// The GPU's driver or validation layer refused work that this crate considers valid.
    #[error("the GPU refused the work: {message}")]
    Gpu {
        /// The validation layer's message.
        message: String,
    },
    /// A check found that the GPU gives wrong results ([`crate::GpuDevice::verify_async`]).
    #[error("the GPU gives wrong results: {what}")]
    WrongResults {
        /// The operation, and the error that was found or the reason why the operation cannot run elsewhere.
        what: String,
    },
    /// The WGSL of a custom function is invalid.
    #[error("the WGSL of `{name}` is refused: {message}")]
    Wgsl {
        /// The operation's name.
        name: &'static str,
        /// The problem and its position.
        message: String,
    },
    /// A custom function failed: in JavaScript it threw, or did not return a number.
    #[error("the function of `{name}` failed: {message}")]
    Function {
        /// The operation's name.
        name: &'static str,
        /// The message of the exception.
        message: String,
    },
    /// The gradient of a custom operation was needed, and it states no derivatives.
    #[error("`{op}` has no derivatives: state them, or stop the gradient of its inputs")]
    NoGradient {
        /// The operation's name.
        op: &'static str,
    },
    /// The source or the sink of a stream failed.
    #[error("the {by} of the stream failed: {message}")]
    Stream {
        /// The part that failed: the source or the sink.
        by: &'static str,
        /// The message of its error.
        message: String,
    },
    /// An argument belongs to another batch, device, pool or model.
    #[error("`{what}` belongs to another {owner}: copy its values to this one")]
    Foreign {
        /// The argument, by its name in the signature.
        what: &'static str,
        /// The kind of object that the argument must belong to, such as `batch`, `device` or `model`.
        owner: &'static str,
    },
    /// A batch was executed a second time, or recorded into after execution.
    #[error("the batch was executed already; record a new one")]
    AlreadyExecuted,
    /// A buffer of a batch was read before the batch was executed.
    #[error("the batch has not been executed yet: execute it before it is read")]
    NotExecuted,
    /// A batch with placeholders was executed; only a program can supply their values.
    #[error("the batch has placeholders: compile it, and run the program with values for them")]
    Unbound,
    /// Recording an operation into a batch failed; returned by `execute` and `read`.
    #[error("recorded at {location}: {source}")]
    Record {
        /// The source location of the recording call.
        location: &'static Location<'static>,
        /// The error of the operation.
        source: Box<Error>,
    },
    /// A model's file is damaged, or needs a feature that this version does not have.
    #[cfg(feature = "llm-core")]
    #[error("invalid model: {what}, at {place}")]
    InvalidModel {
        /// What is wrong, with the values found and allowed.
        what: String,
        /// The byte offset, the metadata key or the tensor.
        place: String,
    },
    /// A file cannot be read: it is missing, a folder, or not allowed to be read.
    #[cfg(all(feature = "llm-core", not(target_arch = "wasm32")))]
    #[error("`{path}` cannot be read: {message}")]
    File {
        /// The file's path.
        path: String,
        /// The kind of the operating system's error, such as `NotFound`.
        kind: std::io::ErrorKind,
        /// The message of the operating system.
        message: String,
    },
    /// A kernel of PTX, its text, its launch or its interpretation is invalid.
    #[cfg(feature = "ptx")]
    #[error(transparent)]
    Ptx(Box<relampago_ptx::Error>),
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
    /// Creates [`Error::InvalidArgument`] for a parameter.
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

    /// Creates [`Error::File`] for a path.
    #[cfg(all(feature = "llm-core", not(target_arch = "wasm32")))]
    pub(crate) fn file(path: &std::path::Path, error: &std::io::Error) -> Self {
        Error::File {
            path: path.display().to_string(),
            kind: error.kind(),
            message: error.to_string(),
        }
    }

    /// Returns a stable identifier for programs to match on, in capitals.
    pub fn code(&self) -> &'static str {
        match self {
            Error::LengthMismatch { .. } => "LENGTH_MISMATCH",
            Error::ShapeMismatch { .. } => "SHAPE_MISMATCH",
            Error::ShapeOverflow { .. } => "SHAPE_OVERFLOW",
            Error::Empty { .. } => "EMPTY",
            Error::InvalidArgument { .. } => "INVALID_ARGUMENT",
            Error::LimitExceeded { .. } => "LIMIT_EXCEEDED",
            Error::OutOfMemory { .. } => "OUT_OF_MEMORY",
            Error::NoGpu { .. } => "NO_GPU",
            Error::DeviceLost { .. } => "DEVICE_LOST",
            Error::Gpu { .. } => "GPU",
            Error::WrongResults { .. } => "WRONG_RESULTS",
            Error::Wgsl { .. } => "WGSL",
            Error::Function { .. } => "FUNCTION",
            Error::NoGradient { .. } => "NO_GRADIENT",
            Error::Stream { .. } => "STREAM",
            Error::Foreign { .. } => "FOREIGN",
            Error::AlreadyExecuted => "ALREADY_EXECUTED",
            Error::NotExecuted => "NOT_EXECUTED",
            Error::Unbound => "UNBOUND",
            Error::Record { source, .. } => source.code(),
            #[cfg(feature = "llm-core")]
            Error::InvalidModel { .. } => "INVALID_MODEL",
            #[cfg(all(feature = "llm-core", not(target_arch = "wasm32")))]
            Error::File { .. } => "FILE",
            #[cfg(feature = "ptx")]
            Error::Ptx(error) => error.code(),
            Error::Disposed { .. } => "DISPOSED",
            Error::Aborted => "ABORTED",
        }
    }
}

/// Returns a parameter's name as the caller writes it: camel case in JavaScript.
#[cfg(all(target_arch = "wasm32", any(feature = "js", feature = "js-numeric")))]
pub(crate) fn argument(name: &str) -> String {
    let mut words = name.split('_');
    let mut camel = words.next().unwrap_or_default().to_owned();
    for word in words {
        let (first, rest) = word.split_at(1.min(word.len()));
        camel.push_str(&first.to_ascii_uppercase());
        camel.push_str(rest);
    }
    camel
}

#[cfg(not(all(target_arch = "wasm32", any(feature = "js", feature = "js-numeric"))))]
fn argument(name: &str) -> &str {
    name
}

#[cfg(feature = "ptx")]
impl From<relampago_ptx::Error> for Error {
    fn from(error: relampago_ptx::Error) -> Self {
        Error::Ptx(Box::new(error))
    }
}

/// For functions that return `Result<_, String>`: the error's message.
impl From<Error> for String {
    fn from(error: Error) -> Self {
        error.to_string()
    }
}

/// The crate's result type.
pub type Result<T, E = Error> = std::result::Result<T, E>;
