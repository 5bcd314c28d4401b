//! [`Program`]: a graph planned once, run again and again.

use crate::batch::run::{Argument, Runtime};
use crate::device::GpuDevice;
use crate::device::buffer::{DeviceBuffer, Storage};
use crate::error::{Error, Result};
use crate::graph::{Explanation, Fetched, Repeat, Source};
use crate::graph::{Node, Plan};

/// A batch that was planned once ([`GpuCommandBatch::compile`](crate::GpuCommandBatch::compile))
/// and runs with new arguments each time; nothing is recorded, planned or compiled again. Runs on
/// the device's GPU if it has one.
///
/// ```
/// # #[cfg(not(target_arch = "wasm32"))] {
/// use relampago::{GpuCommandBatch, GpuDevice};
///
/// let mut batch = GpuCommandBatch::new(GpuDevice::new()?);
/// let x = batch.placeholder(3);
/// let y = batch.relu(x);
/// let z = batch.scale(y, 2.0);
/// let program = batch.compile_sync(&[z])?;
/// assert_eq!(program.read_sync(&[(&[1.0, -2.0, 3.0]).into()])?, [[2.0, 0.0, 6.0]]);
/// assert_eq!(program.explain().kernels.len(), 1);
/// # }
/// # Ok::<(), relampago::Error>(())
/// ```
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

    /// A program of a graph that no batch recorded.
    pub(crate) async fn of_graph(
        device: &GpuDevice,
        nodes: &[Node],
        outputs: &[usize],
        inputs: Vec<DeviceBuffer>,
        placeholders: Vec<usize>,
    ) -> Result<Self> {
        let plan = Plan::new(nodes, outputs, true);
        Self::new(Runtime::new(
            device.clone(),
            device.executor().clone(),
            plan,
            inputs,
            placeholders,
        ))
        .await
    }

    /// Runs with a value for each placeholder, in the order in which they were recorded; the
    /// results stay on the device. Memory of results that nobody has any more is used again.
    ///
    /// # Errors
    /// `LengthMismatch` for a wrong number or length of arguments, `Foreign` for a buffer of
    /// another device, and what the device has to say.
    pub async fn run(&self, arguments: &[Argument<'_>]) -> Result<Vec<DeviceBuffer>> {
        self.run_n(arguments, 1, &[]).await
    }

    /// [`Program::run`], waited for.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn run_sync(&self, arguments: &[Argument<'_>]) -> Result<Vec<DeviceBuffer>> {
        crate::runtime::block_on(self.run(arguments))
    }

    /// [`Program::run`], whose results come back; on a GPU in the same submission.
    ///
    /// # Errors
    /// As [`Program::run`].
    pub async fn read(&self, arguments: &[Argument<'_>]) -> Result<Vec<Vec<f32>>> {
        let (buffers, running) = self.start(arguments, 1, &[], true)?;
        let mut values = Vec::new();
        if let Some(running) = running {
            values.extend(running.await?.into_iter().map(in_memory));
        }
        for buffer in &buffers {
            if !matches!(buffer.storage, Storage::Gpu(_)) {
                values.push(buffer.read_async().await?);
            }
        }
        Ok(values)
    }

    /// [`Program::read`] to memory of the caller's. After an error it may hold anything.
    pub(crate) async fn read_into(
        &self,
        arguments: &[Argument<'_>],
        outs: &mut [&mut [f32]],
    ) -> Result<()> {
        self.runtime.read_into(arguments, outs).await
    }

    /// [`Program::read`], waited for.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn read_sync(&self, arguments: &[Argument<'_>]) -> Result<Vec<Vec<f32>>> {
        crate::runtime::block_on(self.read(arguments))
    }

    /// Runs `times` times; after each run the results at the first places of `feedback` become
    /// the arguments at the second ones; of two for one argument the last pair counts. Nothing comes to
    /// the host between runs. The results are those of the last run.
    ///
    /// # Errors
    /// As [`Program::run`]; `LengthMismatch` where a result cannot be an argument;
    /// `InvalidArgument` where there is no run or no such place.
    pub async fn run_n(
        &self,
        arguments: &[Argument<'_>],
        times: usize,
        feedback: &[(usize, usize)],
    ) -> Result<Vec<DeviceBuffer>> {
        let (buffers, running) = self.start(arguments, times, feedback, false)?;
        if let Some(running) = running {
            running.await?;
        }
        Ok(buffers)
    }

    /// [`Program::run_n`], waited for.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn run_n_sync(
        &self,
        arguments: &[Argument<'_>],
        times: usize,
        feedback: &[(usize, usize)],
    ) -> Result<Vec<DeviceBuffer>> {
        crate::runtime::block_on(self.run_n(arguments, times, feedback))
    }

    /// How it runs.
    pub fn explain(&self) -> Explanation {
        self.runtime.plan.explain()
    }

    /// The device that it runs on.
    pub fn device(&self) -> &GpuDevice {
        &self.runtime.device
    }

    #[cfg(all(target_arch = "wasm32", feature = "js"))]
    pub(crate) fn plan(&self) -> &crate::graph::plan::Plan {
        &self.runtime.plan
    }

    /// Whether it runs on a GPU.
    #[cfg(all(target_arch = "wasm32", feature = "js"))]
    pub(crate) fn is_on_gpu(&self) -> bool {
        !self.runtime.executor.is_cpu()
    }

    /// The results, and what becomes of them on a GPU: their values where they are to be `read`.
    /// Arguments are needed no longer.
    #[allow(clippy::type_complexity)] // As `Runtime::start` has it.
    pub(crate) fn start(
        &self,
        arguments: &[Argument<'_>],
        times: usize,
        feedback: &[(usize, usize)],
        read: bool,
    ) -> Result<(
        Vec<DeviceBuffer>,
        Option<impl Future<Output = Result<Vec<Fetched>>> + use<>>,
    )> {
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

    /// A pair of places as one of a place and a node.
    fn feedback(&self, (result, argument): (usize, usize)) -> Result<(usize, usize)> {
        let plan = &self.runtime.plan;
        let (results, arguments) = (plan.outputs.len(), self.runtime.placeholders.len());
        let beyond = |place: usize, what, count| {
            let requirement = format!("the place of one of {count} {what}, counted from 0");
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

impl std::fmt::Debug for Program {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Program").field(&self.explain()).finish()
    }
}

#[cfg(not(all(target_arch = "wasm32", feature = "js")))]
fn in_memory(values: Fetched) -> Vec<f32> {
    values
}

#[cfg(all(target_arch = "wasm32", feature = "js"))]
#[allow(clippy::needless_pass_by_value)] // As the other one has it.
fn in_memory(values: Fetched) -> Vec<f32> {
    values.to_vec()
}
