//! What can go wrong on an NVIDIA GPU.

use crate::ptx;

/// Everything that can go wrong between here and an NVIDIA GPU.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no driver that can be used.
    #[error("no NVIDIA driver: {reason}")]
    NoDriver {
        /// Why there is none.
        reason: String,
    },
    /// There is no GPU of this number, or none that the kernels are written for.
    #[error("no NVIDIA GPU {ordinal}: {reason}")]
    NoDevice {
        /// The GPU's number.
        ordinal: usize,
        /// Why there is none.
        reason: String,
    },
    /// The driver refused a call.
    #[error("{call} failed: {message}")]
    Driver {
        /// The function of the driver.
        call: &'static str,
        /// What it said.
        message: String,
    },
    /// The GPU has no room for a buffer, or the host none for a pinned one.
    #[error("out of memory: {bytes} bytes could not be allocated")]
    OutOfMemory {
        /// The size asked for, in bytes.
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
    /// A kernel could not be written, or its arguments do not match it.
    #[error(transparent)]
    Ptx(#[from] ptx::Error),
    /// A slice or a buffer has the wrong length.
    #[error("`{what}` has {actual} values, but {expected} are needed")]
    Length {
        /// The argument.
        what: &'static str,
        /// The length needed, in values.
        expected: usize,
        /// The length given, in values.
        actual: usize,
    },
    /// A buffer is of another GPU, or of the same one opened another time.
    #[error("`{what}` is on another device")]
    Foreign {
        /// The argument.
        what: &'static str,
    },
    /// A capture's device was used after the capture.
    #[error("the capture has ended: its device asks for nothing any more")]
    CaptureEnded,
    /// A size is larger than a kernel's parameters hold.
    #[error("`{what}` is {value}, beyond the limit of {limit}")]
    Limit {
        /// The size's name.
        what: &'static str,
        /// The size.
        value: usize,
        /// The largest possible.
        limit: usize,
    },
}

/// The module's result type.
pub type Result<T, E = Error> = std::result::Result<T, E>;
