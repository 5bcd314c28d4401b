//! Work side by side: copies to and from pinned memory while kernels run.

use super::buffer::{CudaBuffer, Element};
use super::device::CudaDevice;
use super::driver::check;
use super::error::{Error, Result};
use super::event::Event;
use super::pinned::PinnedBuffer;
use super::queue::{Queue, RawStream};
use cudarc::driver::sys;
use std::sync::Arc;

/// A queue of work of its own on a GPU. Nothing waits to be called for by the host: methods return
/// at once, and work of different streams runs side by side.
///
/// Order needs no care: what uses a buffer waits for what used it before, on whichever stream
/// that was, and reading a result waits for what computes it. So a program gives the same results with
/// one stream or with several. Only kernels that are launched by addresses
/// ([`CudaKernel::launch`](super::CudaKernel::launch)) have to be ordered by [`Stream::wait`].
///
/// ```no_run
/// use relampago::cuda::{CudaDevice, Stream};
///
/// # fn main() -> Result<(), relampago::cuda::Error> {
/// let device = CudaDevice::open(0)?;
/// let stream = Stream::new(&device)?;
/// let mut host = device.pinned::<f32>(4 * 1024)?;
/// host.as_mut_slice()?.fill(1.0);
/// let (mut x, mut y) = (device.zeros(4 * 1024)?, device.zeros(4 * 1024)?);
/// stream.copy_in(&host, &mut x)?;
/// stream.device().softmax_rows(&x, &mut y, 4, 1024)?;
/// stream.copy_out(&y, &mut host)?;
/// // All of it has only been asked for. This waits:
/// assert_eq!(host.as_slice()?[0], 1.0 / 1024.0);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Stream {
    raw: Arc<RawStream>,
    device: CudaDevice,
}

impl Stream {
    /// A new stream of a GPU.
    ///
    /// # Errors
    /// [`Error::Driver`] if the driver has no room for another.
    pub fn new(device: &CudaDevice) -> Result<Self> {
        // Not one that ignores the default queue: the device's operations shall wait for it.
        let flags = sys::CUstream_flags::CU_STREAM_DEFAULT;
        let raw = Arc::new(RawStream::new(device.context(), flags)?);
        Ok(Stream {
            device: device.with_queue(Queue::Stream(raw.clone())),
            raw,
        })
    }

    /// The device, with its operations and launches on this stream. Buffers are still made, written
    /// and read in the order of everything ([`CudaDevice`]).
    pub fn device(&self) -> &CudaDevice {
        &self.device
    }

    /// Copies values to the GPU.
    ///
    /// # Errors
    /// [`Error::Length`] if there are more or fewer than the buffer has, [`Error::Foreign`] if it is
    /// on another GPU.
    pub fn copy_in<T: Element>(
        &self,
        from: &PinnedBuffer<T>,
        to: &mut CudaBuffer<T>,
    ) -> Result<()> {
        self.check("to", to, from.len())?;
        let bytes = to.bytes();
        self.device.ordered(&[from.input(), to.output()], |turn| {
            // SAFETY: both places have so many bytes; neither is freed, nor the host's written to,
            // before the end of this, which they are marked with.
            check("cuMemcpyHtoDAsync", unsafe {
                sys::cuMemcpyHtoDAsync_v2(to.address(), from.address().cast(), bytes, turn.stream)
            })
        })
    }

    /// Copies values from the GPU.
    ///
    /// # Errors
    /// [`Error::Length`] if there are more or fewer than `to` has, [`Error::Foreign`] if the buffer is
    /// on another GPU.
    pub fn copy_out<T: Element>(
        &self,
        from: &CudaBuffer<T>,
        to: &mut PinnedBuffer<T>,
    ) -> Result<()> {
        self.check("from", from, to.len())?;
        let bytes = from.bytes();
        self.device.ordered(&[from.input(), to.output()], |turn| {
            // SAFETY: both places have so many bytes; neither is freed, nor the host's looked at,
            // before the end of this, which they are marked with.
            check("cuMemcpyDtoHAsync", unsafe {
                sys::cuMemcpyDtoHAsync_v2(to.address().cast(), from.address(), bytes, turn.stream)
            })
        })
    }

    fn check<T: Element>(
        &self,
        what: &'static str,
        buffer: &CudaBuffer<T>,
        actual: usize,
    ) -> Result<()> {
        if !self.device.is(buffer.device()) {
            return Err(Error::Foreign { what });
        }
        buffer.expect(what, actual)
    }

    /// An event after everything asked of this stream so far.
    ///
    /// # Errors
    /// [`Error::Driver`] if the driver has no room for another.
    pub fn record(&self) -> Result<Event> {
        Event::record(&self.raw.context, self.raw.handle)
    }

    /// Has what is asked of this stream from now on wait for an event, of any stream of any GPU.
    ///
    /// # Errors
    /// [`Error::Driver`] if the driver refuses.
    pub fn wait(&self, event: &Event) -> Result<()> {
        self.raw.wait_for(&event.raw)
    }

    /// Waits until everything asked of this stream so far is done.
    ///
    /// # Errors
    /// [`Error::Driver`] if any of it failed.
    pub fn synchronize(&self) -> Result<()> {
        self.raw.synchronize()
    }
}
