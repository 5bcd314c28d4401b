//! [`Program`]: a compiled graph that runs many times.

use crate::batch::run::{Argument, Runtime};
use crate::device::GpuDevice;
use crate::device::buffer::{DeviceBuffer, Storage};
use crate::device::executor::Running;
use crate::error::{Error, Result};
use crate::graph::{Explanation, Repeat, Source, in_memory};
use crate::graph::{Node, Plan};

/// A compiled batch ([`GpuCommandBatch::compile`](crate::GpuCommandBatch::compile_async)) that runs with
/// new arguments each time, without being recorded, planned or compiled again. It runs on the
/// device's GPU if there is one.
///
/// ```
/// # #[cfg(not(target_arch = "wasm32"))] {
/// use relampago::{GpuCommandBatch, GpuDevice};
///
/// let mut batch = GpuCommandBatch::new(GpuDevice::new()?);
/// let x = batch.placeholder(3);
/// let y = batch.relu(x);
/// let z = batch.scale(y, 2.0);
/// let program = batch.compile(&[z])?;
/// assert_eq!(program.read(&[(&[1.0, -2.0, 3.0]).into()])?, [[2.0, 0.0, 6.0]]);
/// assert_eq!(program.explain().kernels.len(), 1);
/// # }
/// # Ok::<(), relampago::Error>(())
/// ```
#[doc(alias = "compiled graph")]
pub struct Program {
    pub(crate) runtime: Runtime,
}

impl Program {
    pub(crate) async fn new(mut runtime: Runtime) -> Result<Self> {
        runtime.device.check()?;
        if !runtime.executor.is_cpu() {
            for node in &mut runtime.plan.nodes {
                if let Source::Upload(values) = &node.source {
                    let buffer = runtime.device.upload_async(values).await?;
                    node.source = Source::Input(runtime.inputs.len());
                    runtime.inputs.push(buffer);
                }
            }
        }
        runtime.pack()?;
        Ok(Self { runtime })
    }

    /// Compiles a graph that no batch recorded.
    pub(crate) async fn of_graph(
        device: &GpuDevice,
        nodes: &[Node],
        outputs: &[usize],
        inputs: Vec<DeviceBuffer>,
        placeholders: Vec<usize>,
    ) -> Result<Self> {
        let plan = Plan::new(nodes, outputs, true);
        let executor = device.executor_of(plan.nodes.iter().filter_map(Node::class));
        Self::new(Runtime::new(
            device.clone(),
            &executor,
            plan,
            inputs,
            placeholders,
        ))
        .await
    }

    /// Runs with one argument for each placeholder, in the order in which they were recorded. The
    /// results stay on the device. The memory of results that are no longer used is reused.
    ///
    /// # Errors
    /// `LengthMismatch` for a wrong number or length of arguments, `Foreign` for a buffer of
    /// another device, `InvalidArgument` for an index beyond its limit in an argument in host
    /// memory, and device errors.
    pub async fn run_async(&self, arguments: &[Argument<'_>]) -> Result<Vec<DeviceBuffer>> {
        self.run_n_async(arguments, 1, &[]).await
    }

    /// Runs like [`Program::run_async`] and copies the results to the host, on a GPU in the same
    /// submission.
    ///
    /// # Errors
    /// The errors of [`Program::run_async`].
    pub async fn read_async(&self, arguments: &[Argument<'_>]) -> Result<Vec<Vec<f32>>> {
        let (buffers, running) = self.start(arguments, 1, &[], true)?;
        let fetched = running.finished().await?;
        let mut values: Vec<_> = fetched.into_iter().map(in_memory).collect();
        for buffer in &buffers {
            if !matches!(buffer.storage, Storage::Gpu(_)) {
                values.push(buffer.read_async().await?);
            }
        }
        Ok(values)
    }

    /// Runs like [`Program::read_async`], and writes the results to the caller's memory. After an error
    /// its contents are undefined.
    pub(crate) async fn read_into(
        &self,
        arguments: &[Argument<'_>],
        outs: &mut [&mut [f32]],
    ) -> Result<()> {
        self.runtime.read_into(arguments, outs).await
    }

    /// Runs `times` times. After each run, each pair `(result, argument)` of `feedback` makes a
    /// result the argument of the next run. If two pairs name the same argument, the last one wins.
    /// Nothing is copied to the host between runs. Returns the results of the last run.
    ///
    /// # Errors
    /// The errors of [`Program::run_async`]; `LengthMismatch` if a result's length differs from the
    /// argument's; `InvalidArgument` if `times` is 0 or an index is out of range.
    pub async fn run_n_async(
        &self,
        arguments: &[Argument<'_>],
        times: usize,
        feedback: &[(usize, usize)],
    ) -> Result<Vec<DeviceBuffer>> {
        let (buffers, running) = self.start(arguments, times, feedback, false)?;
        running.finished().await?;
        Ok(buffers)
    }

    /// Returns the kernels and buffers that the program uses.
    pub fn explain(&self) -> Explanation {
        self.runtime.explain()
    }

    /// Runs once with these arguments, and returns what [`Program::explain`] returns, with the time of each kernel:
    /// on SIMD by the host's clock, on a GPU by its timestamps, which browsers may round to 0.1 ms, on CUDA by events, from
    /// the end of the kernel before with the copies between GPU and CPU.
    ///
    /// # Errors
    /// The errors of [`Program::run_async`], and `Gpu` where the GPU has no timestamps.
    pub async fn time_async(&self, arguments: &[Argument<'_>]) -> Result<Explanation> {
        self.runtime.time(arguments).await
    }

    /// Returns the device that the program runs on.
    pub fn device(&self) -> &GpuDevice {
        &self.runtime.device
    }

    #[cfg(all(target_arch = "wasm32", feature = "js"))]
    pub(crate) fn plan(&self) -> &crate::graph::plan::Plan {
        &self.runtime.plan
    }

    /// Runs once with these arguments, and times each kernel.
    #[cfg(all(target_arch = "wasm32", feature = "js"))]
    pub(crate) fn times(
        &self,
        arguments: &[Argument<'_>],
    ) -> Result<crate::device::executor::Timing> {
        self.runtime.times(arguments)
    }

    /// Returns whether the program runs on a GPU.
    #[cfg(all(target_arch = "wasm32", feature = "js"))]
    pub(crate) fn is_on_gpu(&self) -> bool {
        !self.runtime.executor.is_cpu()
    }

    /// Starts a run. Returns the results and the run, which on a GPU brings their values to the host if `read` is
    /// set. The arguments are no longer borrowed afterwards.
    pub(crate) fn start(
        &self,
        arguments: &[Argument<'_>],
        times: usize,
        feedback: &[(usize, usize)],
        read: bool,
    ) -> Result<(Vec<DeviceBuffer>, Running)> {
        if times == 0 {
            return Err(Error::invalid("times", "0", "at least 1"));
        }
        let mut nodes = Vec::new();
        for &pair in feedback {
            nodes.push(self.feedback(pair)?);
        }
        let feedback = &nodes;
        let repeat = Repeat { times, feedback };
        let (results, running) = self.runtime.start(arguments, repeat, read)?;
        let mut buffers = Vec::new();
        for storage in results {
            buffers.push(DeviceBuffer::new(self.runtime.device.clone(), storage));
        }
        Ok((buffers, running))
    }

    /// Converts a pair of result and argument indices to a result index and a node index.
    fn feedback(&self, (result, argument): (usize, usize)) -> Result<(usize, usize)> {
        let plan = &self.runtime.plan;
        let (results, arguments) = (plan.outputs.len(), self.runtime.placeholders.len());
        let beyond = |place: usize, what, count| {
            let requirement = format!("below {count}, the number of {what}");
            Error::invalid("feedback", place.to_string(), requirement)
        };
        let output = plan.outputs.get(result);
        let output = output.ok_or_else(|| beyond(result, "results", results))?;
        let expected = self.runtime.placeholders.get(argument);
        let expected = expected.ok_or_else(|| beyond(argument, "arguments", arguments))?;
        crate::ops::shape::check_len("feedback", *expected, plan.nodes[*output].len)?;
        let holds =
            |source: &Source| matches!(source, Source::Placeholder(place) if *place == argument);
        let node = plan.nodes.iter().position(|node| holds(&node.source));
        // Every placeholder is a node, used or not.
        let node = node.ok_or_else(|| beyond(argument, "arguments", arguments))?;
        Ok((result, node))
    }
}

/// Blocking versions, on native targets.
#[cfg(not(target_arch = "wasm32"))]
impl Program {
    /// Blocking version of [`Program::run_async`].
    pub fn run(&self, arguments: &[Argument<'_>]) -> Result<Vec<DeviceBuffer>> {
        crate::runtime::block_on(self.run_async(arguments))
    }

    /// Blocking version of [`Program::read_async`].
    pub fn read(&self, arguments: &[Argument<'_>]) -> Result<Vec<Vec<f32>>> {
        crate::runtime::block_on(self.read_async(arguments))
    }

    /// Blocking version of [`Program::time_async`].
    pub fn time(&self, arguments: &[Argument<'_>]) -> Result<Explanation> {
        crate::runtime::block_on(self.time_async(arguments))
    }

    /// Blocking version of [`Program::run_n_async`].
    pub fn run_n(
        &self,
        arguments: &[Argument<'_>],
        times: usize,
        feedback: &[(usize, usize)],
    ) -> Result<Vec<DeviceBuffer>> {
        crate::runtime::block_on(self.run_n_async(arguments, times, feedback))
    }
}

impl std::fmt::Debug for Program {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Program").field(&self.explain()).finish()
    }
}
