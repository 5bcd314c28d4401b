//! Streams: copies to and from pinned memory while kernels run.

use super::buffer::{CudaBuffer, Element};
use super::device::CudaDevice;
use super::driver::check;
use super::error::{Error, Result};
use super::event::Event;
use super::pinned::PinnedBuffer;
use super::queue::{Queue, RawStream};
use cudarc::driver::sys;
use std::sync::Arc;

/// A queue of work on a GPU. Methods return at once, and work of different streams runs
/// concurrently.
///
/// Operations that use the same buffer run in the order of the calls, even on different streams,
/// and reading a result waits for it. So results do not depend on the number of streams. Only
/// kernels that are launched with addresses ([`CudaKernel::launch`](super::CudaKernel::launch))
/// have to be ordered by [`Stream::wait`].
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
    /// Creates a stream on a GPU.
    ///
    /// # Errors
    /// [`Error::Driver`] if the driver cannot create another.
    pub fn new(device: &CudaDevice) -> Result<Self> {
        // The stream must synchronise with the default queue: the device's own operations wait for
        // it.
        let flags = sys::CUstream_flags::CU_STREAM_DEFAULT;
        let raw = Arc::new(RawStream::new(device.context(), flags)?);
        Ok(Stream {
            device: device.with_queue(Queue::Stream(raw.clone())),
            raw,
        })
    }

    /// Returns a device whose operations and launches go to this stream. Allocations, writes and
    /// reads of buffers are still ordered after all work of the GPU ([`CudaDevice`]).
    pub fn device(&self) -> &CudaDevice {
        &self.device
    }

    /// Copies elements to the GPU.
    ///
    /// # Errors
    /// [`Error::Length`] if the lengths differ, [`Error::Foreign`] if the buffer is on another GPU.
    pub fn copy_in<T: Element>(
        &self,
        from: &PinnedBuffer<T>,
        to: &mut CudaBuffer<T>,
    ) -> Result<()> {
        self.check("to", to, from.len())?;
        let bytes = to.bytes();
        self.device.ordered(&[from.input(), to.output()], |turn| {
            // SAFETY: source and destination have that many bytes. Both record this use, so neither
            // is freed, nor the host memory written, before the copy ends.
            check("cuMemcpyHtoDAsync", unsafe {
                sys::cuMemcpyHtoDAsync_v2(to.address(), from.address().cast(), bytes, turn.stream)
            })
        })
    }

    /// Copies elements from the GPU.
    ///
    /// # Errors
    /// [`Error::Length`] if the lengths differ, [`Error::Foreign`] if the buffer is on another GPU.
    pub fn copy_out<T: Element>(
        &self,
        from: &CudaBuffer<T>,
        to: &mut PinnedBuffer<T>,
    ) -> Result<()> {
        self.check("from", from, to.len())?;
        let bytes = from.bytes();
        self.device.ordered(&[from.input(), to.output()], |turn| {
            // SAFETY: source and destination have that many bytes. Both record this use, so neither
            // is freed, nor the host memory read, before the copy ends.
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

    /// Records an event after all work submitted to this stream so far.
    ///
    /// # Errors
    /// [`Error::Driver`] if the driver cannot create another.
    pub fn record(&self) -> Result<Event> {
        Event::record(&self.raw.context, self.raw.handle)
    }

    /// Makes later work of this stream wait for an event, which may belong to any stream of any
    /// GPU.
    ///
    /// # Errors
    /// [`Error::Driver`] if the call fails.
    pub fn wait(&self, event: &Event) -> Result<()> {
        self.raw.wait_for(&event.raw)
    }

    /// Blocks until all work submitted to this stream so far has finished.
    ///
    /// # Errors
    /// [`Error::Driver`] if any of it failed.
    pub fn synchronize(&self) -> Result<()> {
        self.raw.synchronize()
    }
}
