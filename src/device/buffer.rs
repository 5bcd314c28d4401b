//! Values that stay on a device.

use std::sync::Arc;

#[cfg(all(feature = "cuda", not(target_arch = "wasm32")))]
use crate::cuda::CudaValues;
use crate::device::GpuDevice;
#[cfg(not(all(feature = "cuda", not(target_arch = "wasm32"))))]
use crate::device::without_cuda::CudaValues;
use crate::error::Result;
use crate::gpu::GpuBuffer;

/// Values on a device, made by [`GpuDevice::upload_async`] or kept from a batch, and usable by
/// any batch of that device. Clones share them; the memory goes back when the last one does.
#[derive(Clone)]
pub struct DeviceBuffer {
    device: GpuDevice,
    pub(crate) storage: Storage,
}

#[derive(Clone)]
pub(crate) enum Storage {
    Host(Arc<Vec<f32>>),
    Gpu(GpuBuffer),
    Cuda(CudaValues),
}

impl DeviceBuffer {
    pub(crate) fn new(device: GpuDevice, storage: Storage) -> Self {
        Self { device, storage }
    }

    /// The number of values.
    pub fn len(&self) -> usize {
        match &self.storage {
            Storage::Host(values) => values.len(),
            Storage::Gpu(buffer) => buffer.len(),
            Storage::Cuda(values) => values.len(),
        }
    }

    /// Whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The device that the values are on.
    pub fn device(&self) -> &GpuDevice {
        &self.device
    }

    /// Copies the values to the host.
    ///
    /// # Errors
    /// `DeviceLost` where they are gone, `OutOfMemory`.
    pub async fn read_async(&self) -> Result<Vec<f32>> {
        self.device.check()?;
        let executor = self.device.executor();
        executor.read(&self.storage, self.device.cpu()).await
    }

    /// [`DeviceBuffer::read_async`], waited for.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn read(&self) -> Result<Vec<f32>> {
        crate::runtime::block_on(self.read_async())
    }

    /// wgpu's buffer, for use by other code on the same wgpu device; `None` on SIMD. It may be
    /// longer than the values.
    #[cfg(feature = "gpu")]
    pub fn as_wgpu(&self) -> Option<&wgpu::Buffer> {
        self.gpu().map(GpuBuffer::raw)
    }

    /// The values, where they are in memory already.
    pub(crate) fn host(&self) -> Option<&[f32]> {
        match &self.storage {
            Storage::Host(values) => Some(values),
            Storage::Gpu(_) | Storage::Cuda(_) => None,
        }
    }

    pub(crate) fn gpu(&self) -> Option<&GpuBuffer> {
        match &self.storage {
            Storage::Host(_) | Storage::Cuda(_) => None,
            Storage::Gpu(buffer) => Some(buffer),
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
