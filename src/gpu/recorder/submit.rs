//! Submission of the recorded work.

use std::sync::Arc;

use super::{GpuBuffer, Recorder};
use crate::error::{Error, Result};
use crate::gpu::context::Gpu;
use crate::gpu::pool::PooledBuffer;
use crate::gpu::readback::Readback;
use crate::gpu::target::Outcome;
use crate::gpu::timestamps::Timestamps;
use crate::graph::Fetched;

/// Submitted work whose outcome is not known yet.
pub(crate) struct Submitted {
    outcome: Outcome,
    readbacks: Vec<Readback>,
    /// Memory that the GPU copies from. It returns to the pool only after the copy, because it could not be mapped
    /// again before.
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
        let profiled = self.profiled();
        let stamps = profiled.as_ref().map(|profiled| &profiled.stamps);
        let (mut encoder, uniforms) = self.encode(stamps)?;
        let mut readbacks = Vec::with_capacity(reads.len());
        for source in reads {
            let readback = Readback::record(&gpu, source, &mut encoder)?;
            self.bytes += source.len as u64 * 4;
            readbacks.push(readback);
        }
        let submission = gpu.submit(encoder.finish(), profiled);
        drop(uniforms);
        self.submitted(readbacks, &submission)
    }

    /// Submits everything, and brings the ticks around each dispatch to the host.
    pub(in crate::gpu) fn submit_timed(self) -> Result<Submitted> {
        let gpu = self.gpu.clone();
        let stamps = Timestamps::new(&gpu.device, self.steps.len());
        let (mut encoder, uniforms) = self.encode(Some(&stamps))?;
        let ticks = stamps.ticks();
        let readbacks = ticks.map(|ticks| Readback::copy(&gpu, ticks, &mut encoder));
        let readbacks = readbacks.collect::<Result<_>>()?;
        let submission = gpu.queue.submit([encoder.finish()]);
        drop(uniforms);
        self.submitted(readbacks, &submission)
    }

    /// The number of dispatches so far.
    pub(in crate::gpu) fn dispatches(&self) -> usize {
        self.steps.len()
    }

    /// Encodes everything. Returns the buffer of parameters, too: back in the pool before the submission, another thread
    /// could write to it first.
    fn encode(
        &self,
        stamps: Option<&Timestamps>,
    ) -> Result<(wgpu::CommandEncoder, Option<Arc<PooledBuffer>>)> {
        let descriptor = wgpu::CommandEncoderDescriptor::default();
        let mut encoder = self.gpu.device.create_command_encoder(&descriptor);
        self.uploads.encode(&mut encoder);
        let uniforms = self.encode_steps(&mut encoder, stamps)?;
        Ok((encoder, uniforms))
    }

    fn submitted(
        self,
        mut readbacks: Vec<Readback>,
        submission: &wgpu::SubmissionIndex,
    ) -> Result<Submitted> {
        for readback in &mut readbacks {
            readback.start(submission);
        }
        let outcome = Outcome::of(self.gpu, self.scopes, self.bytes)?;
        Ok(Submitted {
            outcome,
            readbacks,
            _uploads: self.uploads.into_sources(),
        })
    }

    /// Encodes the dispatches. A timed dispatch gets a separate pass. Returns the buffer of their parameters.
    fn encode_steps(
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
