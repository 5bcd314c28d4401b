//! The wgpu back-end: WebGPU in the browser; Vulkan, Metal and DX12 natively.
//!
//! The files:
//!
//! - `recorder` turns operations into dispatches and one submission ([`Recorder`]).
//! - `lower`, `axes`, `matmul`, `matvec`, `subgroups`, `convolve2d` and `row_ops` choose the kernel.
//! - `plan` records a graph's kernels, `fused` writes elementwise operations into them, `f16_matmul` multiplies in f16.
//! - `pipelines`, `pool`, `params`, `texts` and `lru` are caches.
//! - `tune` measures the candidates of an operation and stores the fastest, `verify` starts the operations of a check, `persist` is the format of stored bytes.
//! - `transfer` copies to and from mapped memory, `readback` waits.
//! - `native/` has the parts for native targets: `open` finds adapters, `cache` stores pipelines on disk, `warmup`
//!   fills it, `choices_file` keeps the choices of `tune`, `timestamps` measures kernels for `src/device/profile.rs`
//!   and `Program::time_async`, `idle` keeps devices open whose driver cannot close them safely.
//! - `browser/` has the counterparts for browsers, and `arrays`, which copies between JavaScript's arrays and buffers.
//! - `health` turns failures into errors, `shaders` gives users the text of each kernel by name, `steps` records the
//!   steps of language models.

// Code that only native targets run is compiled for WebAssembly as well, where the linker removes it.
#![cfg_attr(target_arch = "wasm32", allow(dead_code))]

mod accumulate;
mod axes;
mod context;
mod convolve2d;
mod f16_matmul;
mod fused;
mod health;
mod kernels;
mod layer;
mod lower;
mod lru;
mod matmul;
#[cfg(not(target_arch = "wasm32"))]
mod matvec;
mod options;
mod params;
mod persist;
mod pipelines;
mod plan;
mod pool;
mod readback;
mod recorder;
mod row_ops;
mod row_steps;
#[cfg(not(all(target_arch = "wasm32", feature = "js")))] // Its module loads the texts later.
pub mod shaders;
#[cfg(feature = "llm-core")]
mod steps;
#[cfg(not(target_arch = "wasm32"))]
mod subgroups;
#[cfg_attr(target_arch = "wasm32", path = "browser/mod.rs")]
#[cfg_attr(not(target_arch = "wasm32"), path = "native/mod.rs")]
mod target;
#[cfg(all(test, not(target_arch = "wasm32")))]
mod tests;
mod texts;
mod tiles;
mod timestamps;
mod transfer;
mod tune;
mod verify;
mod weights;

use std::sync::Arc;

pub(crate) use context::Gpu;
pub(crate) use options::{Options, Preference};
pub(crate) use plan::TimedPlan;
pub(crate) use recorder::{GpuBuffer, Submitted};
#[cfg(not(target_arch = "wasm32"))]
pub use target::KernelTime;
pub(crate) use texts::Texts;
pub(crate) use weights::GpuWeights;

use crate::alloc::try_zeros;
use crate::error::Result;
use crate::graph::{Binding, Node, Plan, Repeat, Source};
use crate::ops::Op;
use readback::Readback;
use recorder::Recorder;

/// A GPU that several users share.
pub(crate) type SharedGpu = Arc<Gpu>;

/// The interface of the GPU back-end to the rest of the crate. Lengths are validated.
impl Gpu {
    /// Runs one operation from and to host memory. An elementwise one is split into pieces that fit into a
    /// buffer binding.
    pub(crate) async fn run(
        self: &Arc<Self>,
        op: &Op,
        inputs: &[&[f32]],
        out: &mut [f32],
    ) -> Result<()> {
        let piece = self.max_len();
        if !op.is_elementwise() || out.len() <= piece {
            return self.run_into(op, inputs, out).await;
        }
        // Into new memory first: a failure half-way must leave `out` as it was.
        let mut whole = try_zeros(out.len())?;
        for (index, part) in whole.chunks_mut(piece).enumerate() {
            let range = index * piece..index * piece + part.len();
            let inputs: Vec<&[f32]> = inputs.iter().map(|input| &input[range.clone()]).collect();
            self.run_into(op, &inputs, part).await?;
        }
        out.copy_from_slice(&whole);
        Ok(())
    }

    /// Runs one operation from and to host memory, in one submission.
    async fn run_into(self: &Arc<Self>, op: &Op, inputs: &[&[f32]], out: &mut [f32]) -> Result<()> {
        let lens: Vec<usize> = inputs.iter().map(|input| input.len()).collect();
        let plan = self.plan_of_one(op, &lens, out.len())?;
        let bindings = inputs.iter().copied().map(Binding::Values);
        let bindings = bindings.chain([Binding::Nothing]).collect();
        let plan = (&plan.0, &plan.1);
        let reading = self.run_plan(plan, bindings, Repeat::ONCE, true)?.1;
        copy_first(&reading.finished().await?, out)
    }

    /// Returns a cached plan of one operation on inputs of these lengths, with a result of `len`
    /// elements. Making one takes a tenth of a small operation's time.
    #[cfg(not(target_arch = "wasm32"))]
    fn plan_of_one(&self, op: &Op, lens: &[usize], len: usize) -> Result<Arc<(Plan, Texts)>> {
        self.state.plans.get(
            |(other, inputs)| other.is_same(op) && *inputs == lens,
            || {
                let plan = Arc::new(single(op, lens, len));
                Ok(((op.clone(), lens.to_vec()), plan))
            },
        )
    }

    /// Makes a plan of one operation on inputs of these lengths, with a result of `len` elements.
    #[cfg(target_arch = "wasm32")]
    #[allow(clippy::unused_self, clippy::unnecessary_wraps)] // The other one remembers it.
    fn plan_of_one(&self, op: &Op, lens: &[usize], len: usize) -> Result<(Plan, Texts)> {
        Ok(single(op, lens, len))
    }

    /// Copies values to a buffer that stays on the GPU.
    pub(crate) async fn upload(self: &Arc<Self>, values: &[f32]) -> Result<GpuBuffer> {
        let (buffer, writing) = {
            let mut recorder = Recorder::new(self)?;
            (recorder.upload(values)?, recorder.submit(&[])?)
        };
        writing.finished().await?;
        Ok(buffer)
    }

    /// Uses the first `len` values of a buffer that other code made on the same device.
    pub(crate) fn adopt_buffer(&self, buffer: wgpu::Buffer, len: usize) -> Result<GpuBuffer> {
        GpuBuffer::borrow(self, buffer, len)
    }

    /// Returns the queue, for other code's submissions.
    pub(crate) fn queue(&self) -> &wgpu::Queue {
        &self.queue
    }

    /// Copies a buffer's values to the host.
    pub(crate) async fn read(self: &Arc<Self>, buffer: &GpuBuffer) -> Result<Vec<f32>> {
        let reading = Recorder::new(self)?.submit(std::slice::from_ref(buffer))?;
        let readbacks = reading.finished().await?;
        readbacks.first().map_or(Ok(Vec::new()), Readback::values)
    }
}

/// Returns a plan of one operation, with inputs of these lengths.
fn single(op: &Op, lens: &[usize], len: usize) -> (Plan, Texts) {
    let placeholders = lens.iter().enumerate().map(|(place, &len)| Node {
        source: Source::Placeholder(place),
        len,
    });
    let mut nodes: Vec<Node> = placeholders.collect();
    let (op, inputs) = (op.clone(), (0..nodes.len()).collect());
    let source = Source::Op { op, inputs };
    nodes.push(Node { source, len });
    let plan = Plan::new(&nodes, &[nodes.len() - 1], false);
    let texts = Texts::new(&plan);
    (plan, texts)
}

fn copy_first(readbacks: &[Readback], out: &mut [f32]) -> Result<()> {
    readbacks
        .iter()
        .try_for_each(|readback| readback.copy_to(out))
}
