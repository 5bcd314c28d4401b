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

/// The module's result type.
pub type Result<T, E = Error> = std::result::Result<T, E>;
