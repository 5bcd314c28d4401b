//! Runs the kernels of [`crate::ptx`] on NVIDIA GPUs, through the driver that is found at run time.
//!
//! No CUDA library is linked. Without a driver, or with one older than CUDA 12.0, every call
//! returns [`Error::NoDriver`]. [`matmul`] works on slices; [`CudaDevice`] keeps data on the GPU
//! and loads custom kernels.
//!
//! ```no_run
//! use relampago::cuda::CudaDevice;
//! use relampago::ptx::SoftmaxKernel;
//! use relampago::cuda::Argument;
//!
//! # fn main() -> Result<(), relampago::cuda::Error> {
//! let device = CudaDevice::open(0)?;
//! let kernel = device.load(&SoftmaxKernel::for_cols(1024))?;
//! let x = device.upload(&vec![1.0f32; 4 * 1024])?;
//! let y = device.zeros::<f32>(4 * 1024)?;
//! // SAFETY: both buffers hold 4 rows of 1024 values, as the kernel's documentation asks.
//! unsafe {
//!     kernel.launch(&[
//!         Argument::Pointer(x.address()), Argument::Pointer(y.address()),
//!         Argument::U32(4), Argument::U32(1024),
//!     ])?;
//! }
//! assert_eq!(y.download()?[0], 1.0 / 1024.0);
//! # Ok(())
//! # }
//! ```
//!
//! [`Stream`]s run work concurrently, [`PinnedBuffer`]s make copies part of that work, and a
//! [`Graph`] launches many operations by one call.

// The files:
//
// - `driver` loads NVIDIA's driver, `context` opens a GPU, `compile` turns text into machine code and caches it,
//   `launch` checks arguments, `ops` and `inference` choose kernels.
// - `queue` orders work.
// - `stream`, `graph` and `pinned` have the public types for queued work.
// - `backend` runs the operations of a `GpuDevice`, `plan` runs batches and programs, `blocked_sum` runs matmuls that
//   accumulate in blocks.
// - `steps` launches the steps of language models.

mod backend;
mod bands;
mod blocked_sum;
mod buffer;
mod cache;
mod compile;
mod context;
mod device;
mod driver;
mod error;
mod event;
mod graph;
mod inference;
mod launch;
mod ops;
mod pinned;
mod plan;
mod queue;
mod row_ops;
#[cfg(feature = "llm-core")]
mod steps;
mod stream;
mod values;

pub(crate) use backend::{CudaBackend, SharedCuda};
pub use buffer::{CudaBuffer, Element};
pub use device::CudaDevice;
pub use error::{Error, Result};
pub use event::Event;
pub use graph::Graph;
pub use inference::AttentionShape;
pub use launch::{Argument, CudaKernel};
pub use ops::matmul;
pub use pinned::PinnedBuffer;
pub(crate) use plan::CudaValues;
pub use stream::Stream;
