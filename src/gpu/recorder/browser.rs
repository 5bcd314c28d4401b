//! Methods of the recorder for browsers.

use super::{GpuBuffer, Recorder};
use crate::error::Result;
use crate::gpu::pool::PooledBuffer;
use crate::gpu::target::Profiled;

/// No copies: the queue takes values at once.
#[derive(Default)]
pub(super) struct Uploads {}

#[allow(clippy::unused_self)] // Natively there are copies.
impl Uploads {
    pub(super) fn encode(&self, _: &mut wgpu::CommandEncoder) {}

    pub(super) fn into_sources(self) -> Vec<PooledBuffer> {
        Vec::new()
    }
}

impl Recorder<'_> {
    /// Copies values to a buffer before all steps.
    #[allow(clippy::unnecessary_wraps)] // Natively there may be no memory.
    pub(in crate::gpu) fn send(&mut self, values: &[f32], buffer: &GpuBuffer) -> Result<()> {
        let bytes = bytemuck::cast_slice(values);
        self.gpu.queue.write_buffer(buffer.raw(), 0, bytes);
        Ok(())
    }

    /// Values for kernels that read each of them but once.
    pub(in crate::gpu) fn operand(&mut self, values: &[f32]) -> Result<GpuBuffer> {
        self.upload(values)
    }

    /// Browsers have no profiler.
    #[allow(clippy::unused_self)] // As the native one has it.
    pub(super) fn profiled(&self) -> Option<Profiled> {
        None
    }
}
