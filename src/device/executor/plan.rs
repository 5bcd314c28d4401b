//! Plans on each back-end.

use std::sync::Arc;
use std::time::Duration;

use super::variants::{CudaValues, GpuBuffer, SharedCuda, SharedGpu, Submitted, Texts, TimedPlan};
use super::{Executor, foreign};
use crate::cpu::PlanState;
use crate::device::buffer::Storage;
use crate::error::Result;
use crate::graph::{Binding, Fetched, Kernel, Plan, Repeat};
use crate::ops::Backend;
use crate::runtime::seconds;
use crate::simd::Cpu;

/// The back-end of a plan, with the state of the plan that it keeps between runs.
#[allow(dead_code)] // Without its feature, a variant is never constructed.
pub(crate) enum PlanExecutor {
    Cpu(Cpu, PlanState),
    Gpu(SharedGpu, Texts),
    Cuda(SharedCuda),
}

/// A run that the host has started. Its results can be used at once.
pub(crate) struct Running(pub(super) Option<Submitted>);

impl Running {
    /// Waits for the run. Returns the results' values if they were requested and a GPU has them.
    ///
    /// # Errors
    /// The errors of the run.
    pub(crate) async fn finished(self) -> Result<Vec<Fetched>> {
        match self.0 {
            None => Ok(Vec::new()),
            Some(submitted) => with_gpu!(submitted, submitted.fetched().await),
        }
    }
}

/// The times of a plan's kernels, which may not have arrived yet.
#[allow(dead_code)] // Without its feature, a variant is never constructed.
pub(crate) enum Timing {
    Known(Vec<Duration>),
    Coming(TimedPlan),
}

impl Timing {
    /// Waits for the times.
    ///
    /// # Errors
    /// The errors of the run.
    pub(crate) async fn known(self) -> Result<Vec<Duration>> {
        match self {
            Self::Known(times) => Ok(times),
            Self::Coming(plan) => with_gpu!(plan, plan.times().await),
        }
    }
}

impl PlanExecutor {
    pub(crate) fn new(executor: &Executor, plan: &Plan) -> Self {
        match executor {
            Executor::Cpu(cpu) => Self::Cpu(*cpu, PlanState::default()),
            Executor::Gpu(gpu) => with_gpu!(gpu, Self::Gpu(gpu.clone(), Texts::new(plan))),
            Executor::Cuda(cuda) => with_cuda!(cuda, Self::Cuda(cuda.clone())),
        }
    }

    /// Returns the back-end that runs a kernel of a plan.
    pub(crate) fn backend_of(&self, plan: &Plan, kernel: &Kernel) -> Backend {
        match self {
            Self::Cpu(..) => Backend::Simd,
            Self::Gpu(..) => Backend::Gpu,
            Self::Cuda(cuda) => with_cuda!(cuda, cuda.backend_of(plan, kernel)),
        }
    }

    pub(crate) fn is_cpu(&self) -> bool {
        matches!(self, Self::Cpu(..))
    }

    /// Runs a plan. The run brings the results' values to the host, in the same submission, if the back-end is a
    /// GPU and `read` is set.
    pub(crate) fn run<'a>(
        &self,
        plan: &Plan,
        bindings: impl Iterator<Item = Binding<'a, &'a Storage>>,
        repeat: Repeat<'_>,
        read: bool,
    ) -> Result<(Vec<Storage>, Running)> {
        Ok(match self {
            Self::Cpu(cpu, state) => {
                let bindings = bound(bindings, Storage::on_host)?;
                let values = state.run(plan, *cpu, bindings, repeat, &mut || ())?;
                let results = values.into_iter().map(Storage::Host).collect();
                (results, Running(None))
            }
            Self::Gpu(gpu, texts) => with_gpu!(gpu, {
                let bindings = bound(bindings, Storage::on_gpu)?;
                let (buffers, submitted) = gpu.run_plan((plan, texts), bindings, repeat, read)?;
                let results = buffers.into_iter().map(Storage::Gpu).collect();
                (results, Running(Some(submitted)))
            }),
            Self::Cuda(cuda) => with_cuda!(cuda, {
                let bindings = bound(bindings, Storage::on_cuda)?;
                let values = cuda.run_plan(plan, bindings, repeat)?;
                let results = values.into_iter().map(Storage::Cuda).collect();
                (results, Running(None))
            }),
        })
    }

    /// Runs a plan once, and times each kernel: on SIMD by the host's clock, on a GPU by its own, on CUDA by events.
    ///
    /// # Errors
    /// `Gpu` where a GPU has no timestamps; the errors of [`PlanExecutor::run`].
    pub(crate) fn time<'a>(
        &self,
        plan: &Plan,
        bindings: impl Iterator<Item = Binding<'a, &'a Storage>>,
    ) -> Result<Timing> {
        Ok(match self {
            Self::Cpu(cpu, state) => {
                let bindings = bound(bindings, Storage::on_host)?;
                let (mut times, mut last) = (Vec::new(), seconds());
                let mut finished = || {
                    let now = seconds();
                    times.push(Duration::from_secs_f64((now - last).max(0.0)));
                    last = now;
                };
                state.run(plan, *cpu, bindings, Repeat::ONCE, &mut finished)?;
                Timing::Known(times)
            }
            Self::Gpu(gpu, texts) => with_gpu!(gpu, {
                let bindings = bound(bindings, Storage::on_gpu)?;
                Timing::Coming(gpu.time_plan((plan, texts), bindings)?)
            }),
            Self::Cuda(cuda) => with_cuda!(cuda, {
                let bindings = bound(bindings, Storage::on_cuda)?;
                Timing::Known(cuda.time_plan(plan, &bindings)?)
            }),
        })
    }

    /// Runs a plan once and copies the results to `outs`, which have their lengths.
    pub(crate) async fn read_into<'a>(
        &self,
        plan: &Plan,
        bindings: impl Iterator<Item = Binding<'a, &'a Storage>>,
        outs: &mut [&mut [f32]],
    ) -> Result<()> {
        match self {
            Self::Gpu(gpu, texts) => with_gpu!(gpu, {
                let bindings = bound(bindings, Storage::on_gpu)?;
                gpu.read_plan((plan, texts), bindings, outs).await
            }),
            Self::Cpu(..) | Self::Cuda(_) => {
                let results = self.run(plan, bindings, Repeat::ONCE, false)?.0;
                for (out, result) in outs.iter_mut().zip(results) {
                    match (&result, self) {
                        (Storage::Host(values), _) => out.copy_from_slice(values),
                        (Storage::Cuda(values), Self::Cuda(cuda)) => {
                            with_cuda!(cuda, out.copy_from_slice(&cuda.read(values)?));
                        }
                        _ => return Err(foreign()),
                    }
                }
                Ok(())
            }
        }
    }
}

/// Replaces the buffers of bindings by those of a back-end.
fn bound<'a, B>(
    bindings: impl Iterator<Item = Binding<'a, &'a Storage>>,
    of: impl Fn(&'a Storage) -> Result<Binding<'a, B>>,
) -> Result<Vec<Binding<'a, B>>> {
    let bound = bindings.map(|binding| match binding {
        Binding::Nothing => Ok(Binding::Nothing),
        Binding::Values(values) => Ok(Binding::Values(values)),
        Binding::Buffer(storage) => of(storage),
        #[cfg(all(target_arch = "wasm32", feature = "js"))]
        Binding::Array(values) => Ok(Binding::Array(values)),
    });
    bound.collect()
}

/// The bindings of buffers to the nodes of a plan.
#[allow(dead_code)] // Without its feature, nothing calls a back-end's method.
impl Storage {
    fn on_host(&self) -> Result<Binding<'_, Arc<Vec<f32>>>> {
        match self {
            Self::Host(values) => Ok(Binding::Buffer(values.clone())),
            Self::Gpu(_) | Self::Cuda(_) => Err(foreign()),
        }
    }

    fn on_gpu(&self) -> Result<Binding<'_, GpuBuffer>> {
        match self {
            Self::Host(values) => Ok(Binding::Values(values)),
            Self::Gpu(buffer) => with_gpu!(buffer, Ok(Binding::Buffer(buffer.clone()))),
            Self::Cuda(_) => Err(foreign()),
        }
    }

    fn on_cuda(&self) -> Result<Binding<'_, CudaValues>> {
        match self {
            Self::Host(values) => Ok(Binding::Values(values)),
            Self::Cuda(values) => with_cuda!(values, Ok(Binding::Buffer(values.clone()))),
            Self::Gpu(_) => Err(foreign()),
        }
    }
}
