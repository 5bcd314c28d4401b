//! Choices made before a device is built.

use std::sync::Arc;

use super::executor::Executor;
use super::{Backend, GpuDevice, Inner};
#[cfg(all(feature = "cuda", not(target_arch = "wasm32")))]
use crate::cuda::CudaBackend;
use crate::error::Result;
use crate::gpu::{Gpu, Options, Preference};
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
pub struct DeviceBuilder {
    pub(super) backend: Backend,
    pub(super) policy: Policy,
    pub(super) instruction_set: Option<InstructionSet>,
    pub(super) threads: Option<usize>,
    pub(super) gpu: Options,
}

impl DeviceBuilder {
    /// Insists on a back-end instead of the automatic choice.
    #[must_use]
    pub fn backend(self, backend: Backend) -> Self {
        Self { backend, ..self }
    }

    /// Changes when [`Backend::Auto`] sends a single operation to the GPU.
    #[must_use]
    pub fn policy(self, policy: Policy) -> Self {
        Self { policy, ..self }
    }

    /// Uses other vector instructions than the best there are. One that this machine lacks is
    /// replaced by the best; [`crate::DeviceInfo::instruction_set`] tells.
    #[must_use]
    pub fn instruction_set(self, instruction_set: InstructionSet) -> Self {
        Self {
            instruction_set: Some(instruction_set),
            ..self
        }
    }

    /// Uses so many threads at most for an operation on SIMD, at least one. Without this it is
    /// all of rayon's pool, where the operation is large enough to gain by it. The result is the
    /// same whatever their number. WebAssembly has one.
    #[must_use]
    pub fn threads(self, threads: usize) -> Self {
        Self {
            threads: Some(threads),
            ..self
        }
    }

    /// Multiplies matrices on the GPU in binary16, where its driver has cooperative matrices: both
    /// operands are rounded to the nearest binary16 (to ±∞ from 65,520 on), products are added up in
    /// `f32`. What is lost in each of the products that make a sum is at most 2⁻¹⁰ of it, and
    /// 2⁻²⁵ of the one operand where the other is below 2⁻¹⁴.
    ///
    /// Products of a matrix and a vector, those that no buffer holds once sides are filled up to multiples of
    /// 128, convolutions, and all that runs on SIMD stay in `f32`, and so does everything where [`crate::DeviceInfo::half_precision`] is not [`crate::HalfPrecision::Used`].
    /// wgpu calls these matrices experimental, and so does Chromium, which has them where it was started
    /// with `--enable-unsafe-webgpu`.
    #[must_use]
    pub fn half_precision(self, half_precision: bool) -> Self {
        let gpu = Options {
            half_precision,
            ..self.gpu
        };
        Self { gpu, ..self }
    }

    /// Keeps what the driver makes of kernels in a folder, for processes to come: their first
    /// operations need not wait for its compiler. The file's name tells this crate's version, the
    /// adapter and the driver; one that is damaged is not used, and one that cannot be written is
    /// reported to the log. It is written by [`GpuDevice::warmup`] and when the device is dropped.
    ///
    /// Vulkan has such caches. Without this nothing is kept but what the driver keeps by itself.
    #[cfg(not(target_arch = "wasm32"))]
    #[must_use]
    pub fn pipeline_cache(self, folder: impl Into<std::path::PathBuf>) -> Self {
        let pipelines = Some(folder.into());
        let gpu = Options {
            pipelines,
            ..self.gpu
        };
        Self { gpu, ..self }
    }

    /// Builds the device.
    ///
    /// # Errors
    /// `NoGpu` where [`Backend::Gpu`] was insisted on and there is no adapter at all, or `Backend::Cuda`
    /// and there is no driver or no NVIDIA GPU.
    pub async fn build_async(self) -> Result<GpuDevice> {
        #[cfg(all(feature = "cuda", not(target_arch = "wasm32")))]
        if self.backend == Backend::Cuda {
            return self.build_cuda();
        }
        let opened = match self.options() {
            Some(options) => Some(Gpu::open(&options).await),
            None => None,
        };
        let (gpu, reason) = self.settled(opened)?;
        Ok(self.finish(gpu, reason))
    }

    /// The first NVIDIA GPU, beside SIMD.
    #[cfg(all(feature = "cuda", not(target_arch = "wasm32")))]
    fn build_cuda(self) -> Result<GpuDevice> {
        let cpu = self.cpu();
        let cuda = Executor::Cuda(Arc::new(CudaBackend::open(cpu)?));
        let reason = "CUDA was asked for; what it has no kernel for runs on SIMD".to_owned();
        Ok(self.finish_with(cuda, cpu, reason))
    }

    /// A device for each GPU, or else one.
    ///
    /// # Errors
    /// As [`DeviceBuilder::build_async`].
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) async fn build_all(self) -> Result<Vec<GpuDevice>> {
        #[cfg(feature = "cuda")]
        if self.backend == Backend::Cuda {
            return Ok(vec![self.build_cuda()?]);
        }
        let opened = match self.options() {
            Some(options) => Some(Gpu::open_all(&options).await),
            None => None,
        };
        let (gpus, reason) = self.settled(opened)?;
        let gpus = gpus.unwrap_or_default();
        if gpus.is_empty() {
            return Ok(vec![self.finish(None, reason)]);
        }
        let finish = |gpu| self.clone().finish(Some(gpu), reason.clone());
        Ok(gpus.into_iter().map(finish).collect())
    }

    /// What a GPU is to be opened with, if one is wanted.
    fn options(&self) -> Option<Options> {
        let mut options = self.gpu.clone();
        match self.backend {
            Backend::Simd => return None,
            Backend::Gpu => options.preference = Preference::Any,
            #[cfg(all(feature = "cuda", not(target_arch = "wasm32")))]
            Backend::Cuda => return None,
            Backend::Auto => {}
        }
        Some(options)
    }

    /// What opening came to, and why the device is what it is.
    fn settled<T>(&self, opened: Option<Result<T>>) -> Result<(Option<T>, String)> {
        let insisted = self.backend == Backend::Gpu;
        Ok(match opened {
            None => (None, "SIMD was asked for".to_owned()),
            Some(Ok(gpu)) if insisted => (Some(gpu), "a GPU was asked for".to_owned()),
            Some(Ok(gpu)) => (Some(gpu), "there is a GPU".to_owned()),
            Some(Err(error)) if insisted => return Err(error),
            Some(Err(error)) => (None, error.to_string()),
        })
    }

    /// [`DeviceBuilder::build_async`], waited for.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn build(self) -> Result<GpuDevice> {
        crate::runtime::block_on(self.build_async())
    }

    /// Uses a wgpu device of the caller's own, with its limits and features, for everything
    /// that the back-end and policy chosen here send to the GPU. One that allows less than WebGPU
    /// promises, of eight storage buffers a shader for one, is not used: everything runs on SIMD then, as
    /// [`GpuDevice::info`] says.
    ///
    /// The device's lost callback is replaced; its handler of uncaptured errors is not.
    ///
    /// A device that the caller still holds closes on the thread that drops it last. On NVIDIA's driver
    /// drop such devices on one thread that lives on: the driver (580.159) can wait for itself for ever
    /// where a thread that has used Vulkan ends while another, short-lived one closes a device.
    #[cfg(feature = "gpu")]
    pub fn adopt(self, device: wgpu::Device, queue: wgpu::Queue) -> GpuDevice {
        if self.options().is_none() {
            let reason = "the back-end that was asked for has no use for the caller's own device";
            return self.finish(None, reason.to_owned());
        }
        if let Some(lack) = Gpu::lack(&device.limits()) {
            let reason = format!("the caller's own device allows too little: {lack}");
            return self.finish(None, reason);
        }
        let reason = "the caller's own device was given".to_owned();
        self.finish(Some(Arc::new(Gpu::adopt(device, queue))), reason)
    }

    fn finish(self, gpu: Option<Arc<Gpu>>, reason: String) -> GpuDevice {
        let cpu = self.cpu();
        let executor = gpu.map_or(Executor::Cpu(cpu), Executor::Gpu);
        self.finish_with(executor, cpu, reason)
    }

    fn finish_with(self, executor: Executor, cpu: Cpu, reason: String) -> GpuDevice {
        GpuDevice {
            inner: Arc::new(Inner {
                builder: self,
                executor,
                cpu,
                reason,
            }),
        }
    }

    /// Returns the CPU with the instruction set and threads that were asked for, as far as it has them.
    fn cpu(&self) -> Cpu {
        let asked = self.instruction_set.unwrap_or_else(InstructionSet::best);
        let available = InstructionSet::available().contains(&asked);
        let instruction_set = if available {
            asked
        } else {
            InstructionSet::best()
        };
        Cpu::new(instruction_set, self.threads)
    }
}
