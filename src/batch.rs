//! [`GpuCommandBatch`]: operations that are recorded and then run together.
//!
//! The files:
//!
//! - `program` is a compiled batch, `run` a plan with its device.
//! - `streamed` runs a program piece by piece.

mod cached;
mod custom;
mod former_names;
mod methods;
mod program;
mod run;
#[cfg(any(
    all(test, not(target_arch = "wasm32")),
    all(feature = "js", target_arch = "wasm32")
))]
mod streamed;

use std::panic::Location;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::device::GpuDevice;
use crate::device::buffer::{DeviceBuffer, Storage};
use crate::device::executor::{Executor, PlanExecutor, Running};
use crate::error::{Error, Result};
use crate::graph::node::live;
use crate::graph::{Explanation, Node, Plan, Repeat, Source};
use crate::ops::indices::check_indices;
use crate::ops::shape::{output_len, volume};
use crate::ops::{Op, OpClass};
pub(crate) use run::Runtime;
#[cfg(all(target_arch = "wasm32", feature = "js"))]
pub(crate) use run::argument_name;

pub use program::Program;
pub use run::Argument;

/// A buffer of a batch: an input or the result of a recorded operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BufferId {
    batch: u64,
    index: usize,
}

/// Conversion of ids to and from JavaScript's numbers.
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

/// A list of recorded operations that run together. On a GPU they run in one submission, and only
/// the results that are read are copied to the host.
///
/// Before it runs, a batch is rewritten to fewer operations with the same results. Elementwise
/// operations are fused with the operations before or after them, so their intermediate results are
/// not stored; [`explain`](Self::explain) returns the kernels. [`compile_async`](Self::compile_async) does this
/// once and returns a [`Program`] that runs many times.
///
/// Recording methods do not return errors. The first mistake (a wrong length, a buffer of another
/// batch) is stored with the caller's source location, and [`execute_async`](Self::execute_async) and
/// [`read_async`](Self::read_async) return it.
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
/// batch.execute_async().await?;
/// assert_eq!(batch.read_async(z).await?, [2.0, 4.0, 0.0, 8.0]);
/// # Ok::<(), relampago::Error>(())
/// # })?;
/// # }
/// # Ok::<(), relampago::Error>(())
/// ```
#[doc(alias = "command buffer")]
#[doc(alias = "graph")]
pub struct GpuCommandBatch {
    device: GpuDevice,
    id: u64,
    nodes: Vec<Node>,
    /// The device buffers recorded as inputs.
    inputs: Vec<DeviceBuffer>,
    /// The lengths of placeholders.
    placeholders: Vec<usize>,
    /// The nodes requested as outputs, besides the ends of the graph.
    outputs: Vec<usize>,
    optimised: bool,
    error: Option<Error>,
    /// The computed results that are kept, by node.
    results: Option<Vec<Option<Storage>>>,
}

static NEXT_BATCH: AtomicU64 = AtomicU64::new(1);

/// The index of a buffer whose recording failed. Reading it returns that error.
const FAILED: usize = usize::MAX;

impl GpuCommandBatch {
    /// Creates an empty batch for a device.
    pub fn new(device: GpuDevice) -> Self {
        Self {
            device,
            id: NEXT_BATCH.fetch_add(1, Ordering::Relaxed),
            nodes: Vec::new(),
            inputs: Vec::new(),
            placeholders: Vec::new(),
            outputs: Vec::new(),
            optimised: true,
            error: None,
            results: None,
        }
    }

    /// Records a copy of the elements as an input.
    #[track_caller]
    pub fn upload(&mut self, values: &[f32]) -> BufferId {
        let id = self.try_upload(values);
        self.keep_error(id)
    }

    /// Records a buffer that is already on the device as an input, without copying it.
    #[track_caller]
    pub fn input(&mut self, buffer: &DeviceBuffer) -> BufferId {
        let id = self.try_input(buffer);
        self.keep_error(id)
    }

    /// Records a placeholder of `len` elements, which get their values on each run of a
    /// [`Program`]. The arguments of the program have the order in which placeholders are recorded.
    /// More elements than an array can hold are a mistake: `ShapeOverflow`.
    #[track_caller]
    pub fn placeholder(&mut self, len: usize) -> BufferId {
        let id = self.try_placeholder(len);
        self.keep_error(id)
    }

    /// Marks an intermediate result as an output, so that it can be read without being computed
    /// again.
    ///
    /// # Errors
    /// `Foreign` for a buffer of another batch, `Record`.
    pub fn output(&mut self, id: BufferId) -> Result<()> {
        let index = self.index("id", id)?;
        self.outputs.push(index);
        Ok(())
    }

    /// Enables or disables rewriting and fusion, which are enabled by default. Disable them to find
    /// out whether they change a result.
    pub fn set_optimised(&mut self, optimised: bool) {
        self.optimised = optimised;
    }

    /// Returns the kernels and buffers that [`execute_async`](Self::execute_async) would use for the operations
    /// recorded so far, or a program of them if there are placeholders.
    pub fn explain(&self) -> Explanation {
        let plan = self.planned();
        let executor = PlanExecutor::new(&self.planned_executor(), &plan);
        plan.explain(|kernel| executor.backend_of(&plan, kernel))
    }

    /// Returns the plan of the operations recorded so far.
    pub(crate) fn planned(&self) -> Plan {
        Plan::new(&self.nodes, &self.ends(), self.optimised)
    }

    /// Returns the executor that would run the plan.
    pub(crate) fn planned_executor(&self) -> Executor {
        self.executor_for(&self.ends())
    }

    /// Compiles a program that computes the given outputs and can run many times. Uploads are
    /// copied to the device now; placeholders become the program's arguments.
    ///
    /// # Errors
    /// `Record` if recording failed, `Foreign` for a buffer of another batch, and device errors.
    pub async fn compile_async(&self, outputs: &[BufferId]) -> Result<Program> {
        Program::new(self.prepare(outputs)?).await
    }

    /// Prepares the runtime that [`Program::new`] needs.
    pub(crate) fn prepare(&self, outputs: &[BufferId]) -> Result<Runtime> {
        self.check_recorded()?;
        let mut indices = Vec::new();
        for &id in outputs {
            indices.push(self.index("outputs", id)?);
        }
        let executor = self.device.executor_of(classes(&self.nodes, &indices));
        Ok(self.runtime(&indices, &executor))
    }

    /// Returns the recorded graph, the node indices of the outputs and the lengths of the
    /// placeholders.
    pub(crate) fn recorded(&self, outputs: &[BufferId]) -> Result<(&[Node], Vec<usize>, &[usize])> {
        self.check_recorded()?;
        let indices = outputs.iter().map(|&id| self.index("outputs", id));
        Ok((
            &self.nodes,
            indices.collect::<Result<_>>()?,
            &self.placeholders,
        ))
    }

    /// Returns the buffers that [`Source::Input`] of the recorded graph refers to.
    pub(crate) fn inputs(&self) -> &[DeviceBuffer] {
        &self.inputs
    }

    /// Runs all recorded operations, once.
    ///
    /// # Errors
    /// `Record` if recording failed, `AlreadyExecuted` on a second call, `Unbound` if there are
    /// placeholders, and device errors. After a device error the batch can be executed again.
    pub async fn execute_async(&mut self) -> Result<()> {
        self.check_recorded()?;
        self.check_recording()?;
        let ends = self.ends();
        let (values, running) = self.start(&ends)?;
        running.finished().await?;
        let mut results = vec![None; self.nodes.len()];
        for (end, value) in ends.into_iter().zip(values) {
            results[end] = Some(value);
        }
        self.results = Some(results);
        Ok(())
    }

    /// Copies the elements of a buffer to the host, after [`execute_async`](Self::execute_async).
    ///
    /// # Errors
    /// `Foreign` for a buffer of another batch, `NotExecuted`, `AlreadyExecuted` for a buffer recorded after the
    /// execution, `Record`, and device errors.
    pub async fn read_async(&self, id: BufferId) -> Result<Vec<f32>> {
        self.keep(id)?.read_async().await
    }

    /// Returns a buffer that stays on the device beyond the batch, for use by other batches.
    ///
    /// # Errors
    /// The errors of [`GpuCommandBatch::read_async`].
    pub fn keep(&self, id: BufferId) -> Result<DeviceBuffer> {
        self.check_owner("id", id)?;
        let Some(results) = &self.results else {
            return Err(self.error.clone().unwrap_or(Error::NotExecuted));
        };
        let failed = || self.error.clone().unwrap_or(Error::AlreadyExecuted);
        let storage = match results.get(id.index).ok_or_else(failed)? {
            Some(storage) => storage.clone(),
            // Within a kernel, so computed again. Should the device fail, whoever uses the
            // buffer is told.
            None => self.start(&[id.index])?.0.remove(0),
        };
        Ok(DeviceBuffer::new(self.device.clone(), storage))
    }

    /// Returns the device that the batch runs on.
    pub fn device(&self) -> &GpuDevice {
        &self.device
    }

    /// Records an operation that is chosen at run time.
    #[track_caller]
    pub fn record(&mut self, op: Op, inputs: &[BufferId]) -> BufferId {
        self.record_made(Ok(op), inputs)
    }

    /// Records an operation, or the error from making it.
    #[track_caller]
    pub(crate) fn record_made(&mut self, op: Result<Op>, inputs: &[BufferId]) -> BufferId {
        let id = op.and_then(|op| self.try_record(op, inputs));
        self.keep_error(id)
    }

    pub(crate) fn try_upload(&mut self, values: &[f32]) -> Result<BufferId> {
        self.try_own(self.device.cpu().copy(values)?)
    }

    pub(crate) fn try_own(&mut self, values: Vec<f32>) -> Result<BufferId> {
        self.check_recording()?;
        Ok(self.push(values.len(), Source::Upload(Arc::new(values))))
    }

    pub(crate) fn try_placeholder(&mut self, len: usize) -> Result<BufferId> {
        self.check_recording()?;
        volume("placeholder", [len])?;
        let place = self.placeholders.len();
        self.placeholders.push(len);
        Ok(self.push(len, Source::Placeholder(place)))
    }

    pub(crate) fn try_input(&mut self, buffer: &DeviceBuffer) -> Result<BufferId> {
        self.check_recording()?;
        if !buffer.device().same_device(&self.device) {
            let (what, owner) = ("buffer", "device");
            return Err(Error::Foreign { what, owner });
        }
        self.inputs.push(buffer.clone());
        Ok(self.push(buffer.len(), Source::Input(self.inputs.len() - 1)))
    }

    pub(crate) fn try_record(&mut self, op: Op, inputs: &[BufferId]) -> Result<BufferId> {
        self.check_recording()?;
        if let Some(error) = &self.error {
            return Err(error.clone());
        }
        let named = inputs.iter().zip(op.inputs());
        let indices = named.map(|(&input, &what)| self.index(what, input));
        let mut known = indices.collect::<Result<Vec<usize>>>()?;
        // One too many is told by its length alone.
        known.resize(inputs.len(), 0);
        let inputs = known;
        let len = output_len(&op, &self.lens(&inputs))?;
        check_indices(&op, |input| match &self.nodes[inputs[input]].source {
            Source::Upload(values) => Some(values),
            _ => None,
        })?;
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
            self.failed()
        })
    }

    /// Returns the buffer that stands for one whose recording failed.
    pub(crate) fn failed(&self) -> BufferId {
        let (batch, index) = (self.id, FAILED);
        BufferId { batch, index }
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

    /// Returns the node index of a buffer of this batch.
    fn index(&self, what: &'static str, id: BufferId) -> Result<usize> {
        self.check_owner(what, id)?;
        if id.index < self.nodes.len() {
            return Ok(id.index);
        }
        // A record that failed, one after the batch was executed, or an id that JavaScript made up.
        let owner = "batch";
        let other = match (&self.results, id.index) {
            (Some(_), FAILED) => Error::AlreadyExecuted,
            _ => Error::Foreign { what, owner },
        };
        Err(self.error.clone().unwrap_or(other))
    }

    fn check_recorded(&self) -> Result<()> {
        self.error.clone().map_or(Ok(()), Err)
    }

    fn lens(&self, nodes: &[usize]) -> Vec<usize> {
        nodes.iter().map(|&i| self.nodes[i].len).collect()
    }

    /// Returns the nodes that no other node uses, and the requested outputs.
    fn ends(&self) -> Vec<usize> {
        let mut ends = vec![true; self.nodes.len()];
        for &input in self.nodes.iter().flat_map(Node::inputs) {
            ends[input] = false;
        }
        for &output in &self.outputs {
            ends[output] = true;
        }
        (0..ends.len()).filter(|&node| ends[node]).collect()
    }

    fn start(&self, outputs: &[usize]) -> Result<(Vec<Storage>, Running)> {
        if !self.placeholders.is_empty() {
            return Err(Error::Unbound);
        }
        let executor = self.executor_for(outputs);
        self.runtime(outputs, &executor)
            .start(&[], Repeat::ONCE, false)
    }

    fn runtime(&self, outputs: &[usize], executor: &Executor) -> Runtime {
        let plan = Plan::new(&self.nodes, outputs, self.optimised);
        let (inputs, placeholders) = (self.inputs.clone(), self.placeholders.clone());
        Runtime::new(self.device.clone(), executor, plan, inputs, placeholders)
    }

    /// Returns the device's own back-end, or the CPU if the GPU does not pay off. It pays off if a needed buffer is on
    /// it already, or if any operation alone would run on it and all operations fit. Only programs bind placeholders,
    /// and they run on the device's own back-end.
    fn executor_for(&self, outputs: &[usize]) -> Executor {
        let own = self.device.executor_of(classes(&self.nodes, outputs));
        match own.max_len() {
            Some(max_len) if !self.needs_gpu(outputs, max_len) => Executor::Cpu(self.device.cpu()),
            _ => own,
        }
    }

    fn needs_gpu(&self, outputs: &[usize], max_len: usize) -> bool {
        if !self.placeholders.is_empty() {
            return true;
        }
        let live = live(&self.nodes, outputs);
        let (mut chosen, mut longest) = (false, 0);
        for (node, _) in self.nodes.iter().zip(live).filter(|(_, live)| *live) {
            longest = longest.max(node.len);
            match &node.source {
                Source::Input(index) if self.inputs[*index].host().is_none() => {
                    return true;
                }
                // Its weights are there.
                Source::Op {
                    op: Op::MatmulCached(_),
                    ..
                } => return true,
                Source::Op { op, inputs } if !chosen => {
                    chosen = self.device.uses_gpu(op, &self.lens(inputs));
                }
                _ => {}
            }
        }
        chosen && (longest <= max_len || self.device.insists_on_gpu())
    }
}

/// Returns the classes of the operations that the outputs depend on.
fn classes(nodes: &[Node], outputs: &[usize]) -> impl Iterator<Item = OpClass> {
    let needed = nodes.iter().zip(live(nodes, outputs));
    needed.filter_map(|(node, live)| node.class().filter(|_| live))
}

/// Blocking versions, on native targets.
#[cfg(not(target_arch = "wasm32"))]
impl GpuCommandBatch {
    /// Blocking version of [`GpuCommandBatch::compile_async`].
    pub fn compile(&self, outputs: &[BufferId]) -> Result<Program> {
        crate::runtime::block_on(self.compile_async(outputs))
    }

    /// Blocking version of [`GpuCommandBatch::execute_async`].
    pub fn execute_sync(&mut self) -> Result<()> {
        crate::runtime::block_on(self.execute_async())
    }

    /// Blocking version of [`GpuCommandBatch::read_async`].
    pub fn read_sync(&self, id: BufferId) -> Result<Vec<f32>> {
        crate::runtime::block_on(self.read_async(id))
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
