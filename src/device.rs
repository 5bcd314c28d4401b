//! [`GpuDevice`]: the one way in to every back-end.

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
pub(crate) mod without_cuda;

use std::sync::Arc;

pub use builder::DeviceBuilder;
#[cfg(not(target_arch = "wasm32"))]
#[allow(deprecated)]
pub use former_names::GpuBackend;
pub use info::DeviceInfo;
pub use tuning::Tuning;

use crate::alloc::try_zeros;
use crate::device::buffer::DeviceBuffer;
use crate::error::Result;
use crate::gpu::Gpu;
use crate::ops::Op;
use crate::ops::policy::Policy;
use crate::ops::shape::{check_len, output_len};
use crate::simd::{self, Cpu};
use executor::Executor;

/// Where operations run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Backend {
    /// A real GPU for work that gains by it, SIMD for everything else. Asked for, never got:
    /// [`GpuDevice::backend`] tells which of the others it came to.
    #[default]
    Auto,
    /// The GPU for everything; a software adapter if there is no other.
    Gpu,
    /// The CPU's vector instructions for everything.
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
/// Clones are cheap and share everything. Every operation of the op table is a method, with a
/// synchronous twin on native targets, which waits in [`crate::runtime::block_on`].
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
    /// The best device there is: a real GPU, or else SIMD. Does not fail for lack of a GPU.
    pub async fn new_async() -> Result<Self> {
        Self::builder().build_async().await
    }

    /// [`GpuDevice::new_async`], waited for.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn new() -> Result<Self> {
        Self::builder().build()
    }

    /// A device with choices of one's own.
    pub fn builder() -> DeviceBuilder {
        DeviceBuilder::default()
    }

    /// Whether there is a real GPU; software adapters do not count.
    pub async fn is_available_async() -> bool {
        Gpu::open(&crate::gpu::Options::default()).await.is_ok()
    }

    /// [`GpuDevice::is_available_async`], waited for.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn is_available() -> bool {
        crate::runtime::block_on(Self::is_available_async())
    }

    /// A device like this one was when it was built, for use after a loss.
    ///
    /// Buffers and batches of the old one stay with it. A device that was adopted
    /// ([`DeviceBuilder::adopt`]) is replaced by the best that this crate finds by itself.
    pub async fn rebuild_async(&self) -> Result<Self> {
        self.inner.builder.clone().build_async().await
    }

    /// [`GpuDevice::rebuild_async`], waited for.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn rebuild(&self) -> Result<Self> {
        crate::runtime::block_on(self.rebuild_async())
    }

    /// What was chosen: [`Backend::Gpu`] or [`Backend::Simd`], or with the feature `cuda`, when asked
    /// for, `Backend::Cuda`.
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

    /// What was chosen, of what kind it is, and why.
    pub fn info(&self) -> DeviceInfo {
        let (executor, reason) = (&self.inner.executor, self.inner.reason.clone());
        let info = DeviceInfo::new(self.backend(), executor.gpu(), self.inner.cpu.isa, reason);
        match executor {
            Executor::Cuda(cuda) => info.of_cuda(cuda.name()),
            Executor::Cpu(_) | Executor::Gpu(_) => info,
        }
    }

    /// When single operations go to the GPU.
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

    /// [`GpuDevice::upload_async`], waited for.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn upload(&self, values: &[f32]) -> Result<DeviceBuffer> {
        crate::runtime::block_on(self.upload_async(values))
    }

    /// Makes the GPU's kernels for operations to come, each with its inputs' lengths, so that the
    /// first of them takes no longer than the second. Computes nothing; does nothing for what
    /// SIMD will compute.
    ///
    /// ```
    /// use relampago::{GpuDevice, Op};
    ///
    /// let device = GpuDevice::new()?;
    /// let product = Op::Matmul { m: 64, k: 32, n: 16 };
    /// device.warmup(&[(Op::Relu {}, &[1000]), (product, &[64 * 32, 32 * 16])])?;
    /// # Ok::<(), relampago::Error>(())
    /// ```
    ///
    /// # Errors
    /// What the operations themselves would say of such lengths, and what the device does.
    #[cfg(not(target_arch = "wasm32"))]
    pub async fn warmup_async(&self, operations: &[(Op, &[usize])]) -> Result<()> {
        for (op, lens) in operations {
            let len = output_len(op, lens)?;
            if let Some(gpu) = self.gpu_for(op, lens) {
                gpu.warm(op, lens, len).await?;
            }
        }
        Ok(())
    }

    /// [`GpuDevice::warmup_async`], waited for.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn warmup(&self, operations: &[(Op, &[usize])]) -> Result<()> {
        crate::runtime::block_on(self.warmup_async(operations))
    }

    /// Whether both are handles of one device.
    pub fn same_device(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    /// wgpu's device, for use by other code; `None` on SIMD.
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

    /// The GPU, if this operation should run there.
    pub(crate) fn gpu_for(&self, op: &Op, inputs: &[usize]) -> Option<&Arc<Gpu>> {
        let gpu = self.gpu()?;
        let fits = || fits(gpu, op, inputs);
        (self.insists_on_gpu() || (self.inner.builder.policy.prefers_gpu(op, inputs) && fits()))
            .then_some(gpu)
    }

    pub(crate) fn insists_on_gpu(&self) -> bool {
        self.inner.builder.backend == Backend::Gpu
    }

    /// `DeviceLost` if there was a GPU and it was lost.
    pub(crate) fn check(&self) -> Result<()> {
        self.inner.executor.check()
    }

    /// Runs an operation that is known only at run time; nothing is written to `out` unless all
    /// went well. A reduction's result is one value.
    pub async fn run_into_async(&self, op: &Op, inputs: &[&[f32]], out: &mut [f32]) -> Result<()> {
        match self.run_unless_gpu(op, inputs, out)? {
            Some(gpu) => run_on_gpu(gpu, op, inputs, out).await,
            None => Ok(()),
        }
    }

    /// Runs an operation on SIMD, or gives the GPU that should.
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

    /// [`GpuDevice::run_into_async`], waited for.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn run_into(&self, op: &Op, inputs: &[&[f32]], out: &mut [f32]) -> Result<()> {
        // Waiting for what need not be waited for takes longer than a small operation.
        match self.run_unless_gpu(op, inputs, out)? {
            Some(gpu) => crate::runtime::block_on(run_on_gpu(gpu, op, inputs, out)),
            None => Ok(()),
        }
    }

    /// [`GpuDevice::run_into_async`], whose result is new memory.
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

    /// [`GpuDevice::run_async`], waited for.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn run(&self, op: &Op, inputs: &[&[f32]]) -> Result<Vec<f32>> {
        crate::runtime::block_on(self.run_async(op, inputs))
    }
}

impl std::fmt::Debug for GpuDevice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("GpuDevice").field(&self.info()).finish()
    }
}

/// Whether a GPU's buffers hold the inputs, and natively the result: that of a product may be longer.
#[cfg_attr(target_arch = "wasm32", allow(unused_variables))]
fn fits(gpu: &Gpu, op: &Op, inputs: &[usize]) -> bool {
    #[cfg(not(target_arch = "wasm32"))]
    if output_len(op, inputs).is_ok_and(|len| len > gpu.max_len()) {
        return false;
    }
    inputs.iter().all(|&len| len <= gpu.max_len())
}

/// Runs an operation that was checked; an elementwise one in pieces that fit into a GPU's
/// bindings.
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
