//! Submission of the recorded work.

use std::sync::Arc;

use super::{GpuBuffer, Recorder};
use crate::error::{Error, Result};
use crate::gpu::context::Gpu;
use crate::gpu::pool::PooledBuffer;
use crate::gpu::readback::Readback;
use crate::gpu::target::{Outcome, Timestamps};
use crate::graph::Fetched;

/// Submitted work whose outcome is not known yet.
pub(crate) struct Submitted {
    outcome: Outcome,
    readbacks: Vec<Readback>,
    /// Memory that the GPU copies from. If it were back in the pool earlier, it could not be mapped again.
    _uploads: Vec<PooledBuffer>,
}

impl Submitted {
    /// Waits for the work, and returns the values that it brings to the host.
    pub(crate) async fn finished(self) -> Result<Vec<Readback>> {
        self.outcome.known().await?;
        for readback in &self.readbacks {
            readback.arrived().await?;
        }
        Ok(self.readbacks)
    }

    /// Waits for the work, and returns copies of the values.
    pub(crate) async fn fetched(self) -> Result<Vec<Fetched>> {
        let mut all = Vec::new();
        for readback in self.finished().await? {
            all.push(readback.fetched()?);
        }
        Ok(all)
    }
}

impl Recorder<'_> {
    /// Submits everything, and brings the values of `reads` to the host.
    pub(crate) fn submit(mut self, reads: &[GpuBuffer]) -> Result<Submitted> {
        let gpu = self.gpu.clone();
        let mut encoder = gpu
            .device
            .create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        self.uploads.encode(&mut encoder);
        let stamps = self.stamps();
        // Back in the pool before the submission, another thread could write to them first.
        let uniforms = self.encode_steps(&mut encoder, stamps.as_ref())?;
        let mut readbacks = Vec::with_capacity(reads.len());
        for source in reads {
            let readback = Readback::record(&gpu, source, &mut encoder)?;
            self.bytes += source.len as u64 * 4;
            readbacks.push(readback);
        }
        let submission = gpu.submit(encoder.finish(), stamps);
        drop(uniforms);
        for readback in &mut readbacks {
            readback.start(&submission);
        }
        let outcome = Outcome::of(&gpu, self.scopes, self.bytes)?;
        Ok(Submitted {
            outcome,
            readbacks,
            _uploads: self.uploads.into_sources(),
        })
    }

    /// Encodes the dispatches, each in a pass of its own if it is timed. Returns the buffer of their parameters.
    pub(super) fn encode_steps(
        &self,
        encoder: &mut wgpu::CommandEncoder,
        stamps: Option<&Timestamps>,
    ) -> Result<Option<Arc<PooledBuffer>>> {
        if self.steps.is_empty() {
            return Ok(None);
        }
        let gpu = self.gpu;
        let uniforms = gpu.params.buffer(&gpu.pool, &gpu.queue, &self.params)?;
        if let Some(stamps) = stamps {
            for index in 0..self.steps.len() {
                let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor {
                    label: None,
                    timestamp_writes: stamps.around(index),
                });
                self.encode_step(&mut pass, &uniforms, index);
            }
            stamps.resolve(encoder);
            return Ok(Some(uniforms));
        }
        let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
        for index in 0..self.steps.len() {
            self.encode_step(&mut pass, &uniforms, index);
        }
        drop(pass);
        Ok(Some(uniforms))
    }

    fn encode_step(&self, pass: &mut wgpu::ComputePass<'_>, uniforms: &PooledBuffer, index: usize) {
        let step = &self.steps[index];
        let storage = step.buffers.iter().map(|b| (b.storage.id, b.raw()));
        let buffers: Vec<_> = [(uniforms.id, &uniforms.buffer)]
            .into_iter()
            .chain(storage)
            .collect();
        let offset = index * self.param_stride() * 4;
        let bind_group = self.gpu.pipelines.bind_group(step.shape, &buffers);
        pass.set_pipeline(&step.pipeline);
        pass.set_bind_group(0, &*bind_group, &[offset as u32]);
        pass.dispatch_workgroups(step.grid.0, step.grid.1, 1);
    }
}

impl Gpu {
    /// Turns the result of a submission's error scopes into its outcome. After an error all caches
    /// are emptied, because no object created meanwhile can be trusted.
    pub(in crate::gpu) fn verdict(&self, error: Option<Error>) -> Result<()> {
        if error.is_some() {
            self.deliver_callbacks();
            self.pool.discard_all();
            self.pipelines.discard();
            self.params.discard();
        }
        // A lost device also fails validation; the loss is the reason.
        self.health.check()?;
        error.map_or(Ok(()), Err)
    }
}
