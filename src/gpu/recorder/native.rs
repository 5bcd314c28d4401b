//! Methods of the recorder for native targets.

use super::{GpuBuffer, Recorder};
use crate::error::Result;
use crate::gpu::kernels::Kernel;
use crate::gpu::pool::{PooledBuffer, Usage};
use crate::gpu::target::{Outcome, Profiled};
use crate::gpu::transfer;

/// Copies that come before all steps: from buffers of the pool, where wgpu would make new ones.
#[derive(Default)]
pub(super) struct Uploads(Vec<(PooledBuffer, GpuBuffer)>);

impl Uploads {
    pub(super) fn encode(&self, encoder: &mut wgpu::CommandEncoder) {
        for (staging, target) in &self.0 {
            let size = target.len as u64 * 4;
            encoder.copy_buffer_to_buffer(&staging.buffer, 0, target.raw(), 0, size);
        }
    }

    /// Returns the buffers that the GPU copies from.
    pub(super) fn into_sources(self) -> Vec<PooledBuffer> {
        self.0.into_iter().map(|(from, _)| from).collect()
    }
}

impl Recorder<'_> {
    /// Copies values to a buffer before all steps.
    pub(in crate::gpu) fn send(&mut self, values: &[f32], buffer: &GpuBuffer) -> Result<()> {
        let staging = self.gpu.pool.take(Usage::Upload, values.len())?;
        transfer::write(&staging.buffer, values);
        self.uploads.0.push((staging, buffer.clone()));
        Ok(())
    }

    /// Values for kernels that read each of them but once, which may read them from the host's
    /// memory.
    pub(in crate::gpu) fn operand(&mut self, values: &[f32]) -> Result<GpuBuffer> {
        if self.gpu.limits.mappable && !values.is_empty() {
            let buffer = self.allocate_for(Usage::Input, values.len())?;
            transfer::write(buffer.raw(), values);
            return Ok(buffer);
        }
        self.upload(values)
    }

    /// Records a dispatch of a kernel with constants.
    pub(in crate::gpu) fn dispatch_specialised(
        &mut self,
        kernel: &'static Kernel,
        constants: Vec<(&'static str, u32)>,
        params: &[u32],
        inputs: &[&GpuBuffer],
        output: &GpuBuffer,
        workgroups: usize,
    ) -> Result<()> {
        let mut fused_code = self.fused_code(kernel, inputs, output)?;
        fused_code.constants = constants;
        self.dispatch_with(kernel, &fused_code, params, inputs, output, workgroups)
    }

    /// Returns the query sets for the dispatches, if a profiler is active.
    pub(super) fn profiled(&self) -> Option<Profiled> {
        if self.steps.is_empty() {
            return None;
        }
        self.gpu.stamps_for(self.steps.iter().map(|step| step.name))
    }

    /// Submits nothing.
    ///
    /// # Errors
    /// The first error of recording.
    pub(in crate::gpu) fn abandon(self) -> Result<()> {
        Outcome::of(self.gpu, self.scopes, self.bytes).map(drop)
    }
}
