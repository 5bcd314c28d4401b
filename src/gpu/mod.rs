//! The wgpu back-end: WebGPU in the browser; Vulkan, Metal and DX12 natively.
//!
//! A [`Recorder`] turns operations into dispatches (`lower.rs`), and one submission of all of
//! them into results (`readback.rs`). What it needs on the way comes from caches: pipelines and
//! bind groups from `pipelines.rs`, buffers from `pool.rs`.

mod context;
mod health;
mod kernels;
mod lower;
mod pipelines;
mod pool;
mod readback;
mod recorder;
#[cfg(all(test, not(target_arch = "wasm32")))]
mod tests;

use std::sync::Arc;

pub(crate) use context::{Gpu, Preference};
pub(crate) use recorder::GpuBuffer;

use crate::buffer::Storage;
use crate::error::{Result, try_zeros};
use crate::graph::{Node, Source};
use crate::ops::Op;
use readback::Readback;
use recorder::Recorder;

/// What the rest of the crate asks of a GPU. Lengths have been validated.
impl Gpu {
    /// Runs one operation from and to host memory, in one submission.
    pub(crate) async fn run_into(
        self: &Arc<Self>,
        op: &Op,
        inputs: &[&[f32]],
        out: &mut [f32],
    ) -> Result<()> {
        let reading = {
            let mut recorder = Recorder::new(self)?;
            let uploads = inputs.iter().map(|values| recorder.upload(values));
            let inputs = uploads.collect::<Result<Vec<_>>>()?;
            let output = recorder.op(op, &inputs, out.len())?;
            recorder.submit(&[output])?
        };
        copy_first(&reading.await?, out)
    }

    /// Copies values to a buffer that stays on the GPU.
    pub(crate) async fn upload(self: &Arc<Self>, values: &[f32]) -> Result<GpuBuffer> {
        let (buffer, writing) = {
            let mut recorder = Recorder::new(self)?;
            (recorder.upload(values)?, recorder.submit(&[])?)
        };
        writing.await?;
        Ok(buffer)
    }

    /// Copies a buffer's values to the host.
    pub(crate) async fn read(self: &Arc<Self>, buffer: &GpuBuffer) -> Result<Vec<f32>> {
        let mut values = try_zeros(buffer.len())?;
        let reading = Recorder::new(self)?.submit(std::slice::from_ref(buffer))?;
        copy_first(&reading.await?, &mut values)?;
        Ok(values)
    }

    /// Runs a graph in one submission; a buffer for each of its nodes.
    pub(crate) async fn run_graph(self: &Arc<Self>, nodes: &[Node]) -> Result<Vec<GpuBuffer>> {
        let (buffers, running) = {
            let mut recorder = Recorder::new(self)?;
            let mut buffers: Vec<GpuBuffer> = Vec::with_capacity(nodes.len());
            for node in nodes {
                buffers.push(record_node(&mut recorder, node, &buffers)?);
            }
            (buffers, recorder.submit(&[])?)
        };
        running.await?;
        Ok(buffers)
    }
}

fn record_node(
    recorder: &mut Recorder<'_>,
    node: &Node,
    buffers: &[GpuBuffer],
) -> Result<GpuBuffer> {
    match &node.source {
        Source::Upload(values) => recorder.upload(values),
        Source::Input(buffer) => match &buffer.storage {
            Storage::Gpu(resident) => Ok(resident.clone()),
            Storage::Host(values) => recorder.upload(values),
        },
        Source::Op { op, inputs } => {
            let inputs: Vec<_> = inputs.iter().map(|&i| buffers[i].clone()).collect();
            recorder.op(op, &inputs, node.len)
        }
    }
}

fn copy_first(readbacks: &[Readback], out: &mut [f32]) -> Result<()> {
    readbacks
        .iter()
        .try_for_each(|readback| readback.copy_to(out))
}
