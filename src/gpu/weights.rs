//! Products with weights that invocations unpack themselves.

use std::sync::Arc;

use super::context::Gpu;
use super::f16_matmul;
use super::lower::WORKGROUP;
use super::pipelines::{Composed, Proof};
use super::recorder::{GpuBuffer, Recorder};
use super::{copy_first, kernels};
use crate::error::{Error, Result};
use crate::ops::CachedMatmul;
use crate::runtime::OnOneThread;
use crate::tensor::BoundView;
use crate::tensor::quantized::{BLOCK, GROUP, QuantizedWeights, WeightFormat};

/// The number of rows in a workgroup's part of the result. The part has the columns of one group.
const ROWS: usize = 4;

/// The number of rows from which a matmul by cooperative matrices is faster, although their tiles have 128 rows.
const MANY_ROWS: usize = 8;

/// The number of rows from which it is faster to dequantize all weights into an `f32` buffer first.
/// On an H200, dequantizing in each workgroup took a tenth less time for 12 rows of f16 or 16 rows
/// of quantized weights, and a fifth more for twice as many rows.
const UNPACKED_FROM: usize = 16;

/// Returns the name and text of the kernel that multiplies by packed weights.
fn matmul_of(format: WeightFormat) -> (&'static str, &'static str) {
    match format {
        WeightFormat::Q8_0 => ("matmul_q8_0", kernels::MATMUL_Q8_0),
        WeightFormat::Q4_0 => ("matmul_q4_0", kernels::MATMUL_Q4_0),
        WeightFormat::F32 | WeightFormat::F16 => ("matmul_f16", kernels::MATMUL_F16),
    }
}

/// Returns the name and text of the kernel that unpacks packed weights.
fn unpack_of(format: WeightFormat) -> (&'static str, &'static str) {
    match format {
        WeightFormat::Q8_0 => ("unpack_q8_0", kernels::UNPACK_Q8_0),
        WeightFormat::Q4_0 => ("unpack_q4_0", kernels::UNPACK_Q4_0),
        WeightFormat::F32 | WeightFormat::F16 => ("unpack_f16", kernels::UNPACK_F16),
    }
}

/// Records `C = A · W`, where neither is empty.
pub(super) fn multiply_words(
    recorder: &mut Recorder<'_>,
    format: WeightFormat,
    [a, words]: [&GpuBuffer; 2],
    c: &GpuBuffer,
    [m, k, n]: [usize; 3],
) -> Result<()> {
    // A buffer may be too small for what its words become.
    let fits = k * n <= recorder.gpu.pool.max_len();
    if m >= UNPACKED_FROM && k > 0 && fits {
        let b = recorder.allocate(k * n)?;
        unpack(recorder, format, words, &b, [k, n])?;
        return super::matmul::matmul(recorder, [a, &b], c, [m, k, n]);
    }
    super::matmul::check_depth(recorder.gpu, k)?;
    let across = n.div_ceil(GROUP);
    let params = [m, k, n, k.div_ceil(BLOCK), across].map(|dim| dim as u32);
    let (name, text) = matmul_of(format);
    let kernel = Composed {
        name,
        source: text.into(),
        proof: Proof::Ends,
    };
    let groups = across * m.div_ceil(ROWS);
    recorder.dispatch_composed(&kernel, &params, &[a, words], &[c], groups)
}

/// Records a row-major `k × n` matrix that words become.
fn unpack(
    recorder: &mut Recorder<'_>,
    format: WeightFormat,
    words: &GpuBuffer,
    b: &GpuBuffer,
    [k, n]: [usize; 2],
) -> Result<()> {
    let (name, text) = unpack_of(format);
    let kernel = Composed {
        name,
        source: text.into(),
        proof: Proof::Ends,
    };
    let params = [k, n, k.div_ceil(BLOCK)].map(|dim| dim as u32);
    // An invocation a word; those past the last one have nothing to do, and there are scales.
    let groups = words.len().div_ceil(WORKGROUP);
    recorder.dispatch_composed(&kernel, &params, &[words], &[b], groups)
}

impl Gpu {
    /// Copies weights to buffers that stay on the GPU.
    pub(crate) async fn upload_weights(
        self: &Arc<Self>,
        weights: &BoundView<'_>,
    ) -> Result<GpuWeights> {
        let values = self.upload(&weights.contiguous()?).await?;
        Ok(GpuWeights::Values(values))
    }

    /// Copies quantized weights to buffers that stay on the GPU.
    pub(crate) async fn upload_quantized(
        self: &Arc<Self>,
        weights: &QuantizedWeights,
    ) -> Result<GpuWeights> {
        let words = self.upload(bytemuck::cast_slice(&weights.words)).await?;
        let tiles = self.weights_in_tiles(weights).await?;
        Ok(GpuWeights::Words(weights.format(), words, tiles))
    }

    /// Returns f16 weights in the layout of cooperative matrices, in addition to their words;
    /// `None` if matmuls do not run in f16.
    async fn weights_in_tiles(
        self: &Arc<Self>,
        weights: &QuantizedWeights,
    ) -> Result<Option<GpuBuffer>> {
        let [k, n] = weights.shape();
        let suits = f16_matmul::suits(self, [MANY_ROWS, k, n]);
        if !suits || weights.format() != WeightFormat::F16 || weights.words.is_empty() {
            return Ok(None);
        }
        let values = weights.dequantize()?;
        let (tiles, writing) = {
            let mut recorder = Recorder::new(self)?;
            let values = recorder.upload(&values)?;
            let tiles = f16_matmul::in_tiles(&mut recorder, &values, [k, n])?;
            (tiles, recorder.submit(&[])?)
        };
        writing.finished().await?;
        Ok(Some(tiles))
    }

    /// `C = A · W` of row-major matrices, `m × k` times `k × n`, whose lengths were validated.
    pub(crate) async fn multiply_by(
        self: &Arc<Self>,
        weights: &GpuWeights,
        a: &[f32],
        c: &mut [f32],
        shape: [usize; 3],
    ) -> Result<()> {
        if c.is_empty() {
            return Ok(());
        }
        let reading = {
            let mut recorder = Recorder::new(self)?;
            let a = recorder.upload(a)?;
            let output = recorder.allocate(c.len())?;
            weights.multiply(&mut recorder, &a, &output, shape)?;
            recorder.submit(&[output])?
        };
        copy_first(&reading.finished().await?, c)
    }
}

/// Records a matmul with weights of a cache, where neither is empty.
pub(super) fn multiply_cached(
    recorder: &mut Recorder<'_>,
    call: &CachedMatmul,
    a: &GpuBuffer,
    c: &GpuBuffer,
) -> Result<()> {
    let (what, owner) = ("weights", "back-end");
    let weights = call.weights::<OnOneThread<GpuWeights>>();
    let weights = weights.and_then(OnOneThread::get);
    let weights = weights.ok_or(Error::Foreign { what, owner })?;
    weights.multiply(recorder, a, c, call.shape())
}

/// Weights in a GPU's memory.
pub(crate) enum GpuWeights {
    Values(GpuBuffer),
    /// Quantized weights and, if matmuls run in f16, a second copy in f16 tiles.
    Words(WeightFormat, GpuBuffer, Option<GpuBuffer>),
}

impl GpuWeights {
    /// Returns the elements of weights that are not quantized.
    pub(crate) fn values(&self) -> Option<&GpuBuffer> {
        match self {
            Self::Values(values) => Some(values),
            Self::Words(..) => None,
        }
    }

    /// Returns the size in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let words = match self {
            Self::Values(values) => values.len(),
            Self::Words(_, words, tiles) => words.len() + tiles.as_ref().map_or(0, GpuBuffer::len),
        };
        words * size_of::<u32>()
    }

    /// Records a matmul. It uses the f16 tiles if they exist and there are enough rows.
    fn multiply(
        &self,
        recorder: &mut Recorder<'_>,
        a: &GpuBuffer,
        c: &GpuBuffer,
        [m, k, n]: [usize; 3],
    ) -> Result<()> {
        match self {
            Self::Values(b) => super::matmul::matmul(recorder, [a, b], c, [m, k, n]),
            Self::Words(_, _, Some(tiles))
                if m >= MANY_ROWS && f16_matmul::suits(recorder.gpu, [m, k, n]) =>
            {
                f16_matmul::by_tiles(recorder, [a, tiles], c, [m, k, n])
            }
            Self::Words(format, words, _) => {
                multiply_words(recorder, *format, [a, words], c, [m, k, n])
            }
        }
    }
}
