//! The wgpu objects behind a device, for other code that uses the same GPU, such as a renderer.

use std::sync::Arc;

use crate::device::buffer::{DeviceBuffer, Storage};
use crate::device::executor::{Executor, SharedGpu};
use crate::device::{Backend, DeviceBuilder, GpuDevice};
use crate::error::{Error, Result};
use crate::gpu::Gpu;

impl DeviceBuilder {
    /// Uses a wgpu device that the caller owns, with its limits and features, for everything that
    /// the back-end and the policy send to the GPU. A device below WebGPU's minimum limits (for
    /// example fewer than eight storage buffers in a shader) is not used; everything runs on SIMD
    /// then, and [`GpuDevice::info`] says so.
    ///
    /// Replaces the device's lost callback, but not its handler of uncaptured errors.
    ///
    /// On NVIDIA's driver for Vulkan an adopted device stays open until the process ends, since the driver (580.159) can
    /// deadlock or crash where one thread opens or destroys a device while others use one. Programs that open several there
    /// do best by `open_on`.
    pub fn adopt(self, device: wgpu::Device, queue: wgpu::Queue) -> GpuDevice {
        let gpu = Gpu::adopt(device, queue, self.further_usages);
        self.finish_on(gpu)
    }

    /// Opens a wgpu device on an adapter of the caller's, such as one that draws to a window, with these features and limits.
    /// Uses it as [`DeviceBuilder::adopt`] does, and closes it as safely as devices of `build`.
    ///
    /// # Errors
    /// `NoGpu` if the driver refuses the device.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn open_on(
        self,
        adapter: &wgpu::Adapter,
        descriptor: &wgpu::DeviceDescriptor<'_>,
    ) -> Result<GpuDevice> {
        let gpu = Gpu::open_as(adapter, descriptor, self.further_usages)?;
        Ok(self.finish_on(gpu))
    }

    /// Gives the wgpu buffers of values further usages, for a renderer that reads them by
    /// [`DeviceBuffer::as_wgpu`]: `VERTEX`, `INDEX`, `INDIRECT`. Others are ignored.
    #[must_use]
    pub fn buffer_usages(self, usages: wgpu::BufferUsages) -> Self {
        use wgpu::BufferUsages as Usages;
        let allowed = Usages::VERTEX | Usages::INDEX | Usages::INDIRECT;
        Self {
            further_usages: Some(usages & allowed),
            ..self
        }
    }

    /// Returns the device that runs on a GPU if the back-end has a use for it and its limits suffice, or else on SIMD.
    fn finish_on(self, mut gpu: Gpu) -> GpuDevice {
        if !matches!(self.backend, Backend::Auto | Backend::Gpu) {
            let reason = "the back-end that was asked for has no use for the caller's own device";
            return self.finish(None, reason.to_owned());
        }
        if let Some(lack) = Gpu::lack(&gpu.device.limits()) {
            let reason = format!("the caller's own device allows too little: {lack}");
            return self.finish(None, reason);
        }
        gpu.set_wait_limit(self.wait_limit);
        let reason = "the caller's own device was given".to_owned();
        self.finish(Some(Executor::Gpu(Arc::new(gpu))), reason)
    }
}

impl GpuDevice {
    /// Returns the wgpu device, for use by other code; `None` on SIMD and CUDA.
    pub fn as_wgpu(&self) -> Option<&wgpu::Device> {
        self.shared_gpu().map(|gpu| &gpu.device)
    }

    /// Returns the wgpu queue, to which other code submits its own work; `None` on SIMD and CUDA. Submissions run in their
    /// order, whoever makes them.
    pub fn queue(&self) -> Option<&wgpu::Queue> {
        self.shared_gpu().map(|gpu| gpu.queue())
    }

    /// Returns a device buffer whose elements are the first `len` values of a buffer of the same wgpu device, without a copy.
    /// A call that reads the buffer sees all work that other code submitted before. The memory is released with the last
    /// handle of either kind.
    ///
    /// # Errors
    /// `InvalidArgument` on SIMD and CUDA, without one of the usages `STORAGE`, `UNIFORM`, `COPY_SRC` and `COPY_DST`, for a
    /// size that is no multiple of 16 bytes, below 256 bytes, or too small for `len` values. A buffer of another wgpu device
    /// makes the calls that use it fail with `Gpu`.
    pub fn adopt_buffer(&self, buffer: wgpu::Buffer, len: usize) -> Result<DeviceBuffer> {
        let gpu = self.shared_gpu().ok_or_else(|| {
            let has = self.backend().to_string();
            Error::invalid("device", has, "a wgpu device: `Backend::Gpu`")
        })?;
        let storage = Storage::Gpu(gpu.adopt_buffer(buffer, len)?);
        Ok(DeviceBuffer::new(self.clone(), storage))
    }

    fn shared_gpu(&self) -> Option<&SharedGpu> {
        match self.executor() {
            Executor::Gpu(gpu) => Some(gpu),
            Executor::Cpu(_) | Executor::Cuda(_) => None,
        }
    }
}

impl DeviceBuffer {
    /// Returns the wgpu buffer, for use by other code on the same wgpu device. It may be longer than
    /// [`DeviceBuffer::len`]. `None` if the elements are elsewhere: on SIMD, on CUDA, and for a
    /// result that the policy had the CPU compute.
    ///
    /// Its memory is never used for other results from then on, so that clones of the handle keep their values. It is released
    /// with the last handle.
    pub fn as_wgpu(&self) -> Option<&wgpu::Buffer> {
        match &self.storage {
            Storage::Host(_) | Storage::Cuda(_) => None,
            Storage::Gpu(buffer) => Some(buffer.lend()),
        }
    }
}
