//! Copies directly between JavaScript's arrays and GPU buffers. A copy through WebAssembly's memory
//! would cost another pass and, usually, new memory.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use js_sys::Float32Array;

use crate::alloc::js_array;
use crate::error::{Error, Result};
use crate::gpu::context::Gpu;
use crate::gpu::pool::LOANED_BYTES;
use crate::gpu::readback::Readback;
use crate::gpu::recorder::{GpuBuffer, Recorder, Submitted};
use crate::graph::{Binding, Repeat};
use crate::ops::Op;

impl Gpu {
    /// Returns the bytes of all buffers that are in use, on all GPUs.
    pub(crate) fn bytes_in_use() -> u64 {
        LOANED_BYTES.load(Ordering::Relaxed)
    }

    /// Runs one operation that gives `len` values, as was checked; an elementwise one in pieces that
    /// fit into bindings. The inputs are read now.
    pub(crate) fn run_arrays(
        self: &Arc<Self>,
        op: &Op,
        inputs: &[Float32Array],
        len: usize,
    ) -> Result<impl Future<Output = Result<Float32Array>> + use<>> {
        let mut pieces = Vec::new();
        if op.is_elementwise() && len > self.max_len() {
            for at in (0..len).step_by(self.max_len()) {
                let end = len.min(at + self.max_len());
                let parts = inputs.iter().map(|x| js_array::part(x, at, end - at));
                let parts: Option<Vec<Float32Array>> = parts.collect();
                let parts = parts.ok_or_else(js_array::lost)?;
                pieces.push(self.run_piece(op, &parts, end - at)?);
            }
        } else {
            pieces.push(self.run_piece(op, inputs, len)?);
        }
        Ok(async move {
            if pieces.len() == 1 {
                return array(&pieces.remove(0).finished().await?);
            }
            let (whole, mut at) = (js_array::zeros(len)?, 0);
            for piece in pieces {
                let piece = array(&piece.finished().await?)?;
                whole.set(&piece, at);
                at += piece.length();
            }
            Ok(whole)
        })
    }

    fn run_piece(
        self: &Arc<Self>,
        op: &Op,
        inputs: &[Float32Array],
        len: usize,
    ) -> Result<Submitted> {
        let lens: Vec<usize> = inputs.iter().map(|x| x.length() as usize).collect();
        let plan = self.plan_of_one(op, &lens, len)?;
        let mut bindings: Vec<Binding<'_, _>> = inputs.iter().map(Binding::Array).collect();
        bindings.push(Binding::Nothing);
        let plan = (&plan.0, &plan.1);
        Ok(self.run_plan(plan, bindings, Repeat::ONCE, true)?.1)
    }

    /// Copies values to a buffer that stays on the GPU. They are read now; the submission reports errors.
    pub(crate) fn upload_array(
        self: &Arc<Self>,
        values: &Float32Array,
    ) -> Result<(GpuBuffer, Submitted)> {
        let mut recorder = Recorder::new(self)?;
        let buffer = recorder.upload_array(values)?;
        let writing = recorder.submit(&[])?;
        Ok((buffer, writing))
    }

    /// A buffer's values.
    pub(crate) async fn read_array(self: &Arc<Self>, buffer: &GpuBuffer) -> Result<Float32Array> {
        let reading = Recorder::new(self)?.submit(std::slice::from_ref(buffer))?;
        array(&reading.finished().await?)
    }
}

/// The first one's values.
fn array(readbacks: &[Readback]) -> Result<Float32Array> {
    let first = readbacks.first();
    first.map_or_else(|| js_array::zeros(0), Readback::array)
}

impl Readback {
    /// The values, which must have arrived.
    pub(crate) fn array(&self) -> Result<Float32Array> {
        let bytes = self.look(|view| view.as_uint8array().slice(0, u32::MAX))?;
        Ok(match bytes {
            Some(bytes) => Float32Array::new(&bytes.buffer()),
            None => js_array::zeros(0)?,
        })
    }
}

impl Recorder<'_> {
    /// Copies values to the GPU.
    pub(in crate::gpu) fn upload_array(&mut self, values: &Float32Array) -> Result<GpuBuffer> {
        let len = values.length() as usize;
        let buffer = self.allocate(len)?;
        let (queue, raw) = (self.gpu.queue.as_webgpu(), buffer.raw().as_webgpu());
        if let (Some(queue), Some(raw), 1..) = (queue, raw, len) {
            let mut written = queue.write_buffer_with_u32_and_buffer_source(raw, 0, values);
            if written.is_err() {
                // The queue takes nothing of a buffer that may grow or shrink.
                let copy = js_array::copy(values, len)?;
                written = queue.write_buffer_with_u32_and_buffer_source(raw, 0, &copy);
            }
            written.map_err(|_| Error::Gpu {
                message: "the values could not be written".into(),
            })?;
        }
        Ok(buffer)
    }
}
