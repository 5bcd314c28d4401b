//! Work that was captured once and is asked for again by one call.

use super::buffer::Memory;
use super::device::CudaDevice;
use super::driver::check;
use super::error::{Error, Result};
use super::queue::{Kept, Marks, Queue, RawStream, Recording, Use};
use super::stream::Stream;
use cudarc::driver::sys;
use std::sync::{Arc, Mutex, PoisonError};

impl CudaDevice {
    /// Captures operations and launches: `work` is called with a device that runs nothing, and
    /// remembers what it is asked for. Buffers are made, written and read as ever, at once; the handle is
    /// of no use after the call.
    ///
    /// ```no_run
    /// use relampago::cuda::{CudaDevice, Stream};
    ///
    /// # fn main() -> Result<(), relampago::cuda::Error> {
    /// let device = CudaDevice::open(0)?;
    /// let (x, mut y) = (device.upload(&[1.0f32; 64])?, device.zeros(64)?);
    /// let mut z = device.zeros(64)?;
    /// let graph = device.capture(|device| {
    ///     device.matmul(&x, &x, &mut y, 8, 8, 8)?;
    ///     device.softmax_rows(&y, &mut z, 8, 8)
    /// })?;
    /// let stream = Stream::new(&device)?;
    /// for _ in 0..100 {
    ///     graph.launch(&stream)?;
    /// }
    /// assert_eq!(z.download()?[0], 1.0 / 8.0);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// What `work` returns; [`Error::Driver`] if the driver cannot make a graph of it.
    pub fn capture(&self, work: impl FnOnce(&CudaDevice) -> Result<()>) -> Result<Graph> {
        // A stream that nothing else waits for, so that others may use the GPU meanwhile.
        let flags = sys::CUstream_flags::CU_STREAM_NON_BLOCKING;
        let recording = Arc::new(Recording {
            stream: RawStream::new(self.context(), flags)?,
            kept: Mutex::new(Some(Kept::default())),
        });
        // Relaxed: what `work` calls may have to load a kernel first.
        let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        // SAFETY: the stream exists and is not captured yet.
        check("cuStreamBeginCapture", unsafe {
            sys::cuStreamBeginCapture_v2(recording.stream.handle, mode)
        })?;
        let worked = work(&self.with_queue(Queue::Capture(recording.clone())));
        let (graph, kept) = end(self, &recording)?;
        worked?;
        Ok(Graph {
            device: self.with_queue(Queue::Default),
            run: graph.instantiate()?,
            uses: kept.memory,
            marks: Marks::default(),
            _kernels: kept.kernels,
        })
    }
}

/// Whatever happened meanwhile: no capture is left open.
fn end(device: &CudaDevice, recording: &Recording) -> Result<(Template, Kept)> {
    let mut kept = recording
        .kept
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    device.context().enter()?;
    let mut graph = std::ptr::null_mut();
    // SAFETY: the stream is captured since `capture`, whose mode lets any thread end it.
    let ended = unsafe { sys::cuStreamEndCapture(recording.stream.handle, &raw mut graph) };
    let kept = kept.take().unwrap_or_default();
    check("cuStreamEndCapture", ended)?;
    Ok((Template(graph), kept))
}

/// What was captured, before it can run.
struct Template(sys::CUgraph);

impl Template {
    fn instantiate(self) -> Result<sys::CUgraphExec> {
        let mut run = std::ptr::null_mut();
        // SAFETY: the graph is whole, and the pointer is to a living handle.
        check("cuGraphInstantiateWithFlags", unsafe {
            sys::cuGraphInstantiateWithFlags(&raw mut run, self.0, 0)
        })?;
        Ok(run)
    }
}

impl Drop for Template {
    fn drop(&mut self) {
        // SAFETY: the graph is its own; what was made of it does not need it.
        let _ = unsafe { sys::cuGraphDestroy(self.0) };
    }
}

/// A sequence of operations and launches ([`CudaDevice::capture`]), started by one call, which costs less
/// than each of them would. It reads and writes the buffers that it was captured with, and keeps
/// their memory for as long as it exists itself.
#[derive(Debug)]
pub struct Graph {
    device: CudaDevice,
    run: sys::CUgraphExec,
    uses: Vec<(Arc<Memory>, bool)>,
    /// Of its own runs, which never overlap.
    marks: Marks,
    _kernels: Vec<Arc<super::launch::Loaded>>,
}

// SAFETY: the driver takes calls from any thread, if from one at a time: so it is not `Sync`.
unsafe impl Send for Graph {}

impl Graph {
    /// Asks for all of it on a stream, in its turn: after what used the same buffers before.
    ///
    /// # Errors
    /// [`Error::Foreign`] if the stream is of another GPU, [`Error::Driver`] if the driver refuses.
    pub fn launch(&self, stream: &Stream) -> Result<()> {
        if !self.device.is(stream.device()) {
            return Err(Error::Foreign { what: "stream" });
        }
        let own = Use {
            marks: &self.marks,
            memory: None,
            writes: true,
        };
        let buffers = self.uses.iter().map(|(memory, writes)| Use {
            marks: &memory.marks,
            memory: Some(memory),
            writes: *writes,
        });
        let uses: Vec<Use<'_>> = buffers.chain([own]).collect();
        stream.device().ordered(&uses, |turn| {
            // SAFETY: the graph exists, and all that it uses is kept; the thread is the only one.
            check("cuGraphLaunch", unsafe {
                sys::cuGraphLaunch(self.run, turn.stream)
            })
        })
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        // After a failure nothing runs any more.
        let _ = self.marks.wait(true);
        if self.device.context().enter().is_ok() {
            // SAFETY: the graph is its own, and its runs have ended.
            let _ = unsafe { sys::cuGraphExecDestroy(self.run) };
        }
    }
}
