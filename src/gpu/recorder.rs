//! Work for the GPU, recorded and then submitted at once.

mod submit;
#[cfg_attr(target_arch = "wasm32", path = "recorder/browser.rs")]
#[cfg_attr(not(target_arch = "wasm32"), path = "recorder/native.rs")]
mod target;

pub(crate) use submit::Submitted;
use target::Uploads;

use std::sync::{Arc, OnceLock};

use super::context::Gpu;
use super::fused::{FusedCode, Fusion, KERNEL_PARAMS};
use super::health::Scopes;
use super::kernels::{self, Kernel};
use super::pipelines::{Composed, PARAMS_SIZE, Shape};
use super::pool::{PooledBuffer, Usage};
use super::tune::Key;
use crate::error::{Error, Result};
use crate::graph::Operand;
use crate::ops::Op;
use crate::ops::shape::check_limit;
use crate::runtime::NATIVE;

/// Values on the GPU. Clones share them.
#[derive(Clone)]
pub(crate) struct GpuBuffer {
    pub(super) storage: Arc<PooledBuffer>,
    pub(super) len: usize,
    /// The chain of the [`Fusion`] being recorded that computes the elements of this buffer, or
    /// continues from them.
    chain: Option<usize>,
}

impl GpuBuffer {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Returns the same memory with another number of elements, at most its capacity.
    pub(crate) fn with_len(&self, len: usize) -> Self {
        let storage = self.storage.clone();
        let chain = None;
        Self {
            storage,
            len,
            chain,
        }
    }

    /// Returns whether an operation is fused after the one that writes this buffer.
    pub(super) fn goes_on(&self) -> bool {
        self.chain.is_some()
    }

    /// Whether the host can map the buffer to read it.
    pub(super) fn is_mappable(&self) -> bool {
        NATIVE && self.storage.usage == Usage::Output
    }

    /// Uses a buffer of other code on the same device.
    pub(super) fn borrow(gpu: &Gpu, buffer: wgpu::Buffer, len: usize) -> Result<Self> {
        let storage = Arc::new(gpu.pool.borrow(buffer, len)?);
        let chain = None;
        Ok(Self {
            storage,
            len,
            chain,
        })
    }

    /// Lends wgpu's buffer, which may be longer than the values, to other code.
    pub(crate) fn lend(&self) -> &wgpu::Buffer {
        self.storage.lend()
    }

    /// wgpu's buffer, which may be longer than the values.
    pub(crate) fn raw(&self) -> &wgpu::Buffer {
        &self.storage.buffer
    }
}

/// Collects uploads and dispatches for one submission.
///
/// Lives between two awaits, never across one: the error scopes it opens belong to a thread.
pub(crate) struct Recorder<'g> {
    pub(super) gpu: &'g Arc<Gpu>,
    fusion: Option<Fusion<'g>>,
    /// The kernel that is measured, instead of the fastest one.
    pub(super) raced: Option<&'static str>,
    scopes: Scopes,
    steps: Vec<Step>,
    params: Vec<u32>,
    /// Copies that come before the steps.
    uploads: Uploads,
    /// Temporary buffers that no recorded step needs any more. They are not uploaded to, so later
    /// steps may write them.
    spare: Vec<GpuBuffer>,
    bytes: u64,
}

/// One dispatch. Its buffers stay out of the pool until the submission: an upload would come
/// before every step of it.
struct Step {
    name: &'static str,
    pipeline: wgpu::ComputePipeline,
    shape: Shape,
    buffers: Vec<GpuBuffer>,
    grid: (u32, u32),
}

/// The number of dispatches after which the commands of a repeated plan are submitted.
const MAX_STEPS: usize = 1024;

const PARAM_WORDS: usize = PARAMS_SIZE as usize / 4;

impl<'g> Recorder<'g> {
    pub(crate) fn new(gpu: &'g Arc<Gpu>) -> Result<Self> {
        gpu.health.check()?;
        Ok(Self {
            gpu,
            fusion: None,
            raced: None,
            scopes: Scopes::open(&gpu.device),
            steps: Vec::new(),
            params: Vec::new(),
            uploads: Uploads::default(),
            spare: Vec::new(),
            bytes: 0,
        })
    }

    /// Returns whether enough work is recorded to submit it.
    pub(super) fn is_long(&self) -> bool {
        self.steps.len() >= MAX_STEPS
    }

    /// Returns the kernel that was measured to be the fastest for a key, if there is a measurement.
    pub(super) fn fastest(&self, key: Key) -> Option<String> {
        match self.raced {
            Some(name) => Some(name.to_owned()),
            None => self.gpu.tuned.of(key),
        }
    }

    /// Returns a buffer of `len` values with arbitrary contents.
    pub(super) fn allocate(&mut self, len: usize) -> Result<GpuBuffer> {
        self.allocate_for(Usage::Storage, len)
    }

    /// Allocates a buffer of `len` elements for an intermediate result between steps.
    pub(super) fn temporary(&mut self, len: usize) -> Result<GpuBuffer> {
        match self.spare.iter().position(|spare| spare.len == len) {
            Some(place) => Ok(self.spare.swap_remove(place)),
            None => self.allocate(len),
        }
    }

    /// Lets later steps reuse a temporary buffer that earlier steps no longer need.
    pub(super) fn give_back(&mut self, temporary: GpuBuffer) {
        self.spare.push(temporary);
    }

    /// A buffer for a result that will be read by the host and nothing else: kernels write each
    /// value once, if need be to the host's memory.
    pub(super) fn allocate_to_read(&mut self, len: usize) -> Result<GpuBuffer> {
        if NATIVE && self.gpu.limits.mappable && len > 0 {
            return self.allocate_for(Usage::Output, len);
        }
        self.allocate(len)
    }

    fn allocate_for(&mut self, usage: Usage, len: usize) -> Result<GpuBuffer> {
        let storage = Arc::new(self.gpu.pool.take(usage, len)?);
        self.bytes += len as u64 * 4;
        Ok(GpuBuffer {
            storage,
            len,
            chain: None,
        })
    }

    /// Copies values to the GPU.
    pub(crate) fn upload(&mut self, values: &[f32]) -> Result<GpuBuffer> {
        let buffer = self.allocate(values.len())?;
        if !values.is_empty() {
            self.send(values, &buffer)?;
        }
        Ok(buffer)
    }

    /// Records an operation with its fused elementwise operations. The chains that compute its
    /// operands are at the operands' indices, and the chain that follows is the last.
    pub(super) fn fused_op(
        &mut self,
        op: &Op,
        mut operands: Vec<GpuBuffer>,
        fusion: Fusion<'g>,
        output: &GpuBuffer,
    ) -> Result<()> {
        let last = operands.len();
        let has_steps = |place: usize| !fusion.chains[place].steps.is_empty();
        for (place, operand) in operands.iter_mut().enumerate() {
            operand.chain = has_steps(place).then_some(place);
        }
        let mut output = output.clone();
        output.chain = has_steps(last).then_some(last);
        self.fusion = Some(fusion);
        let recorded = super::lower::lower(self, op, &operands, &output);
        self.fusion = None;
        recorded
    }

    /// Records elementwise operations alone; their text is cached in `kept`.
    pub(super) fn elementwise(
        &mut self,
        fusion: Fusion<'g>,
        kept: &OnceLock<FusedCode>,
        output: &GpuBuffer,
    ) -> Result<()> {
        // The first step has an operand as long as the result, which no step computes.
        let operands = &fusion.chains[0].steps[0].operands;
        let own = operands.iter().find_map(|&operand| match operand {
            Operand::Input(input) => Some((operand, input)),
            _ => None,
        });
        let Some((first, input)) = own else {
            return Err(Error::Gpu {
                message: "an elementwise kernel reads repeated elements only".to_owned(),
            });
        };
        let x = fusion.inputs[input].clone();
        let fused_code = if let Some(fused_code) = kept.get() {
            fused_code
        } else {
            let mut fused_code = FusedCode::new(&kernels::ELEMENTWISE);
            fused_code.after(first, fusion.chains[0])?;
            kept.get_or_init(|| fused_code)
        };
        self.fusion = Some(fusion);
        let recorded = super::lower::elementwise(self, &x, fused_code, output);
        self.fusion = None;
        recorded
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
        let fused_code = self.fused_code(kernel, inputs, output)?;
        self.dispatch_with(kernel, &fused_code, params, inputs, output, workgroups)
    }

    /// Returns the code that the fused operations add to a kernel.
    fn fused_code(
        &self,
        kernel: &Kernel,
        inputs: &[&GpuBuffer],
        output: &GpuBuffer,
    ) -> Result<FusedCode> {
        let mut fused_code = FusedCode::new(kernel);
        if let Some(fusion) = &self.fusion {
            for (place, input) in inputs.iter().enumerate() {
                if let Some(chain) = input.chain {
                    fused_code.before(place, fusion.chains[chain])?;
                }
            }
            if let Some(chain) = output.chain {
                fused_code.after(Operand::Head, fusion.chains[chain])?;
            }
        }
        Ok(fused_code)
    }

    /// Records a kernel with its fused code.
    pub(super) fn dispatch_with(
        &mut self,
        kernel: &'static Kernel,
        fused_code: &FusedCode,
        params: &[u32],
        inputs: &[&GpuBuffer],
        output: &GpuBuffer,
        workgroups: usize,
    ) -> Result<()> {
        debug_assert_eq!(inputs.len(), kernel.inputs, "{}", kernel.name);
        let mut buffers = buffers(inputs, &[output]);
        if let Some(fusion) = &self.fusion {
            for &(input, _) in &fused_code.bound {
                buffers.push(fusion.inputs[input].clone());
            }
        }
        self.push(
            Step {
                name: kernel.name,
                pipeline: {
                    let group = self.gpu.adapter().group();
                    self.gpu.pipelines.pipeline(kernel, fused_code, group)
                },
                shape: Shape::of(kernel, fused_code.bound.len()),
                buffers,
                grid: self.grid(workgroups)?,
            },
            [params, &fused_code.params],
        );
        Ok(())
    }

    /// [`Recorder::dispatch`] of a kernel composed at run time.
    pub(super) fn dispatch_composed(
        &mut self,
        kernel: &Composed,
        params: &[u32],
        inputs: &[&GpuBuffer],
        outputs: &[&GpuBuffer],
        workgroups: usize,
    ) -> Result<()> {
        let shape = Shape::plain(inputs.len(), outputs.len());
        self.push(
            Step {
                name: kernel.name,
                pipeline: self.gpu.pipelines.composed(kernel, shape),
                shape,
                buffers: buffers(inputs, outputs),
                grid: self.grid(workgroups)?,
            },
            [params, &[]],
        );
        Ok(())
    }

    /// Adds a step, with its kernel's parameters and those of the fused code.
    fn push(&mut self, step: Step, [own, added]: [&[u32]; 2]) {
        let start = self.params.len();
        self.params.extend_from_slice(own);
        if !added.is_empty() {
            self.params.resize(start + KERNEL_PARAMS, 0);
            self.params.extend_from_slice(added);
        }
        self.params.resize(start + self.param_stride(), 0);
        self.steps.push(step);
    }

    /// Returns the names of the kernels recorded.
    pub(super) fn names(&self) -> Vec<&'static str> {
        self.steps.iter().map(|step| step.name).collect()
    }

    fn grid(&self, workgroups: usize) -> Result<(u32, u32)> {
        let widest = self.gpu.limits.workgroups;
        check_limit("the number of workgroups", workgroups, widest * widest)?;
        Ok((
            workgroups.min(widest) as u32,
            workgroups.div_ceil(widest) as u32,
        ))
    }

    /// Words from one dispatch's parameters to the next one's.
    fn param_stride(&self) -> usize {
        let alignment = self.gpu.limits.uniform_alignment / 4;
        PARAM_WORDS.next_multiple_of(alignment.max(1))
    }
}

/// Returns a kernel's buffers in binding order. Iterator chains would add 700 bytes to the
/// download.
fn buffers(inputs: &[&GpuBuffer], outputs: &[&GpuBuffer]) -> Vec<GpuBuffer> {
    let mut buffers = Vec::new();
    for part in [inputs, outputs] {
        for &buffer in part {
            buffers.push(buffer.clone());
        }
    }
    buffers
}
