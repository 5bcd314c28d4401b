//! A plan together with its device.

use std::sync::Arc;

use crate::device::CudaValues;
use crate::device::GpuDevice;
use crate::device::buffer::{DeviceBuffer, Storage};
use crate::device::executor::{Executor, PlanExecutor, foreign};
use crate::error::{Error, Result};
use crate::gpu::GpuBuffer;
use crate::graph::{Binding, Fetched, Plan, Repeat, Source};
use crate::ops::shape::check_len;

/// An argument for a placeholder of a [`Program`](crate::Program).
#[derive(Clone, Copy, Debug)]
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
}

impl Runtime {
    pub(crate) fn new(
        device: GpuDevice,
        executor: Executor,
        plan: Plan,
        inputs: Vec<DeviceBuffer>,
        placeholders: Vec<usize>,
    ) -> Self {
        Self {
            device,
            executor: PlanExecutor::new(executor, &plan),
            plan,
            inputs,
            placeholders,
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

    /// Runs the plan. On a GPU the results can be used at once; the future returns errors of the
    /// run and, if `read` is set, the results' values, copied in the same submission.
    #[allow(clippy::type_complexity)] // Results now, and a future of values.
    pub(crate) fn start(
        &self,
        arguments: &[Argument<'_>],
        repeat: Repeat<'_>,
        read: bool,
    ) -> Result<(
        Vec<Storage>,
        Option<impl Future<Output = Result<Vec<Fetched>>> + use<>>,
    )> {
        Ok(match &self.executor {
            PlanExecutor::Cpu(cpu, state) => {
                let bindings = self.bindings(arguments, on_host)?;
                let values = state.run(&self.plan, *cpu, bindings, repeat)?;
                (values.into_iter().map(Storage::Host).collect(), None)
            }
            PlanExecutor::Gpu(gpu, texts) => {
                let bindings = self.bindings(arguments, on_gpu)?;
                let plan = (&self.plan, texts);
                let (buffers, running) = gpu.run_plan(plan, bindings, repeat, read)?;
                let results = buffers.into_iter().map(Storage::Gpu).collect();
                (results, Some(running))
            }
            PlanExecutor::Cuda(cuda) => {
                let bindings = self.bindings(arguments, on_cuda)?;
                let values = cuda.run_plan(&self.plan, bindings, repeat)?;
                (values.into_iter().map(Storage::Cuda).collect(), None)
            }
        })
    }

    /// Runs the plan once and copies the results to `outs`, which have their lengths.
    pub(crate) async fn read_into(
        &self,
        arguments: &[Argument<'_>],
        outs: &mut [&mut [f32]],
    ) -> Result<()> {
        match &self.executor {
            PlanExecutor::Cpu(cpu, state) => {
                let bindings = self.bindings(arguments, on_host)?;
                let results = state.run(&self.plan, *cpu, bindings, Repeat::ONCE)?;
                for (out, result) in outs.iter_mut().zip(results) {
                    out.copy_from_slice(&result);
                }
            }
            PlanExecutor::Gpu(gpu, texts) => {
                let bindings = self.bindings(arguments, on_gpu)?;
                gpu.read_plan((&self.plan, texts), bindings, outs).await?;
            }
            PlanExecutor::Cuda(cuda) => {
                let bindings = self.bindings(arguments, on_cuda)?;
                let results = cuda.run_plan(&self.plan, bindings, Repeat::ONCE)?;
                for (out, result) in outs.iter_mut().zip(results) {
                    out.copy_from_slice(&cuda.read(&result)?);
                }
            }
        }
        Ok(())
    }

    /// Returns the binding of each node; `of` converts a buffer for the back-end.
    fn bindings<'a, B>(
        &'a self,
        arguments: &[Argument<'a>],
        of: fn(&'a Storage) -> Result<Binding<'a, B>>,
    ) -> Result<Vec<Binding<'a, B>>> {
        self.device.check()?;
        check_len("arguments", self.placeholders.len(), arguments.len())?;
        for (place, argument) in arguments.iter().enumerate() {
            self.check(argument, self.placeholders[place])?;
        }
        let mut bindings = Vec::new();
        for node in &self.plan.nodes {
            bindings.push(match &node.source {
                Source::Op { .. } => Binding::Nothing,
                Source::Upload(values) => Binding::Values(values),
                Source::Input(index) => of(&self.inputs[*index].storage)?,
                Source::Placeholder(place) => match arguments[*place] {
                    Argument::Values(values) => Binding::Values(values),
                    Argument::Buffer(buffer) => of(&buffer.storage)?,
                    #[cfg(all(target_arch = "wasm32", feature = "js"))]
                    Argument::Array(values) => Binding::Array(values),
                },
            });
        }
        Ok(bindings)
    }

    fn check(&self, argument: &Argument<'_>, len: usize) -> Result<()> {
        match argument {
            Argument::Values(values) => check_len("argument", len, values.len()),
            Argument::Buffer(buffer) if !buffer.device().same_device(&self.device) => {
                let (what, owner) = ("argument", "device");
                Err(Error::Foreign { what, owner })
            }
            Argument::Buffer(buffer) => check_len("argument", len, buffer.len()),
            #[cfg(all(target_arch = "wasm32", feature = "js"))]
            Argument::Array(values) => check_len("argument", len, values.length() as usize),
        }
    }
}

// Without the feature `gpu` there is no such buffer.
#[cfg_attr(not(feature = "gpu"), allow(unreachable_code))]
fn on_gpu(storage: &Storage) -> Result<Binding<'_, GpuBuffer>> {
    Ok(match storage {
        Storage::Gpu(buffer) => Binding::Buffer(buffer.clone()),
        Storage::Host(values) => Binding::Values(values),
        Storage::Cuda(_) => return Err(foreign()),
    })
}

fn on_host(storage: &Storage) -> Result<Binding<'_, Arc<Vec<f32>>>> {
    match storage {
        Storage::Host(values) => Ok(Binding::Buffer(values.clone())),
        Storage::Gpu(_) | Storage::Cuda(_) => Err(foreign()),
    }
}

// Without the feature `cuda` there is no such buffer.
#[cfg_attr(not(feature = "cuda"), allow(unreachable_code))]
fn on_cuda(storage: &Storage) -> Result<Binding<'_, CudaValues>> {
    match storage {
        Storage::Host(values) => Ok(Binding::Values(values)),
        Storage::Cuda(values) => Ok(Binding::Buffer(values.clone())),
        Storage::Gpu(_) => Err(foreign()),
    }
}
