//! A plan together with its device.

use crate::device::GpuDevice;
use crate::device::buffer::{DeviceBuffer, Storage};
use crate::device::executor::{Executor, PlanExecutor, Running, Timing};
use crate::error::{Error, Result};
use crate::graph::{Binding, Explanation, IndexArgument, Node, Plan, Repeat, Source};
use crate::ops::shape::check_len;

/// An argument for a placeholder of a [`Program`](crate::Program).
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Argument<'a> {
    /// Elements in host memory, copied to the device.
    Values(&'a [f32]),
    /// A buffer that is already on the device.
    Buffer(&'a DeviceBuffer),
    /// A JavaScript array, for a GPU.
    #[cfg(all(target_arch = "wasm32", feature = "js"))]
    #[doc(hidden)]
    Array(&'a js_sys::Float32Array),
}

impl<'a> From<&'a [f32]> for Argument<'a> {
    fn from(values: &'a [f32]) -> Self {
        Self::Values(values)
    }
}

impl<'a> From<&'a Vec<f32>> for Argument<'a> {
    fn from(values: &'a Vec<f32>) -> Self {
        Self::Values(values)
    }
}

impl<'a, const N: usize> From<&'a [f32; N]> for Argument<'a> {
    fn from(values: &'a [f32; N]) -> Self {
        Self::Values(values)
    }
}

impl<'a> From<&'a DeviceBuffer> for Argument<'a> {
    fn from(buffer: &'a DeviceBuffer) -> Self {
        Self::Buffer(buffer)
    }
}

/// A plan with its device and back-end.
pub(crate) struct Runtime {
    pub(crate) device: GpuDevice,
    pub(crate) executor: PlanExecutor,
    pub(crate) plan: Plan,
    /// The buffers recorded with the graph.
    pub(crate) inputs: Vec<DeviceBuffer>,
    /// The lengths of the batch's placeholders.
    pub(crate) placeholders: Vec<usize>,
    /// The arguments that are indices.
    indices: Vec<IndexArgument>,
}

impl Runtime {
    pub(crate) fn new(
        device: GpuDevice,
        executor: &Executor,
        plan: Plan,
        inputs: Vec<DeviceBuffer>,
        placeholders: Vec<usize>,
    ) -> Self {
        let members = plan.kernels.iter().flat_map(|kernel| &kernel.members);
        let indices = IndexArgument::all(&plan.nodes, members.copied());
        Self {
            device,
            executor: PlanExecutor::new(executor, &plan),
            plan,
            inputs,
            placeholders,
            indices,
        }
    }

    /// Prepares for many runs: on SIMD, packs the constant matrices once.
    pub(crate) fn pack(&mut self) -> Result<()> {
        if let (PlanExecutor::Cpu(cpu, state), true) = (&mut self.executor, self.plan.optimised) {
            let input = |index: usize| self.inputs[index].host();
            state.pack(&self.plan, *cpu, &input)?;
        }
        Ok(())
    }

    /// Runs the plan. Its results can be used at once. The run brings their values to the host, in the same
    /// submission, if the back-end is a GPU and `read` is set.
    pub(crate) fn start(
        &self,
        arguments: &[Argument<'_>],
        repeat: Repeat<'_>,
        read: bool,
    ) -> Result<(Vec<Storage>, Running)> {
        self.check_arguments(arguments)?;
        let bindings = self.bindings(arguments);
        self.executor.run(&self.plan, bindings, repeat, read)
    }

    /// Runs the plan once and copies the results to `outs`, which have their lengths.
    pub(crate) async fn read_into(
        &self,
        arguments: &[Argument<'_>],
        outs: &mut [&mut [f32]],
    ) -> Result<()> {
        self.check_arguments(arguments)?;
        let bindings = self.bindings(arguments);
        self.executor.read_into(&self.plan, bindings, outs).await
    }

    /// Describes the plan.
    pub(crate) fn explain(&self) -> Explanation {
        let (plan, executor) = (&self.plan, &self.executor);
        plan.explain(|kernel| executor.backend_of(plan, kernel))
    }

    /// Runs the plan once, and times each kernel.
    pub(crate) fn times(&self, arguments: &[Argument<'_>]) -> Result<Timing> {
        self.check_arguments(arguments)?;
        self.executor.time(&self.plan, self.bindings(arguments))
    }

    /// Runs the plan once, and describes it with the time of each kernel.
    pub(crate) async fn time(&self, arguments: &[Argument<'_>]) -> Result<Explanation> {
        let times = self.times(arguments)?.known().await?;
        let mut explanation = self.explain();
        for (kernel, time) in explanation.kernels.iter_mut().zip(times) {
            kernel.time = Some(time);
        }
        Ok(explanation)
    }

    /// Returns the binding of each node.
    fn bindings<'a>(
        &'a self,
        arguments: &'a [Argument<'a>],
    ) -> impl Iterator<Item = Binding<'a, &'a Storage>> {
        let nodes = self.plan.nodes.iter();
        nodes.map(|node| match &node.source {
            Source::Op { .. } => Binding::Nothing,
            Source::Upload(values) => Binding::Values(values),
            Source::Input(index) => Binding::Buffer(&self.inputs[*index].storage),
            Source::Placeholder(place) => match arguments[*place] {
                Argument::Values(values) => Binding::Values(values),
                Argument::Buffer(buffer) => Binding::Buffer(&buffer.storage),
                #[cfg(all(target_arch = "wasm32", feature = "js"))]
                Argument::Array(values) => Binding::Array(values),
            },
        })
    }

    fn check_arguments(&self, arguments: &[Argument<'_>]) -> Result<()> {
        self.device.check()?;
        self.check_classes()?;
        check_len(ARGUMENTS.0, self.placeholders.len(), arguments.len())?;
        for (place, argument) in arguments.iter().enumerate() {
            self.check(argument_name(place), argument, self.placeholders[place])?;
        }
        self.check_indices(arguments)
    }

    /// Returns `WrongResults` if a check has turned off a class of the plan's operations since the plan was made.
    fn check_classes(&self) -> Result<()> {
        let PlanExecutor::Gpu(..) = self.executor else {
            return Ok(());
        };
        let mut classes = self.plan.nodes.iter().filter_map(Node::class);
        match classes.find(|&class| self.device.is_off(class)) {
            Some(class) => Err(Error::WrongResults {
                what: format!(
                    "operations of the class {} were turned off; compile the program again",
                    class.name()
                ),
            }),
            None => Ok(()),
        }
    }

    /// Checks the indices among the arguments, where the host has them.
    fn check_indices(&self, arguments: &[Argument<'_>]) -> Result<()> {
        self.indices
            .iter()
            .try_for_each(|indices| match &arguments[indices.placeholder] {
                Argument::Values(values) => indices.check(values),
                Argument::Buffer(_) => Ok(()),
                #[cfg(all(target_arch = "wasm32", feature = "js"))]
                Argument::Array(values) => indices.check(&values.to_vec()),
            })
    }

    fn check(&self, what: &'static str, argument: &Argument<'_>, len: usize) -> Result<()> {
        match argument {
            Argument::Values(values) => check_len(what, len, values.len()),
            Argument::Buffer(buffer) if !buffer.device().same_device(&self.device) => {
                let owner = "device";
                Err(Error::Foreign { what, owner })
            }
            Argument::Buffer(buffer) => check_len(what, len, buffer.len()),
            #[cfg(all(target_arch = "wasm32", feature = "js"))]
            Argument::Array(values) => check_len(what, len, values.length() as usize),
        }
    }
}

/// The list of a program's arguments and its first elements, as errors name them.
macro_rules! argument_names {
    ($list:literal) => {
        (
            $list,
            [
                concat!($list, "[0]"),
                concat!($list, "[1]"),
                concat!($list, "[2]"),
                concat!($list, "[3]"),
                concat!($list, "[4]"),
                concat!($list, "[5]"),
                concat!($list, "[6]"),
                concat!($list, "[7]"),
            ],
        )
    };
}

const ARGUMENTS: (&str, [&str; 8]) = if cfg!(all(target_arch = "wasm32", feature = "js")) {
    argument_names!("args")
} else {
    argument_names!("arguments")
};

/// Returns the name of a program's argument for errors; those of the first ones have their index.
pub(crate) fn argument_name(place: usize) -> &'static str {
    ARGUMENTS.1.get(place).copied().unwrap_or(ARGUMENTS.0)
}
