//! Submission of the recorded work.

use std::sync::Arc;
#[cfg(not(target_arch = "wasm32"))]
use std::time::Duration;

use super::{GpuBuffer, Recorder};
use crate::error::{Error, Result};
use crate::gpu::context::Gpu;
use crate::gpu::health::{Scopes, classify};
use crate::gpu::pool::PooledBuffer;
use crate::gpu::readback::Readback;
#[cfg(not(target_arch = "wasm32"))]
use crate::gpu::timestamps::Submission as Stamped;
use crate::graph::Fetched;

#[cfg(target_arch = "wasm32")]
type Stamped = std::convert::Infallible;

/// Submitted work whose outcome is not known yet.
pub(crate) struct Submitted {
    outcome: Outcome,
    readbacks: Vec<Readback>,
    /// Memory that the GPU copies from. If it were back in the pool earlier, it could not be mapped again.
    #[cfg(not(target_arch = "wasm32"))]
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
        #[cfg(not(target_arch = "wasm32"))]
        self.encode_uploads(&mut encoder);
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
            #[cfg(not(target_arch = "wasm32"))]
            _uploads: self.uploads.into_iter().map(|(from, _)| from).collect(),
        })
    }

    /// Submits nothing.
    ///
    /// # Errors
    /// What went wrong in recording.
    #[cfg(not(target_arch = "wasm32"))]
    pub(in crate::gpu) fn abandon(self) -> Result<()> {
        Outcome::of(self.gpu, self.scopes, self.bytes).map(drop)
    }

    /// Submits everything, and returns the time of each dispatch.
    #[cfg(not(target_arch = "wasm32"))]
    pub(in crate::gpu) fn submit_timed(self) -> Result<Vec<Duration>> {
        let gpu = self.gpu.clone();
        let descriptor = wgpu::CommandEncoderDescriptor::default();
        let mut encoder = gpu.device.create_command_encoder(&descriptor);
        self.encode_uploads(&mut encoder);
        let stamps = Stamped::new(&gpu.device, self.steps.iter().map(|step| step.name));
        let uniforms = self.encode_steps(&mut encoder, Some(&stamps))?;
        gpu.queue.submit([encoder.finish()]);
        drop(uniforms);
        Outcome::of(&gpu, self.scopes, self.bytes)?;
        gpu.durations(&stamps)
    }

    #[cfg(not(target_arch = "wasm32"))]
    fn encode_uploads(&self, encoder: &mut wgpu::CommandEncoder) {
        for (staging, target) in &self.uploads {
            let size = target.len as u64 * 4;
            encoder.copy_buffer_to_buffer(&staging.buffer, 0, target.raw(), 0, size);
        }
    }

    /// Returns the query sets for the dispatches, if a profiler is active.
    #[cfg(not(target_arch = "wasm32"))]
    fn stamps(&self) -> Option<Stamped> {
        if self.steps.is_empty() {
            return None;
        }
        self.gpu.stamps_for(self.steps.iter().map(|step| step.name))
    }

    #[cfg(target_arch = "wasm32")]
    #[allow(clippy::unused_self)] // As the other one has it.
    fn stamps(&self) -> Option<Stamped> {
        None
    }

    /// Encodes the dispatches, each in a pass of its own if it is timed. Returns the buffer of their parameters.
    fn encode_steps(
        &self,
        encoder: &mut wgpu::CommandEncoder,
        stamps: Option<&Stamped>,
    ) -> Result<Option<Arc<PooledBuffer>>> {
        if self.steps.is_empty() {
            return Ok(None);
        }
        let gpu = self.gpu;
        let uniforms = gpu.params.buffer(&gpu.pool, &gpu.queue, &self.params)?;
        #[cfg(not(target_arch = "wasm32"))]
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
        #[cfg(target_arch = "wasm32")]
        let _ = stamps;
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

/// The result of a submission's error scopes. It is processed even if nobody waits for the
/// submission: buffers that an error invalidated must not be reused.
#[cfg(not(target_arch = "wasm32"))]
struct Outcome;

#[cfg(not(target_arch = "wasm32"))]
impl Outcome {
    fn of(gpu: &Arc<Gpu>, scopes: Scopes, bytes: u64) -> Result<Self> {
        let error = pollster::block_on(scopes.close());
        gpu.verdict(error.map(|error| classify(&error, bytes)))?;
        Ok(Self)
    }

    /// There is no outcome to wait for.
    #[allow(clippy::unused_async)] // Browsers answer later.
    async fn known(self) -> Result<()> {
        Ok(())
    }
}

#[cfg(target_arch = "wasm32")]
struct Outcome {
    gpu: Arc<Gpu>,
    bytes: u64,
    /// `None` once the answer is there.
    errors: Option<std::pin::Pin<Box<dyn Future<Output = Option<wgpu::Error>>>>>,
}

#[cfg(target_arch = "wasm32")]
impl Outcome {
    #[allow(clippy::unnecessary_wraps)] // Natively the answer is there at once.
    fn of(gpu: &Arc<Gpu>, scopes: Scopes, bytes: u64) -> Result<Self> {
        Ok(Self {
            gpu: gpu.clone(),
            bytes,
            errors: Some(Box::pin(scopes.close())),
        })
    }

    async fn known(mut self) -> Result<()> {
        let error = match &mut self.errors {
            Some(errors) => errors.await,
            None => None,
        };
        self.errors = None;
        let error = error.map(|error| classify(&error, self.bytes));
        self.gpu.verdict(error)
    }
}

#[cfg(target_arch = "wasm32")]
impl Drop for Outcome {
    fn drop(&mut self) {
        let Some(errors) = self.errors.take() else {
            return;
        };
        let (gpu, bytes) = (self.gpu.clone(), self.bytes);
        crate::runtime::spawn_local(async move {
            let error = errors.await;
            // Later work reports a loss by itself; other errors have emptied the caches.
            let _ = gpu.verdict(error.map(|error| classify(&error, bytes)));
        });
    }
}

impl Gpu {
    /// Nothing is timed in browsers.
    #[cfg(target_arch = "wasm32")]
    fn submit(&self, commands: wgpu::CommandBuffer, _: Option<Stamped>) -> wgpu::SubmissionIndex {
        self.queue.submit([commands])
    }

    /// Turns the result of a submission's error scopes into its outcome. After an error all caches
    /// are emptied, because no object created meanwhile can be trusted.
    fn verdict(&self, error: Option<Error>) -> Result<()> {
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
