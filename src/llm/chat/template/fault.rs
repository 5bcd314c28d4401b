//! The reasons why a template gives no text.

/// Why a template gives no text.
#[derive(Debug)]
pub(super) enum Fault {
    /// The template called `raise_exception`.
    Raised(String),
    /// The values do not allow an operation, or a name is undefined.
    Refused(String),
    /// The template has a construct that this renderer does not have, or that the sandbox forbids.
    Unsupported(String),
    /// The template exceeds a limit of work or memory.
    Limit(String),
}

pub(super) type Result<T> = std::result::Result<T, Fault>;

/// The error of an operation that the values do not allow.
pub(super) fn refused<T>(reason: impl Into<String>) -> Result<T> {
    Err(Fault::Refused(reason.into()))
}

/// The error of a construct that is not supported.
pub(super) fn unsupported<T>(construct: impl Into<String>) -> Result<T> {
    Err(Fault::Unsupported(construct.into()))
}
