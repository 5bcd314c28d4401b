//! [`GpuDevice`]: the entry point to every back-end.

mod accumulate;
pub(crate) mod buffer;
mod builder;
pub(crate) mod executor;
#[cfg(not(target_arch = "wasm32"))]
mod former_names;
mod info;
pub(crate) mod matmul_cache;
mod methods;
#[cfg(all(feature = "gpu", not(target_arch = "wasm32")))]
pub(crate) mod profile;
pub(crate) mod tiled_reduce;
mod tuning;
mod views;
#[cfg(not(all(feature = "cuda", not(target_arch = "wasm32"))))]
mod without_cuda;

use std::sync::Arc;

pub use builder::DeviceBuilder;
#[cfg(not(target_arch = "wasm32"))]
#[allow(deprecated)]
pub use former_names::GpuBackend;
pub use info::DeviceInfo;
pub use tuning::Tuning;

use crate::alloc::try_zeros;
#[cfg(all(feature = "cuda", not(target_arch = "wasm32")))]
pub(crate) use crate::cuda::{CudaBackend, CudaValues};
use crate::device::buffer::DeviceBuffer;
use crate::error::Result;
use crate::gpu::Gpu;
use crate::ops::Op;
use crate::ops::policy::Policy;
use crate::ops::shape::{check_len, output_len};
use crate::runtime::NATIVE;
use crate::simd::{self, Cpu};
use executor::Executor;
#[cfg(not(all(feature = "cuda", not(target_arch = "wasm32"))))]
pub(crate) use without_cuda::{CudaBackend, CudaValues};

/// The back-end that runs operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Backend {
    /// A hardware GPU for work that gains by it, SIMD for everything else. This is a request only:
    /// [`GpuDevice::backend`] returns the back-end that was chosen.
    #[default]
    Auto,
    /// The GPU for every operation; a software adapter if there is no hardware GPU.
    Gpu,
    /// The CPU's vector instructions for every operation.
    Simd,
    /// The first NVIDIA GPU, through its driver. Operations with a kernel in [`crate::ptx`] run on it, alone, in
    /// batches and in programs: matmul without transposed matrices, softmaxes, norms, reductions except `argmax`,
    /// and relu, exp, sigmoid, abs, neg, sqrt, sums, differences, products, quotients, minima and maxima of
    /// elements. The CPU's vector instructions run all others.
    #[cfg(all(feature = "cuda", not(target_arch = "wasm32")))]
    Cuda,
}

/// A compute device: a GPU, or the CPU's vector instructions.
///
/// Clones are cheap and share one device. Every operation of the op table is a method. Native
/// targets also have a blocking version of each, which waits in [`crate::runtime::block_on`].
///
/// ```
/// # #[cfg(not(target_arch = "wasm32"))] {
/// use relampago::GpuDevice;
///
/// let device = GpuDevice::new()?;
/// let mut y = [0.0; 4];
/// device.relu(&[1.0, -2.0, 3.0, -4.0], &mut y)?;
/// assert_eq!(y, [1.0, 0.0, 3.0, 0.0]);
/// # }
/// # Ok::<(), relampago::Error>(())
/// ```
#[derive(Clone)]
pub struct GpuDevice {
    inner: Arc<Inner>,
}

struct Inner {
    builder: DeviceBuilder,
    executor: Executor,
    /// For operations that are not worth a trip to the GPU.
    cpu: Cpu,
    reason: String,
}

impl GpuDevice {
    /// Opens the best device available: a hardware GPU, or else SIMD. Does not fail for lack of a
    /// GPU.
    pub async fn new_async() -> Result<Self> {
        Self::builder().build_async().await
    }

    /// Returns a builder with the default options.
    pub fn builder() -> DeviceBuilder {
        DeviceBuilder::default()
    }

    /// Returns whether a hardware GPU is available. Software adapters do not count.
    pub async fn is_available_async() -> bool {
        Gpu::open(&crate::gpu::Options::default()).await.is_ok()
    }

    /// Opens a new device with the options of this one, for use after a device loss.
    ///
    /// Buffers and batches of the old device cannot be used with the new one. If the old device was
    /// adopted ([`DeviceBuilder::adopt`]), the best device that this crate finds takes its place.
    pub async fn rebuild_async(&self) -> Result<Self> {
        self.inner.builder.clone().build_async().await
    }

    /// Returns the back-end that was chosen: [`Backend::Gpu`] or [`Backend::Simd`], or
    /// `Backend::Cuda` if it was requested (feature `cuda`).
    pub fn backend(&self) -> Backend {
        match self.inner.executor {
            Executor::Cpu(_) => Backend::Simd,
            Executor::Gpu(_) => Backend::Gpu,
            #[cfg(all(feature = "cuda", not(target_arch = "wasm32")))]
            Executor::Cuda(_) => Backend::Cuda,
            #[cfg(not(all(feature = "cuda", not(target_arch = "wasm32"))))]
            Executor::Cuda(ref cuda) => match **cuda {},
        }
    }

    /// Returns the back-end, the adapter, their properties and the reason for the choice.
    pub fn info(&self) -> DeviceInfo {
        let (executor, reason) = (&self.inner.executor, self.inner.reason.clone());
        let info = DeviceInfo::new(self.backend(), executor.gpu(), self.inner.cpu.isa, reason);
        match executor {
            Executor::Cuda(cuda) => info.of_cuda(cuda.name()),
            Executor::Cpu(_) | Executor::Gpu(_) => info,
        }
    }

    /// Returns the thresholds from which single operations run on the GPU.
    pub fn policy(&self) -> Policy {
        self.inner.builder.policy
    }

    /// Copies values to a buffer that stays on the device, for use by any of its batches.
    ///
    /// # Errors
    /// `LimitExceeded` where one GPU buffer cannot hold them, `OutOfMemory`, `DeviceLost`.
    pub async fn upload_async(&self, values: &[f32]) -> Result<DeviceBuffer> {
        let storage = self.inner.executor.upload(values).await?;
        Ok(DeviceBuffer::new(self.clone(), storage))
    }

    /// Returns whether both handles refer to the same device.
    pub fn same_device(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    /// Returns the wgpu device, for use by other code; `None` on SIMD.
    #[cfg(feature = "gpu")]
    pub fn as_wgpu(&self) -> Option<&wgpu::Device> {
        self.gpu().map(|gpu| &gpu.device)
    }

    pub(crate) fn gpu(&self) -> Option<&Arc<Gpu>> {
        self.inner.executor.gpu()
    }

    pub(crate) fn executor(&self) -> &Executor {
        &self.inner.executor
    }

    pub(crate) fn cpu(&self) -> Cpu {
        self.inner.cpu
    }

    /// Returns the GPU, if this operation should run there.
    pub(crate) fn gpu_for(&self, op: &Op, inputs: &[usize]) -> Option<&Arc<Gpu>> {
        let gpu = self.gpu()?;
        let fits = || fits(gpu, op, inputs);
        (self.insists_on_gpu() || (self.inner.builder.policy.prefers_gpu(op, inputs) && fits()))
            .then_some(gpu)
    }

    pub(crate) fn insists_on_gpu(&self) -> bool {
        self.inner.builder.backend == Backend::Gpu
    }

    /// Returns `DeviceLost` if there was a GPU and it was lost.
    pub(crate) fn check(&self) -> Result<()> {
        self.inner.executor.check()
    }

    /// Runs an operation that is chosen at run time, and writes its result to `out`. On an error
    /// `out` is left unchanged. The result of a reduction is one element.
    pub async fn run_into_async(&self, op: &Op, inputs: &[&[f32]], out: &mut [f32]) -> Result<()> {
        match self.run_unless_gpu(op, inputs, out)? {
            Some(gpu) => run_on_gpu(gpu, op, inputs, out).await,
            None => Ok(()),
        }
    }

    /// Runs an operation on SIMD, or returns the GPU that should run it.
    fn run_unless_gpu(
        &self,
        op: &Op,
        inputs: &[&[f32]],
        out: &mut [f32],
    ) -> Result<Option<&Arc<Gpu>>> {
        let lens: Vec<usize> = inputs.iter().map(|input| input.len()).collect();
        check_len(op.output(), output_len(op, &lens)?, out.len())?;
        self.check()?;
        let gpu = self.gpu_for(op, &lens);
        match (&gpu, &self.inner.executor) {
            (Some(_), _) => {}
            (None, Executor::Cuda(cuda)) => cuda.run(op, inputs, out)?,
            (None, Executor::Cpu(_) | Executor::Gpu(_)) => {
                simd::execute(self.cpu(), op, inputs, out)?;
            }
        }
        Ok(gpu)
    }

    /// Runs an operation like [`GpuDevice::run_into_async`] and returns its result in a new vector.
    ///
    /// ```
    /// # #[cfg(not(target_arch = "wasm32"))] {
    /// use relampago::{GpuDevice, Op};
    ///
    /// let device = GpuDevice::new()?;
    /// let op = Op::Matmul { m: 1, k: 2, n: 1 };
    /// assert_eq!(device.run(&op, &[&[1.0, 2.0], &[3.0, 4.0]])?, [11.0]);
    /// # }
    /// # Ok::<(), relampago::Error>(())
    /// ```
    pub async fn run_async(&self, op: &Op, inputs: &[&[f32]]) -> Result<Vec<f32>> {
        let lens: Vec<usize> = inputs.iter().map(|input| input.len()).collect();
        let mut out = try_zeros(output_len(op, &lens)?)?;
        self.run_into_async(op, inputs, &mut out).await?;
        Ok(out)
    }
}

/// Blocking versions, and other methods of native targets.
#[cfg(not(target_arch = "wasm32"))]
impl GpuDevice {
    /// Blocking version of [`GpuDevice::new_async`].
    pub fn new() -> Result<Self> {
        Self::builder().build()
    }

    /// Blocking version of [`GpuDevice::is_available_async`].
    pub fn is_available() -> bool {
        crate::runtime::block_on(Self::is_available_async())
    }

    /// Blocking version of [`GpuDevice::rebuild_async`].
    pub fn rebuild(&self) -> Result<Self> {
        crate::runtime::block_on(self.rebuild_async())
    }

    /// Blocking version of [`GpuDevice::upload_async`].
    pub fn upload(&self, values: &[f32]) -> Result<DeviceBuffer> {
        crate::runtime::block_on(self.upload_async(values))
    }

    /// Compiles the GPU kernels of the given operations ahead of time, so that the first call takes
    /// no longer than the second. Each operation comes with the lengths of its inputs, in elements.
    /// Computes nothing, and skips operations that will run on SIMD.
    ///
    /// ```
    /// use relampago::{GpuDevice, Op};
    ///
    /// let device = GpuDevice::new()?;
    /// let product = Op::Matmul { m: 64, k: 32, n: 16 };
    /// device.warmup(&[(Op::Relu, &[1000]), (product, &[64 * 32, 32 * 16])])?;
    /// # Ok::<(), relampago::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors that the operation returns for such lengths, and device errors.
    pub async fn warmup_async(&self, operations: &[(Op, &[usize])]) -> Result<()> {
        for (op, lens) in operations {
            let len = output_len(op, lens)?;
            if let Some(gpu) = self.gpu_for(op, lens) {
                gpu.warm(op, lens, len).await?;
            }
        }
        Ok(())
    }

    /// Blocking version of [`GpuDevice::warmup_async`].
    pub fn warmup(&self, operations: &[(Op, &[usize])]) -> Result<()> {
        crate::runtime::block_on(self.warmup_async(operations))
    }

    /// Blocking version of [`GpuDevice::run_into_async`].
    pub fn run_into(&self, op: &Op, inputs: &[&[f32]], out: &mut [f32]) -> Result<()> {
        // On SIMD the result is there already: a future would take longer than a small operation.
        match self.run_unless_gpu(op, inputs, out)? {
            Some(gpu) => crate::runtime::block_on(run_on_gpu(gpu, op, inputs, out)),
            None => Ok(()),
        }
    }

    /// Blocking version of [`GpuDevice::run_async`].
    pub fn run(&self, op: &Op, inputs: &[&[f32]]) -> Result<Vec<f32>> {
        crate::runtime::block_on(self.run_async(op, inputs))
    }
}

impl std::fmt::Debug for GpuDevice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("GpuDevice").field(&self.info()).finish()
    }
}

/// Whether the GPU's buffers can hold the inputs and, on native targets, the result, which may be
/// longer for a matmul.
fn fits(gpu: &Gpu, op: &Op, inputs: &[usize]) -> bool {
    if NATIVE && output_len(op, inputs).is_ok_and(|len| len > gpu.max_len()) {
        return false;
    }
    inputs.iter().all(|&len| len <= gpu.max_len())
}

/// Runs a validated operation on the GPU. An elementwise one is split into pieces that fit into a
/// buffer binding.
async fn run_on_gpu(gpu: &Arc<Gpu>, op: &Op, inputs: &[&[f32]], out: &mut [f32]) -> Result<()> {
    let piece = gpu.max_len();
    if !op.is_elementwise() || out.len() <= piece {
        return gpu.run_into(op, inputs, out).await;
    }
    // Into new memory first: a failure half-way must leave `out` as it was.
    let mut whole = try_zeros(out.len())?;
    for (index, part) in whole.chunks_mut(piece).enumerate() {
        let range = index * piece..index * piece + part.len();
        let inputs: Vec<&[f32]> = inputs.iter().map(|input| &input[range.clone()]).collect();
        gpu.run_into(op, &inputs, part).await?;
    }
    out.copy_from_slice(&whole);
    Ok(())
}
