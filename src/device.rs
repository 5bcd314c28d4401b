//! [`GpuDevice`]: the entry point to every back-end.
//!
//! The files:
//!
//! - `builder` has the options and the choice of a back-end.
//! - `executor` is the interface of the three back-ends (in a build without a feature, `executor/variants.rs` makes the
//!   variants of its back-end `Infallible`), `methods` is generated from the op table, `views` has the operations on
//!   views, `tiled_reduce` reductions of tiles, `matmul_cache` weights by name.
//! - `buffer` is data on a device, `profile` measures kernels.
//! - `routing` has the thresholds in force and what is off the GPU, `calibrate` measures the thresholds, `verify` checks the
//!   GPU's results.

// First, so that its macros can be used by the others.
#[macro_use]
pub(crate) mod executor;

mod accumulate;
pub(crate) mod buffer;
mod builder;
mod calibrate;
#[cfg(not(target_arch = "wasm32"))]
mod former_names;
mod info;
pub(crate) mod matmul_cache;
mod methods;
#[cfg(all(feature = "gpu", not(target_arch = "wasm32")))]
pub(crate) mod profile;
mod routing;
#[cfg(feature = "gpu")]
mod sharing;
pub(crate) mod tiled_reduce;
mod tuning;
mod verify;
mod views;

use std::sync::Arc;

pub use builder::DeviceBuilder;
pub use calibrate::{Calibration, CalibrationSample};
#[cfg(not(target_arch = "wasm32"))]
#[allow(deprecated)]
pub use former_names::GpuBackend;
pub use info::DeviceInfo;
pub use routing::TurnedOff;
pub use tuning::Tuning;
pub use verify::{OnFault, Verification, VerifiedCase};

pub use crate::ops::Backend;

use crate::alloc::try_zeros;
use crate::device::buffer::DeviceBuffer;
use crate::error::Result;
use crate::ops::indices::check_indices;
use crate::ops::policy::Policy;
use crate::ops::shape::{check_len, output_len};
use crate::ops::{Op, OpClass};
use crate::runtime::NATIVE;
use crate::simd::Cpu;
use executor::Executor;
use routing::Routing;

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
    /// The CPU, for operations that the copies to the GPU would make slower.
    cpu: Cpu,
    routing: Routing,
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
        Self::builder().open_gpus(1).await.is_ok()
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
        self.inner.executor.backend()
    }

    /// Returns the back-end, the adapter, their properties and the reason for the choice.
    pub fn info(&self) -> DeviceInfo {
        let (cpu, reason) = (self.inner.cpu, self.inner.reason.clone());
        self.inner.executor.info(cpu, reason, &self.inner.routing)
    }

    /// Returns the thresholds from which single operations run on the GPU.
    pub fn policy(&self) -> Policy {
        self.inner.routing.policy()
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

    pub(crate) fn executor(&self) -> &Executor {
        &self.inner.executor
    }

    pub(crate) fn cpu(&self) -> Cpu {
        self.inner.cpu
    }

    /// Returns whether this operation should run on a GPU of this device.
    pub(crate) fn uses_gpu(&self, op: &Op, inputs: &[usize]) -> bool {
        let (executor, routing) = (&self.inner.executor, &self.inner.routing);
        executor.max_len().is_some_and(|max_len| {
            let suits = || routing.prefers_gpu(op, inputs) && fits(max_len, op, inputs);
            !routing.is_off(op.class()) && (self.insists_on_gpu() || suits())
        })
    }

    /// Uses the thresholds that were measured for this GPU and CPU, if there are any and the caller gave none.
    pub(crate) fn adopt_thresholds(&self) {
        if let Some(measured) = self.inner.executor.measured_thresholds(self.inner.cpu) {
            self.inner.routing.adopt(measured);
        }
    }

    /// Returns the back-end for operations of these classes together: SIMD if a check keeps one of them off the GPU.
    pub(crate) fn executor_of(&self, mut classes: impl Iterator<Item = OpClass>) -> Executor {
        match &self.inner.executor {
            Executor::Gpu(_) if classes.any(|class| self.is_off(class)) => {
                Executor::Cpu(self.cpu())
            }
            own => own.clone(),
        }
    }

    /// Returns whether a check keeps a class of operations off the GPU.
    pub(crate) fn is_off(&self, class: OpClass) -> bool {
        self.inner.routing.is_off(class)
    }

    /// Returns the back-end that should run this operation.
    pub(crate) fn executor_for(&self, op: &Op, inputs: &[usize]) -> Executor {
        match &self.inner.executor {
            Executor::Gpu(_) if !self.uses_gpu(op, inputs) => Executor::Cpu(self.cpu()),
            own => own.clone(),
        }
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
        let executor = self.executor_of_call(op, inputs, out.len())?;
        executor.run(op, inputs, out).await
    }

    /// Checks a call whose result is to have `len` elements, and returns the back-end that should run it.
    fn executor_of_call(&self, op: &Op, inputs: &[&[f32]], len: usize) -> Result<Executor> {
        let lens: Vec<usize> = inputs.iter().map(|input| input.len()).collect();
        check_len(op.output(), output_len(op, &lens)?, len)?;
        check_indices(op, |input| inputs.get(input).copied())?;
        self.check()?;
        Ok(self.executor_for(op, &lens))
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
        let len = output_len(op, &lens)?;
        // Mistakes are reported before memory is asked for, as in a batch.
        let executor = self.executor_of_call(op, inputs, len)?;
        let mut out = try_zeros(len)?;
        executor.run(op, inputs, &mut out).await?;
        Ok(out)
    }
}

/// Methods of native targets: blocking versions of asynchronous methods, and others.
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
            self.executor_for(op, lens).warm(op, lens, len).await?;
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
        let executor = self.executor_of_call(op, inputs, out.len())?;
        if executor.run_now(op, inputs, out)? {
            return Ok(());
        }
        crate::runtime::block_on(executor.run(op, inputs, out))
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

/// Returns whether buffers of `max_len` elements can hold the inputs and, on native targets, the result, which may
/// be longer for a matmul.
fn fits(max_len: usize, op: &Op, inputs: &[usize]) -> bool {
    if NATIVE && output_len(op, inputs).is_ok_and(|len| len > max_len) {
        return false;
    }
    inputs.iter().all(|&len| len <= max_len)
}
