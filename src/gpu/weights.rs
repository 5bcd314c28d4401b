//! Products with weights that invocations unpack themselves.

use std::sync::Arc;

use super::context::Gpu;
#[cfg(not(target_arch = "wasm32"))]
use super::halves;
use super::pipelines::Composed;
use super::recorder::{GpuBuffer, Recorder};
use super::{copy_first, kernels};
#[cfg(not(target_arch = "wasm32"))]
use crate::device::HalfPrecision;
use crate::error::Result;
use crate::matmul_cache::{BLOCK, GROUP, QuantizedWeights, WeightFormat};

/// Rows of a workgroup's part of the result, which has the columns of a group.
const ROWS: usize = 4;

/// Rows from which a product by cooperative matrices, whose tiles have 128, is the faster one.
const MANY_ROWS: usize = 8;

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

    /// Weights of binary16 as cooperative matrices read them, beside their words; `None` where
    /// products are not computed so.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) async fn weights_in_tiles(
        self: &Arc<Self>,
        weights: &QuantizedWeights,
    ) -> Result<Option<GpuBuffer>> {
        let used = self.half_precision() == HalfPrecision::Used;
        if !used || weights.format() != WeightFormat::F16 || weights.words.is_empty() {
            return Ok(None);
        }
        let values = weights.dequantize()?;
        let (tiles, writing) = {
            let mut recorder = Recorder::new(self)?;
            let values = recorder.upload(&values)?;
            let tiles = halves::in_tiles(&mut recorder, &values, weights.shape())?;
            (tiles, recorder.submit(&[])?)
        };
        writing.await?;
        Ok(Some(tiles))
    }

    #[cfg(target_arch = "wasm32")]
    #[allow(clippy::unused_async)] // The other one has something to wait for.
    pub(crate) async fn weights_in_tiles(
        self: &Arc<Self>,
        _: &QuantizedWeights,
    ) -> Result<Option<GpuBuffer>> {
        Ok(None)
    }

    /// `C = A · W` of row-major matrices, `m × k` times `k × n`, whose lengths were validated; by
    /// the weights' tiles, where there are some and rows enough.
    pub(crate) async fn multiply_words(
        self: &Arc<Self>,
        format: WeightFormat,
        (words, tiles): (&GpuBuffer, Option<&GpuBuffer>),
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
            match tiles.filter(|_| m >= MANY_ROWS) {
                #[cfg(not(target_arch = "wasm32"))]
                Some(tiles) => halves::by_tiles(&mut recorder, [&a, tiles], &output, [m, k, n])?,
                _ => {
                    let across = n.div_ceil(GROUP);
                    let groups = across * m.div_ceil(ROWS);
                    let params = [m, k, n, k.div_ceil(BLOCK), across].map(|dim| dim as u32);
                    let (kernel, inputs) = (kernel(format), [&a, words]);
                    recorder.dispatch_composed(&kernel, &params, &inputs, &output, groups)?;
                }
            }
            recorder.submit(&[output])?
        };
        copy_first(&reading.await?, c)
    }
}
