//! Graphs: work that is captured once and launched by one call.

use super::buffer::Memory;
use super::device::CudaDevice;
use super::driver::check;
use super::error::{Error, Result};
use super::queue::{Captured, LastUses, MemoryUse, Queue, RawStream, Recording, Submission};
use super::stream::Stream;
use cudarc::driver::sys;
use std::sync::{Arc, Mutex, PoisonError};

impl CudaDevice {
    /// Captures operations and launches as a graph. `work` gets a device that records operations
    /// and does not run them. Allocations, writes and reads of buffers still happen at once. The
    /// device given to `work` returns errors after the call.
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
    /// The errors of `work`, and [`Error::Driver`] if the driver cannot make a graph of it.
    pub fn capture(&self, work: impl FnOnce(&CudaDevice) -> Result<()>) -> Result<Graph> {
        let (template, kept) = self.record(work)?;
        Ok(Graph {
            run: Run::new(self, &template)?,
            uses: kept.memory,
            last_uses: LastUses::default(),
            _kernels: kept.kernels,
        })
    }

    /// Records work as a graph that cannot run yet.
    pub(super) fn record(
        &self,
        work: impl FnOnce(&CudaDevice) -> Result<()>,
    ) -> Result<(Template, Captured)> {
        // The stream does not synchronise with the default queue, so other work can use the GPU
        // meanwhile.
        let flags = sys::CUstream_flags::CU_STREAM_NON_BLOCKING;
        let recording = Arc::new(Recording {
            stream: RawStream::new(self.context(), flags)?,
            kept: Mutex::new(Some(Captured::default())),
        });
        // Relaxed mode, since operations in `work` may have to load a kernel first.
        let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        // SAFETY: the stream exists and is not captured yet.
        check("cuStreamBeginCapture", unsafe {
            sys::cuStreamBeginCapture_v2(recording.stream.handle, mode)
        })?;
        let worked = work(&self.with_queue(Queue::Capture(recording.clone())));
        let recorded = end(self, &recording)?;
        worked?;
        Ok(recorded)
    }
}

/// Ends a capture. It is called on errors too, so that no capture stays open.
fn end(device: &CudaDevice, recording: &Recording) -> Result<(Template, Captured)> {
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

/// A captured graph.
pub(super) struct Template(sys::CUgraph);

impl Drop for Template {
    fn drop(&mut self) {
        // SAFETY: this owns the graph; its instances do not depend on it.
        let _ = unsafe { sys::cuGraphDestroy(self.0) };
    }
}

/// An instance of a graph, which can run.
#[derive(Debug)]
pub(super) struct Run {
    device: CudaDevice,
    handle: sys::CUgraphExec,
}

impl Run {
    pub(super) fn new(device: &CudaDevice, template: &Template) -> Result<Self> {
        let mut handle = std::ptr::null_mut();
        // SAFETY: the graph is whole, and the pointer is to a living handle.
        check("cuGraphInstantiateWithFlags", unsafe {
            sys::cuGraphInstantiateWithFlags(&raw mut handle, template.0, 0)
        })?;
        Ok(Self {
            device: device.with_queue(Queue::Default),
            handle,
        })
    }

    /// Submits the graph.
    pub(super) fn launch(&self, turn: &Submission<'_>) -> Result<()> {
        // SAFETY: the graph exists, and no other thread calls it.
        check("cuGraphLaunch", unsafe {
            sys::cuGraphLaunch(self.handle, turn.stream)
        })
    }

    /// Changes the arguments and the grid of a kernel in runs to come. The node belongs to the template, which still exists.
    #[cfg(feature = "llm-core")]
    pub(super) fn change(
        &self,
        node: sys::CUgraphNode,
        kernel: &super::launch::CudaKernel,
        arguments: &[super::launch::Argument],
    ) -> Result<()> {
        kernel.with_node_params(arguments, |params| {
            // SAFETY: graph and node exist; the driver copies the parameters before it returns.
            check("cuGraphExecKernelNodeSetParams", unsafe {
                sys::cuGraphExecKernelNodeSetParams_v2(self.handle, node, params)
            })
        })
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        if self.device.context().enter().is_ok() {
            // SAFETY: this owns the instance. The driver ends runs in progress before it frees it.
            let _ = unsafe { sys::cuGraphExecDestroy(self.handle) };
        }
    }
}

/// A captured sequence of operations and launches ([`CudaDevice::capture`]). One call launches all
/// of it, at a lower cost than separate calls. A graph uses the buffers that it was captured with
/// and keeps their memory alive.
#[derive(Debug)]
pub struct Graph {
    run: Run,
    uses: Vec<(Arc<Memory>, bool)>,
    /// The last runs of this graph, which never overlap.
    last_uses: LastUses,
    _kernels: Vec<Arc<super::launch::Loaded>>,
}

// SAFETY: the driver accepts calls from any thread, but from one thread at a time, so this is not
// `Sync`.
unsafe impl Send for Graph {}

impl Graph {
    /// Launches the graph on a stream, ordered after earlier uses of the same buffers.
    ///
    /// # Errors
    /// [`Error::Foreign`] if the stream belongs to another GPU, [`Error::Driver`] if the launch
    /// fails.
    pub fn launch(&self, stream: &Stream) -> Result<()> {
        if !self.run.device.is(stream.device()) {
            return Err(Error::Foreign { what: "stream" });
        }
        let own = MemoryUse {
            last_uses: &self.last_uses,
            memory: None,
            writes: true,
        };
        let buffers = self.uses.iter().map(|(memory, writes)| MemoryUse {
            last_uses: &memory.last_uses,
            memory: Some(memory),
            writes: *writes,
        });
        let uses: Vec<MemoryUse<'_>> = buffers.chain([own]).collect();
        // The graph keeps all that it uses alive.
        stream.device().ordered(&uses, |turn| self.run.launch(turn))
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        // After a failure nothing runs any more, so the result is ignored.
        let _ = self.last_uses.wait(true);
    }
}
