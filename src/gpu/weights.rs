//! Products with weights that invocations unpack themselves.

use std::sync::Arc;

use super::context::Gpu;
use super::pipelines::Composed;
use super::recorder::{GpuBuffer, Recorder};
use super::{copy_first, kernels};
use crate::error::Result;
use crate::matmul_cache::{BLOCK, GROUP, WeightFormat};

/// Rows of a workgroup's part of the result, which has the columns of a group.
const ROWS: usize = 4;

fn kernel(format: WeightFormat) -> Composed {
    let (name, format) = match format {
        WeightFormat::Q8_0 => (
            "matmul_q8_0",
            include_str!("../../shaders/composed/weights_q8_0.wgsl"),
        ),
        WeightFormat::Q4_0 => (
            "matmul_q4_0",
            include_str!("../../shaders/composed/weights_q4_0.wgsl"),
        ),
        _ => (
            "matmul_f16",
            include_str!("../../shaders/composed/weights_f16.wgsl"),
        ),
    };
    let product = include_str!("../../shaders/composed/matmul_words.wgsl");
    Composed {
        name,
        source: [kernels::LIBRARY, format, product].concat(),
        inputs: 2,
    }
}

impl Gpu {
    /// Copies words of weights to a buffer that stays on the GPU.
    pub(crate) async fn upload_words(self: &Arc<Self>, words: &[u32]) -> Result<GpuBuffer> {
        self.upload(bytemuck::cast_slice(words)).await
    }

    /// `C = A · W` of row-major matrices, `m × k` times `k × n`, whose lengths were validated.
    pub(crate) async fn multiply_words(
        self: &Arc<Self>,
        format: WeightFormat,
        words: &GpuBuffer,
        a: &[f32],
        c: &mut [f32],
        [m, k, n]: [usize; 3],
    ) -> Result<()> {
        if c.is_empty() {
            return Ok(());
        }
        let reading = {
            let mut recorder = Recorder::new(self)?;
            let a = recorder.upload(a)?;
            let output = recorder.allocate(c.len())?;
            let across = n.div_ceil(GROUP);
            let groups = across * m.div_ceil(ROWS);
            let params = [m, k, n, k.div_ceil(BLOCK), across].map(|dim| dim as u32);
            let inputs = [&a, words];
            recorder.dispatch_composed(&kernel(format), &params, &inputs, &output, groups)?;
            recorder.submit(&[output])?
        };
        copy_first(&reading.await?, c)
    }
}
