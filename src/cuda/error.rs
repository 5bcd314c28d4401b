//! Errors of the CUDA back-end.

use relampago_ptx as ptx;

/// An error of the CUDA back-end.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no usable driver.
    #[error("no NVIDIA driver: {reason}")]
    NoDriver {
        /// The reason.
        reason: String,
    },
    /// There is no GPU with this index, or the kernels do not support it.
    #[error("no NVIDIA GPU {ordinal}: {reason}")]
    NoDevice {
        /// The GPU's index.
        ordinal: usize,
        /// The reason.
        reason: String,
    },
    /// A call to the driver failed.
    #[error("{call} failed: {message}")]
    Driver {
        /// The function of the driver.
        call: &'static str,
        /// The driver's message.
        message: String,
    },
    /// The GPU has not enough memory for a buffer, or the host for a pinned buffer.
    #[error("out of memory: {bytes} bytes could not be allocated")]
    OutOfMemory {
        /// The requested size in bytes.
        bytes: u64,
    },
    /// The driver could not compile a kernel.
    #[error("`{kernel}` does not compile: {log}\n{text}")]
    Compile {
        /// The kernel.
        kernel: String,
        /// The compiler's log.
        log: String,
        /// The PTX.
        text: String,
    },
    /// A kernel could not be built, or the arguments do not match its parameters.
    #[error(transparent)]
    Ptx(#[from] ptx::Error),
    /// A slice or a buffer has the wrong length.
    #[error("`{what}` has {actual} values, but {expected} are needed")]
    Length {
        /// The argument.
        what: &'static str,
        /// The required number of elements.
        expected: usize,
        /// The actual number of elements.
        actual: usize,
    },
    /// A buffer belongs to another GPU, or to another opened handle of the same GPU.
    #[error("`{what}` is on another device")]
    Foreign {
        /// The argument.
        what: &'static str,
    },
    /// The device of a capture was used after the capture ended.
    #[error("the capture has ended: its device accepts no more work")]
    CaptureEnded,
    /// A size exceeds the range of a kernel's parameters.
    #[error("`{what}` is {value}, beyond the limit of {limit}")]
    Limit {
        /// The size's name.
        what: &'static str,
        /// The size.
        value: usize,
        /// The largest supported size.
        limit: usize,
    },
}

impl Error {
    /// Returns the error's code, which is the same in every release and that of the crate's [`Error`](crate::Error).
    pub fn code(&self) -> &'static str {
        match self {
            Error::NoDriver { .. } | Error::NoDevice { .. } => "NO_GPU",
            Error::Driver { .. } | Error::Compile { .. } | Error::CaptureEnded => "GPU",
            Error::OutOfMemory { .. } => "OUT_OF_MEMORY",
            Error::Ptx(error) => error.code(),
            Error::Length { .. } => "LENGTH_MISMATCH",
            Error::Foreign { .. } => "FOREIGN",
            Error::Limit { .. } => "LIMIT_EXCEEDED",
        }
    }
}

/// The crate's error with the same code and facts.
impl From<Error> for crate::error::Error {
    fn from(error: Error) -> Self {
        match error {
            Error::NoDriver { .. } | Error::NoDevice { .. } => Self::NoGpu {
                reason: error.to_string(),
            },
            Error::Driver { .. } | Error::Compile { .. } | Error::CaptureEnded => Self::Gpu {
                message: error.to_string(),
            },
            Error::OutOfMemory { bytes } => Self::OutOfMemory { bytes },
            Error::Ptx(error) => error.into(),
            Error::Length {
                what,
                expected,
                actual,
            } => Self::LengthMismatch {
                what,
                expected,
                actual,
                reason: "",
            },
            Error::Foreign { what } => Self::Foreign {
                what,
                owner: "device",
            },
            Error::Limit { what, value, limit } => Self::LimitExceeded {
                what,
                value: value as u64,
                limit: limit as u64,
            },
        }
    }
}

/// The module's result type.
pub type Result<T, E = Error> = std::result::Result<T, E>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_crates_error_has_the_same_code() {
        let ptx = ptx::Error::UnknownTarget {
            name: "sm_1".to_owned(),
        };
        let (what, reason) = ("x", String::new());
        for error in [
            Error::NoDriver { reason },
            Error::CaptureEnded,
            Error::OutOfMemory { bytes: 4 },
            Error::Ptx(ptx),
            Error::Length {
                what,
                expected: 2,
                actual: 1,
            },
            Error::Foreign { what },
            Error::Limit {
                what,
                value: 2,
                limit: 1,
            },
        ] {
            let code = error.code();
            assert_eq!(crate::error::Error::from(error).code(), code);
        }
    }
}
