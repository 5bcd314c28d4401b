//! [`GpuCommandBatch`]: operations recorded first and then run together.

mod host;
mod methods;

use std::panic::Location;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::buffer::{DeviceBuffer, Storage};
use crate::device::{GpuDevice, try_copy};
use crate::error::{Error, Result};
use crate::gpu::{Gpu, GpuBuffer};
use crate::ops::Op;
use crate::shape::output_len;
use host::HostResults;

/// A buffer of a batch: an input or the result of a recorded operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BufferId {
    batch: u64,
    index: usize,
}

/// For the JavaScript layer, where an id is a number.
#[cfg(all(target_arch = "wasm32", feature = "js"))]
impl BufferId {
    pub(crate) fn parts(self) -> (u64, u64) {
        (self.batch, self.index as u64)
    }

    pub(crate) fn from_parts(batch: u64, index: u64) -> Self {
        let index = index as usize;
        Self { batch, index }
    }
}

/// One buffer and where its values come from.
pub(crate) struct Node {
    pub(crate) source: Source,
    pub(crate) len: usize,
}

pub(crate) enum Source {
    /// Values that the batch copied when they were recorded.
    Upload(Arc<Vec<f32>>),
    /// Values that are on the device already.
    Input(DeviceBuffer),
    /// The result of an operation on earlier nodes.
    Op { op: Op, inputs: Vec<usize> },
}

/// What was computed.
enum Results {
    Host(HostResults),
    Gpu(Vec<GpuBuffer>),
}

/// Operations that are recorded, run together, and then read: on a GPU in one submission, with
/// nothing but what is read coming back; on SIMD one after the other.
///
/// Recording never fails by itself: the first mistake (a wrong length, a buffer of another
/// batch) is kept, with the place in the caller's code, and comes back from
/// [`execute`](Self::execute) and [`read`](Self::read).
///
/// ```
/// # #[cfg(not(target_arch = "wasm32"))] {
/// use relampago::{GpuCommandBatch, GpuDevice, runtime};
///
/// # runtime::block_on(async {
/// let device = GpuDevice::new_async().await?;
/// let mut batch = GpuCommandBatch::new(device);
/// let x = batch.upload(&[1.0, 2.0, -3.0, 4.0]);
/// let y = batch.relu(x);
/// let z = batch.scale(y, 2.0);
/// batch.execute().await?;
/// assert_eq!(batch.read(z).await?, [2.0, 4.0, 0.0, 8.0]);
/// # Ok::<(), relampago::Error>(())
/// # })?;
/// # }
/// # Ok::<(), relampago::Error>(())
/// ```
pub struct GpuCommandBatch {
    device: GpuDevice,
    id: u64,
    nodes: Vec<Node>,
    error: Option<Error>,
    results: Option<Results>,
}

static NEXT_BATCH: AtomicU64 = AtomicU64::new(1);

/// The index of a buffer whose recording failed; reading it gives that failure.
const FAILED: usize = usize::MAX;

impl GpuCommandBatch {
    /// An empty batch for a device.
    pub fn new(device: GpuDevice) -> Self {
        Self {
            device,
            id: NEXT_BATCH.fetch_add(1, Ordering::Relaxed),
            nodes: Vec::new(),
            error: None,
            results: None,
        }
    }

    /// Records values, which are copied now.
    #[track_caller]
    pub fn upload(&mut self, values: &[f32]) -> BufferId {
        let id = self.try_upload(values);
        self.keep_error(id)
    }

    /// Records values that are on the device already; they are not copied.
    #[track_caller]
    pub fn input(&mut self, buffer: &DeviceBuffer) -> BufferId {
        let id = self.try_input(buffer);
        self.keep_error(id)
    }

    /// Runs everything recorded, once.
    ///
    /// # Errors
    /// `Record` where recording went wrong, `AlreadyExecuted` the second time, and what the
    /// device has to say. After an error of the device the batch may be executed again.
    pub async fn execute(&mut self) -> Result<()> {
        if let Some(error) = &self.error {
            return Err(error.clone());
        }
        self.check_recording()?;
        self.device.check()?;
        self.results = Some(match self.chosen_gpu() {
            Some(gpu) => Results::Gpu(gpu.run_graph(&self.nodes).await?),
            None => Results::Host(HostResults::compute(self.device.cpu(), &self.nodes)?),
        });
        Ok(())
    }

    /// [`GpuCommandBatch::execute`], waited for.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn execute_sync(&mut self) -> Result<()> {
        crate::runtime::block_on(self.execute())
    }

    /// The values of a buffer, after [`execute`](Self::execute).
    ///
    /// # Errors
    /// `Foreign` for a buffer of another batch, `NotExecuted`, `Record`, and what the device
    /// has to say.
    pub async fn read(&self, id: BufferId) -> Result<Vec<f32>> {
        self.keep(id)?.read_async().await
    }

    /// [`GpuCommandBatch::read`], waited for.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn read_sync(&self, id: BufferId) -> Result<Vec<f32>> {
        crate::runtime::block_on(self.read(id))
    }

    /// A buffer's values, kept on the device beyond the batch, for use by another one.
    ///
    /// # Errors
    /// As [`GpuCommandBatch::read`].
    pub fn keep(&self, id: BufferId) -> Result<DeviceBuffer> {
        self.check_owner("id", id)?;
        let failed = || self.error.clone().unwrap_or(Error::AlreadyExecuted);
        let storage = match &self.results {
            None => return Err(self.error.clone().unwrap_or(Error::NotExecuted)),
            Some(Results::Host(results)) => results.get(&self.nodes, id.index)?.map(Storage::Host),
            Some(Results::Gpu(buffers)) => buffers.get(id.index).cloned().map(Storage::Gpu),
        };
        let storage = storage.ok_or_else(failed)?;
        Ok(DeviceBuffer::new(self.device.clone(), storage))
    }

    /// The device that the batch runs on.
    pub fn device(&self) -> &GpuDevice {
        &self.device
    }

    /// Records an operation that is known only at run time.
    #[track_caller]
    pub fn record(&mut self, op: Op, inputs: &[BufferId]) -> BufferId {
        let id = self.try_record(op, inputs);
        self.keep_error(id)
    }

    pub(crate) fn try_upload(&mut self, values: &[f32]) -> Result<BufferId> {
        self.try_own(try_copy(values)?)
    }

    pub(crate) fn try_own(&mut self, values: Vec<f32>) -> Result<BufferId> {
        self.check_recording()?;
        Ok(self.push(values.len(), Source::Upload(Arc::new(values))))
    }

    pub(crate) fn try_input(&mut self, buffer: &DeviceBuffer) -> Result<BufferId> {
        self.check_recording()?;
        if !buffer.device().same_device(&self.device) {
            let (what, owner) = ("buffer", "device");
            return Err(Error::Foreign { what, owner });
        }
        Ok(self.push(buffer.len(), Source::Input(buffer.clone())))
    }

    pub(crate) fn try_record(&mut self, op: Op, inputs: &[BufferId]) -> Result<BufferId> {
        self.check_recording()?;
        if let Some(error) = &self.error {
            return Err(error.clone());
        }
        for (&input, &what) in inputs.iter().zip(op.inputs()) {
            self.check_owner(what, input)?;
        }
        let inputs: Vec<usize> = inputs.iter().map(|id| id.index).collect();
        if inputs.iter().any(|&index| index >= self.nodes.len()) {
            // Only an id that JavaScript made up gets here.
            let (what, owner) = ("id", "batch");
            return Err(Error::Foreign { what, owner });
        }
        let len = output_len(&op, &self.lens(&inputs))?;
        Ok(self.push(len, Source::Op { op, inputs }))
    }

    fn push(&mut self, len: usize, source: Source) -> BufferId {
        self.nodes.push(Node { source, len });
        let (batch, index) = (self.id, self.nodes.len() - 1);
        BufferId { batch, index }
    }

    #[track_caller]
    fn keep_error(&mut self, id: Result<BufferId>) -> BufferId {
        let location = Location::caller();
        id.unwrap_or_else(|source| {
            if self.results.is_none() && self.error.is_none() {
                let source = Box::new(source);
                self.error = Some(Error::Record { location, source });
            }
            let (batch, index) = (self.id, FAILED);
            BufferId { batch, index }
        })
    }

    fn check_recording(&self) -> Result<()> {
        match self.results {
            None => Ok(()),
            Some(_) => Err(Error::AlreadyExecuted),
        }
    }

    fn check_owner(&self, what: &'static str, id: BufferId) -> Result<()> {
        let owner = "batch";
        if id.batch != self.id {
            return Err(Error::Foreign { what, owner });
        }
        Ok(())
    }

    fn lens(&self, nodes: &[usize]) -> Vec<usize> {
        nodes.iter().map(|&i| self.nodes[i].len).collect()
    }

    /// The GPU, if anything is there already or any operation alone would be sent there.
    fn chosen_gpu(&self) -> Option<&Arc<Gpu>> {
        self.nodes.iter().find_map(|node| match &node.source {
            Source::Upload(_) => None,
            Source::Input(buffer) => buffer.gpu().and(self.device.gpu()),
            Source::Op { op, inputs } => self.device.gpu_for(op, &self.lens(inputs)),
        })
    }
}

impl std::fmt::Debug for GpuCommandBatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut debug = f.debug_struct("GpuCommandBatch");
        debug.field("buffers", &self.nodes.len());
        debug.field("executed", &self.results.is_some());
        debug.finish_non_exhaustive()
    }
}
