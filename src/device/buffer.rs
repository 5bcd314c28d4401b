//! Buffers that stay on a device.

use std::sync::Arc;

use crate::device::GpuDevice;
use crate::device::executor::{CudaValues, GpuBuffer};
use crate::error::Result;

/// A buffer of `f32` elements on a device, made by [`GpuDevice::upload_async`] or kept from a
/// batch. Every batch of that device can use it. Clones share the memory, which is released with
/// the last clone.
#[derive(Clone)]
pub struct DeviceBuffer {
    device: GpuDevice,
    pub(crate) storage: Storage,
}

#[derive(Clone)]
#[allow(dead_code)] // Without its feature, a variant is never constructed.
pub(crate) enum Storage {
    Host(Arc<Vec<f32>>),
    Gpu(GpuBuffer),
    Cuda(CudaValues),
}

impl DeviceBuffer {
    pub(crate) fn new(device: GpuDevice, storage: Storage) -> Self {
        Self { device, storage }
    }

    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        match &self.storage {
            Storage::Host(values) => values.len(),
            Storage::Gpu(buffer) => with_gpu!(buffer, buffer.len()),
            Storage::Cuda(values) => with_cuda!(values, values.len()),
        }
    }

    /// Returns whether the buffer has no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the device that holds the buffer.
    pub fn device(&self) -> &GpuDevice {
        &self.device
    }

    /// Copies the elements to the host.
    ///
    /// # Errors
    /// `DeviceLost` if the device is gone, `OutOfMemory`.
    pub async fn read_async(&self) -> Result<Vec<f32>> {
        self.device.check()?;
        let executor = self.device.executor();
        executor.read(&self.storage, self.device.cpu()).await
    }

    /// Blocking version of [`DeviceBuffer::read_async`].
    #[cfg(not(target_arch = "wasm32"))]
    pub fn read(&self) -> Result<Vec<f32>> {
        crate::runtime::block_on(self.read_async())
    }

    /// Returns the wgpu buffer, for use by other code on the same wgpu device. It may be longer than
    /// [`DeviceBuffer::len`], and keeps its elements for as long as a handle of it exists. `None` if the elements are elsewhere: on SIMD, on CUDA, and for a
    /// result that the policy had the CPU compute.
    #[cfg(feature = "gpu")]
    pub fn as_wgpu(&self) -> Option<&wgpu::Buffer> {
        match &self.storage {
            Storage::Host(_) | Storage::Cuda(_) => None,
            Storage::Gpu(buffer) => Some(buffer.lend()),
        }
    }

    /// Returns the elements if they are in host memory.
    pub(crate) fn host(&self) -> Option<&[f32]> {
        match &self.storage {
            Storage::Host(values) => Some(values),
            Storage::Gpu(_) | Storage::Cuda(_) => None,
        }
    }
}

impl std::fmt::Debug for DeviceBuffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut debug = f.debug_struct("DeviceBuffer");
        debug.field("len", &self.len());
        debug.finish_non_exhaustive()
    }
}
