//! Options set before a device is built.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::executor::Executor;
use super::routing::Routing;
use super::{Backend, GpuDevice, Inner};
use crate::error::Result;
use crate::ops::policy::Policy;
use crate::simd::{Cpu, InstructionSet};

/// Builds a [`GpuDevice`].
///
/// ```
/// # #[cfg(not(target_arch = "wasm32"))] {
/// use relampago::{Backend, GpuDevice};
///
/// let device = GpuDevice::builder().backend(Backend::Simd).build()?;
/// assert_eq!(device.backend(), Backend::Simd);
/// # }
/// # Ok::<(), relampago::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
#[allow(dead_code)] // Only GPUs read the last fields.
pub struct DeviceBuilder {
    pub(super) backend: Backend,
    /// The caller's thresholds; `None` for measured or default ones.
    pub(super) policy: Option<Policy>,
    pub(super) instruction_set: Option<InstructionSet>,
    pub(super) threads: Option<usize>,
    /// Whether to multiply matrices in f16 on a GPU if the adapter supports it.
    pub(super) half_precision: bool,
    /// The folder for compiled pipelines.
    pub(super) pipelines: Option<PathBuf>,
    /// The time after which a GPU that has not finished counts as lost.
    pub(super) wait_limit: Option<Duration>,
    /// Further usages of buffers for values.
    #[cfg(feature = "gpu")]
    pub(super) further_usages: Option<wgpu::BufferUsages>,
}

impl DeviceBuilder {
    /// Requires a back-end instead of the automatic choice.
    #[must_use]
    pub fn backend(self, backend: Backend) -> Self {
        Self { backend, ..self }
    }

    /// Sets the policy by which [`Backend::Auto`] sends a single operation to the GPU. It takes the place of the default one
    /// and of measured thresholds ([`GpuDevice::calibrate_async`]).
    #[must_use]
    pub fn policy(self, policy: Policy) -> Self {
        Self {
            policy: Some(policy),
            ..self
        }
    }

    /// Uses these vector instructions instead of the best available. If the machine lacks them, the
    /// best available are used; [`crate::DeviceInfo::instruction_set`] returns the choice.
    #[must_use]
    pub fn instruction_set(self, instruction_set: InstructionSet) -> Self {
        Self {
            instruction_set: Some(instruction_set),
            ..self
        }
    }

    /// Uses at most `threads` threads (at least one) for an operation on SIMD. The default is all
    /// threads of rayon's pool, for operations large enough to gain by it. Results do not depend on
    /// the number of threads. WebAssembly has one thread.
    #[must_use]
    pub fn threads(self, threads: usize) -> Self {
        Self {
            threads: Some(threads),
            ..self
        }
    }

    /// Multiplies matrices on the GPU in f16 if its driver has cooperative matrices. Both operands
    /// are rounded to the nearest f16 (to ±∞ from 65,520 on), and products are accumulated in
    /// `f32`. The error of each product is at most 2⁻¹⁰ of the product, plus 2⁻²⁵ of one operand if
    /// the other is below 2⁻¹⁴.
    ///
    /// Natively, prompts of language models of 12 tokens and more are multiplied in f16, too, as are matmuls by
    /// `llm::QuantizedMatrix` of a multiple of 64 rows, if the sides of the matrix are multiples of 64. Their left operand is
    /// divided by 64 before it is rounded: elements become ±∞ only from 64 · 65,520 on, and have fewer digits below
    /// 64 · 2⁻¹⁴.
    ///
    /// Through CUDA on a Hopper GPU, prompts of 64 tokens and more, and as many rows of other matmuls by quantised matrices, are
    /// multiplied in bf16 if the matrix has at least 2²¹ weights: the error of each product is at most 2⁻⁸ of it. Nothing else
    /// changes there.
    ///
    /// These stay in `f32`: matrix-vector products, matrices that no buffer can hold once their
    /// sides are padded to multiples of 128, convolutions, everything that runs on SIMD, and
    /// everything if [`crate::DeviceInfo::half_precision`] is not [`crate::HalfPrecision::Used`].
    /// Cooperative matrices are experimental in wgpu, and in Chromium, which has them if it was
    /// started with `--enable-unsafe-webgpu`.
    #[must_use]
    pub fn half_precision(self, half_precision: bool) -> Self {
        Self {
            half_precision,
            ..self
        }
    }

    /// Builds the device.
    ///
    /// # Errors
    /// `NoGpu` if [`Backend::Gpu`] was required and there is no adapter, or if `Backend::Cuda` was
    /// required and there is no driver or no NVIDIA GPU.
    pub async fn build_async(self) -> Result<GpuDevice> {
        Ok(self.build_some(1).await?.swap_remove(0))
    }

    /// Builds a device for each of the best GPUs, at most `most`, or one SIMD device.
    ///
    /// # Errors
    /// The errors of [`DeviceBuilder::build_async`].
    pub(crate) async fn build_some(self, most: usize) -> Result<Vec<GpuDevice>> {
        let insisted = self.backend == Backend::Gpu;
        let (gpus, reason) = match self.backend {
            Backend::Simd => (Vec::new(), "SIMD was asked for".to_owned()),
            #[cfg(all(feature = "cuda", not(target_arch = "wasm32")))]
            Backend::Cuda => return Ok(vec![self.build_cuda()?]),
            Backend::Auto | Backend::Gpu => match self.open_gpus(most).await {
                Ok(gpus) if insisted => (gpus, "a GPU was asked for".to_owned()),
                Ok(gpus) => (gpus, "there is a GPU".to_owned()),
                Err(error) if insisted => return Err(error),
                Err(error) => (Vec::new(), error.to_string()),
            },
        };
        if gpus.is_empty() {
            return Ok(vec![self.finish(None, reason)]);
        }
        let finish = |gpu| self.clone().finish(Some(gpu), reason.clone());
        Ok(gpus.into_iter().map(finish).collect())
    }

    /// Opens the first NVIDIA GPU, with SIMD beside it.
    #[cfg(all(feature = "cuda", not(target_arch = "wasm32")))]
    fn build_cuda(self) -> Result<GpuDevice> {
        let cuda = crate::cuda::CudaBackend::open(self.cpu(), self.half_precision)?;
        let cuda = Executor::Cuda(Arc::new(cuda));
        let reason = "CUDA was asked for; what it has no kernel for runs on SIMD".to_owned();
        Ok(self.finish(Some(cuda), reason))
    }

    /// Opens the best GPUs, at least one and at most `most`.
    ///
    /// # Errors
    /// `NoGpu` if there is none.
    #[cfg(feature = "gpu")]
    pub(super) async fn open_gpus(&self, most: usize) -> Result<Vec<Executor>> {
        use crate::gpu::{Gpu, Options, Preference};
        let options = Options {
            preference: if self.backend == Backend::Gpu {
                Preference::Any
            } else {
                Preference::Hardware
            },
            half_precision: self.half_precision,
            pipelines: self.pipelines.clone(),
            further_usages: self.further_usages,
            wait_limit: self.wait_limit,
        };
        let gpus = Gpu::open_some(&options, most).await?;
        Ok(gpus.into_iter().map(Executor::Gpu).collect())
    }

    #[cfg(not(feature = "gpu"))]
    #[allow(clippy::unused_async, clippy::unused_self)] // The other one opens what the options ask for.
    pub(super) async fn open_gpus(&self, _: usize) -> Result<Vec<Executor>> {
        let reason = "this build lacks the feature `gpu`".into();
        Err(crate::error::Error::NoGpu { reason })
    }

    /// Returns the device, on SIMD if there is no other back-end.
    pub(crate) fn finish(self, executor: Option<Executor>, reason: String) -> GpuDevice {
        let cpu = self.cpu();
        let device = GpuDevice {
            inner: Arc::new(Inner {
                routing: Routing::new(self.policy),
                builder: self,
                executor: executor.unwrap_or(Executor::Cpu(cpu)),
                cpu,
                reason,
            }),
        };
        device.adopt_thresholds();
        device
    }

    /// Returns the CPU with the requested instruction set and threads, as far as it has them.
    fn cpu(&self) -> Cpu {
        let asked = self.instruction_set.unwrap_or_else(InstructionSet::best);
        Cpu::new(asked.or_best(), self.threads)
    }
}

/// Blocking versions, and other methods of native targets.
#[cfg(not(target_arch = "wasm32"))]
impl DeviceBuilder {
    /// Keeps compiled pipelines in a folder, so that the first operations of later processes need
    /// not wait for the driver's compiler. The file name contains this crate's version, the adapter
    /// and the driver. A damaged file is ignored; a failure to write one is logged. The file is
    /// written by [`GpuDevice::warmup`] and when the device is dropped.
    ///
    /// Vulkan supports such caches. Without this option only the driver's own cache remains.
    #[must_use]
    pub fn pipeline_cache(self, folder: impl Into<PathBuf>) -> Self {
        Self {
            pipelines: Some(folder.into()),
            ..self
        }
    }

    /// Sets the time after which a GPU that has not finished its work counts as lost: who waits then gets `DeviceLost`
    /// instead of waiting for ever, and so do later calls. The default is ten minutes.
    #[must_use]
    pub fn wait_limit(self, limit: Duration) -> Self {
        Self {
            wait_limit: Some(limit),
            ..self
        }
    }

    /// Blocking version of [`DeviceBuilder::build_async`].
    pub fn build(self) -> Result<GpuDevice> {
        crate::runtime::block_on(self.build_async())
    }
}
