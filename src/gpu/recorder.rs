//! Work for the GPU, recorded and then submitted at once.

use std::sync::Arc;

use super::context::Gpu;
use super::health::{Scopes, classify};
use super::kernels::Kernel;
use super::pipelines::PARAMS_SIZE;
use super::pool::{PooledBuffer, Usage};
use super::readback::Readback;
use crate::error::{Error, Result};
use crate::ops::Op;
use crate::shape::check_limit;

/// Values on the GPU. Clones share them.
#[derive(Clone)]
pub(crate) struct GpuBuffer {
    pub(super) storage: Arc<PooledBuffer>,
    pub(super) len: usize,
}

impl GpuBuffer {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// wgpu's buffer, which may be longer than the values.
    pub(crate) fn raw(&self) -> &wgpu::Buffer {
        &self.storage.buffer
    }
}

/// Uploads and dispatches on their way to one submission.
///
/// Lives between two awaits, never across one: the error scopes it opens belong to a thread.
pub(crate) struct Recorder<'g> {
    pub(super) gpu: &'g Arc<Gpu>,
    scopes: Scopes,
    steps: Vec<Step>,
    params: Vec<u32>,
    bytes: u64,
}

/// One dispatch. Its buffers stay out of the pool until the submission: an upload would come
/// before every step of it.
struct Step {
    kernel: &'static Kernel,
    buffers: Vec<GpuBuffer>,
    grid: (u32, u32),
}

const PARAM_WORDS: usize = PARAMS_SIZE as usize / 4;

impl<'g> Recorder<'g> {
    pub(crate) fn new(gpu: &'g Arc<Gpu>) -> Result<Self> {
        gpu.health.check()?;
        Ok(Self {
            gpu,
            scopes: Scopes::open(&gpu.device),
            steps: Vec::new(),
            params: Vec::new(),
            bytes: 0,
        })
    }

    /// A buffer of `len` values, whose contents are arbitrary.
    pub(super) fn allocate(&mut self, len: usize) -> Result<GpuBuffer> {
        self.bytes += len as u64 * 4;
        let storage = Arc::new(self.gpu.pool.take(Usage::Storage, len)?);
        Ok(GpuBuffer { storage, len })
    }

    /// Copies values to the GPU.
    pub(crate) fn upload(&mut self, values: &[f32]) -> Result<GpuBuffer> {
        let buffer = self.allocate(values.len())?;
        if !values.is_empty() {
            let bytes = bytemuck::cast_slice(values);
            self.gpu.queue.write_buffer(buffer.raw(), 0, bytes);
        }
        Ok(buffer)
    }

    /// Records an operation whose inputs have been validated.
    pub(crate) fn op(&mut self, op: &Op, inputs: &[GpuBuffer], len: usize) -> Result<GpuBuffer> {
        let output = self.allocate(len)?;
        if len > 0 {
            super::lower::lower(self, op, inputs, &output)?;
        }
        Ok(output)
    }

    /// Records `workgroups` workgroups of a kernel, folded into rows where they are many.
    pub(super) fn dispatch(
        &mut self,
        kernel: &'static Kernel,
        params: &[u32],
        inputs: &[&GpuBuffer],
        output: &GpuBuffer,
        workgroups: usize,
    ) -> Result<()> {
        debug_assert_eq!(inputs.len(), kernel.inputs, "{}", kernel.name);
        let widest = self.gpu.limits.workgroups;
        let rows = workgroups.div_ceil(widest);
        check_limit("the number of workgroups", workgroups, widest * widest)?;
        let start = self.params.len();
        self.params.extend_from_slice(params);
        self.params.resize(start + self.param_stride(), 0);
        let buffers = inputs.iter().copied().chain([output]).cloned().collect();
        self.steps.push(Step {
            kernel,
            buffers,
            grid: (workgroups.min(widest) as u32, rows as u32),
        });
        Ok(())
    }

    /// Words from one dispatch's parameters to the next one's.
    fn param_stride(&self) -> usize {
        let alignment = self.gpu.limits.uniform_alignment / 4;
        PARAM_WORDS.next_multiple_of(alignment.max(1))
    }

    /// Submits everything, and brings the values of `reads` to the host.
    pub(crate) fn submit(
        mut self,
        reads: &[GpuBuffer],
    ) -> Result<impl Future<Output = Result<Vec<Readback>>> + use<>> {
        let gpu = self.gpu.clone();
        let mut encoder = gpu
            .device
            .create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        // Back in the pool before the submission, another thread could write to them first.
        let uniforms = self.encode_steps(&mut encoder)?;
        let mut readbacks = Vec::with_capacity(reads.len());
        for source in reads {
            let readback = Readback::record(&gpu, source, &mut encoder)?;
            self.bytes += source.len as u64 * 4;
            readbacks.push(readback);
        }
        let submission = gpu.queue.submit([encoder.finish()]);
        drop(uniforms);
        for readback in &mut readbacks {
            readback.start(&submission);
        }
        let errors = self.scopes.close();
        let bytes = self.bytes;
        Ok(async move {
            let error = errors.await;
            gpu.verdict(error.map(|error| classify(&error, bytes)))?;
            for readback in &readbacks {
                readback.arrived().await?;
            }
            Ok(readbacks)
        })
    }

    /// Encodes the dispatches; returns the buffer of their parameters.
    fn encode_steps(&self, encoder: &mut wgpu::CommandEncoder) -> Result<Option<PooledBuffer>> {
        if self.steps.is_empty() {
            return Ok(None);
        }
        let gpu = self.gpu;
        let uniforms = gpu.pool.take(Usage::Uniform, self.params.len())?;
        let bytes = bytemuck::cast_slice(&self.params);
        gpu.queue.write_buffer(&uniforms.buffer, 0, bytes);
        let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
        for (index, step) in self.steps.iter().enumerate() {
            let storage = step.buffers.iter().map(|b| (b.storage.id, b.raw()));
            let buffers: Vec<_> = [(uniforms.id, &uniforms.buffer)]
                .into_iter()
                .chain(storage)
                .collect();
            let offset = index * self.param_stride() * 4;
            pass.set_pipeline(gpu.pipelines.pipeline(step.kernel));
            pass.set_bind_group(0, &*gpu.pipelines.bind_group(&buffers), &[offset as u32]);
            pass.dispatch_workgroups(step.grid.0, step.grid.1, 1);
        }
        drop(pass);
        Ok(Some(uniforms))
    }
}

impl Gpu {
    /// Turns what a submission's error scopes saw into its result. After an error nothing that
    /// was made meanwhile can be trusted, so every cache is emptied.
    fn verdict(&self, error: Option<Error>) -> Result<()> {
        if error.is_some() {
            self.deliver_callbacks();
            self.pool.discard_all();
            self.pipelines.discard_bind_groups();
        }
        // A lost device also fails validation; the loss is the reason.
        self.health.check()?;
        error.map_or(Ok(()), Err)
    }
}
