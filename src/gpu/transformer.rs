//! The steps of a language model's forward pass, recorded one after the other.

use std::sync::Arc;

use super::context::Gpu;
use super::kernels;
use super::pipelines::Composed;
use super::readback::Readback;
use super::recorder::{GpuBuffer, Recorder};
use crate::error::{Error, Result};
use crate::ops::shape::check_limit;
use crate::tensor::ggml::WeightType;

/// The most elements of a head: what an invocation of [`kernels::ATTEND`] has sums for.
const MAX_HEAD: usize = 256;

/// Weights that an invocation multiplies at a time: rows are a multiple of them.
const EIGHT: usize = 8;

/// Rows from which on a product is computed in tiles.
const TILED_FROM: usize = 4;

/// Invocations of a workgroup, each of which has an element.
const WORKGROUP: usize = 64;

/// The words of weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Words {
    Floats,
    Bytes,
    Nibbles,
}

/// A matrix of weights in a GPU's memory, in as many parts as buffers must have.
#[derive(Clone)]
pub(crate) struct BlockWeights {
    words: Words,
    group_len: usize,
    least: i8,
    rows: usize,
    cols: usize,
    parts: Vec<Part>,
}

/// Some rows of a matrix.
#[derive(Clone)]
struct Part {
    first: usize,
    rows: usize,
    words: GpuBuffer,
    scales: GpuBuffer,
}

impl std::fmt::Debug for BlockWeights {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { rows, cols, .. } = self;
        write!(f, "BlockWeights({:?}, {rows} × {cols})", self.words)
    }
}

impl BlockWeights {
    /// Copies the rows of matrices of `cols` columns, one after the other, from ggml's blocks to a GPU.
    ///
    /// # Errors
    /// `LimitExceeded` if a row is longer than a buffer or its length is no multiple of 8,
    /// `OutOfMemory`, `DeviceLost`.
    pub(crate) async fn new(
        gpu: &Arc<Gpu>,
        kind: WeightType,
        matrices: &[&[u8]],
        cols: usize,
    ) -> Result<Self> {
        check_limit("the rest of a row of weights divided by 8", cols % EIGHT, 0)?;
        let words = match kind {
            _ if !kind.is_quantized() => Words::Floats,
            _ if kind.has_four_bits() => Words::Nibbles,
            _ => Words::Bytes,
        };
        check_limit("the length of a row of weights", cols, gpu.max_len())?;
        let row_bytes = kind.row_bytes(cols).unwrap_or_default().max(1);
        let (mut parts, mut rows) = (Vec::new(), 0);
        for blocks in divided(matrices, gpu.max_len() / cols.max(1) * row_bytes) {
            let (mut packed, mut scales) = (Vec::new(), Vec::new());
            for blocks in &blocks {
                pack(kind, words, blocks, &mut packed, &mut scales)?;
            }
            let (words, scales, writing) = {
                let mut recorder = Recorder::new(gpu)?;
                let words = recorder.upload(bytemuck::cast_slice(&packed))?;
                let scales = if scales.is_empty() {
                    words.clone()
                } else {
                    recorder.upload(&scales)?
                };
                (words, scales, recorder.submit(&[])?)
            };
            writing.finished().await?;
            let part = Part {
                first: rows,
                rows: blocks.iter().map(|blocks| blocks.len()).sum::<usize>() / row_bytes,
                words,
                scales,
            };
            rows += part.rows;
            parts.push(part);
        }
        Ok(Self {
            words,
            group_len: kind.group_len(),
            least: kind.least(),
            rows,
            cols,
            parts,
        })
    }
}

/// Divides matrices among buffers of at most `most` bytes: all of them in one buffer if they fit,
/// otherwise some rows of one matrix in each.
fn divided<'a>(matrices: &[&'a [u8]], most: usize) -> Vec<Vec<&'a [u8]>> {
    if matrices.iter().map(|blocks| blocks.len()).sum::<usize>() <= most {
        return vec![matrices.to_vec()];
    }
    let parts = matrices.iter().flat_map(|blocks| blocks.chunks(most));
    parts.map(|blocks| vec![blocks]).collect()
}

/// Appends the words of blocks, and the scale and the offset of each group.
fn pack(
    kind: WeightType,
    words: Words,
    blocks: &[u8],
    packed: &mut Vec<u32>,
    scales: &mut Vec<f32>,
) -> Result<()> {
    let len = blocks.len() / kind.block_bytes() * kind.block_len();
    if words == Words::Floats {
        let mut weights = crate::alloc::try_zeros(len)?;
        kind.dequantize(blocks, &mut weights);
        packed.extend(weights.into_iter().map(f32::to_bits));
        return Ok(());
    }
    let per_word = if words == Words::Nibbles { 8 } else { 4 };
    let bits = 32 / per_word;
    let (least, mask) = (i32::from(kind.least()), (1 << bits) - 1);
    let reserved = packed.try_reserve_exact(len / per_word);
    reserved.map_err(|_| Error::OutOfMemory { bytes: len as u64 })?;
    // The first integer stands in the lowest bits.
    let word = |integers: &[i8]| {
        let integers = integers
            .iter()
            .rev()
            .map(|&integer| i32::from(integer) - least);
        integers.fold(0, |word, integer| word << bits | integer as u32 & mask)
    };
    for block in blocks.chunks_exact(kind.block_bytes()) {
        kind.for_each_group(block, |group, integers| {
            scales.extend([group.scale, group.offset]);
            packed.extend(integers.chunks_exact(per_word).map(word));
        });
    }
    Ok(())
}

/// How heads are normalised and rotated, and where they go.
pub(crate) struct Heads<'a> {
    pub(crate) tokens: usize,
    /// The number of heads.
    pub(crate) count: usize,
    /// The number of heads that are normalised and rotated, the first ones; the others are copied.
    pub(crate) turned: usize,
    /// The first head's column, and the columns that there are.
    pub(crate) column: usize,
    pub(crate) columns: usize,
    pub(crate) head_len: usize,
    /// The position of the first token.
    pub(crate) position: usize,
    /// The gain of their norm and its epsilon.
    pub(crate) gain: Option<(&'a GpuBuffer, f32)>,
    pub(crate) rotation: Option<HeadRotation<'a>>,
    /// The index of the first element, and the elements from a token to the next one and from a head
    /// to the next one.
    pub(crate) start: usize,
    pub(crate) token_stride: usize,
    pub(crate) head_stride: usize,
}

/// A rotation of heads.
pub(crate) struct HeadRotation<'a> {
    /// The cosine and the sine for each position and pair.
    pub(crate) angles: &'a GpuBuffer,
    pub(crate) pairs: usize,
    pub(crate) neighbours: bool,
}

/// Rows divided by their root mean square and multiplied by a gain.
#[derive(Clone, Copy)]
pub(crate) struct Norm<'a> {
    pub(crate) gain: &'a GpuBuffer,
    pub(crate) epsilon: f32,
    /// The rows of the input before the first one.
    pub(crate) skipped: usize,
}

/// A product of rows by a matrix.
#[derive(Clone, Copy)]
pub(crate) struct Product {
    pub(crate) rows: usize,
    /// Whether it is added to what the result's buffer holds.
    pub(crate) adds: bool,
    /// The factor of the product.
    pub(crate) scale: f32,
}

impl Product {
    /// The plain product of rows.
    pub(crate) fn of(rows: usize) -> Self {
        Self {
            rows,
            adds: false,
            scale: 1.0,
        }
    }
}

/// Attention of tokens to what is in the cache.
pub(crate) struct Attention {
    pub(crate) tokens: usize,
    pub(crate) heads: usize,
    pub(crate) kv_heads: usize,
    pub(crate) head_len: usize,
    /// The position of the first token.
    pub(crate) position: usize,
    /// The positions that the cache has room for.
    pub(crate) capacity: usize,
    pub(crate) window: Option<usize>,
    pub(crate) scale: f32,
}

/// Steps on their way to one submission. Buffers have at least as many elements as the steps read
/// and write.
pub(crate) struct TransformerPass<'g>(Recorder<'g>);

impl<'g> TransformerPass<'g> {
    pub(crate) fn new(gpu: &'g Arc<Gpu>) -> Result<Self> {
        Recorder::new(gpu).map(Self)
    }

    /// A buffer of `len` values, whose contents are arbitrary.
    pub(crate) fn allocate(&mut self, len: usize) -> Result<GpuBuffer> {
        self.0.allocate(len)
    }

    /// Copies values to a buffer before all steps.
    pub(crate) fn write(&mut self, values: &[f32], to: &GpuBuffer) -> Result<()> {
        self.0.send(values, &to.with_len(values.len()))
    }

    /// Copies values to a buffer of their own.
    pub(crate) fn upload(&mut self, values: &[f32]) -> Result<GpuBuffer> {
        self.0.upload(values)
    }

    /// Submits the steps, and returns the first `len` values of a buffer.
    pub(crate) fn submit(
        self,
        read: Option<(&GpuBuffer, usize)>,
    ) -> Result<impl Future<Output = Result<Vec<f32>>> + use<>> {
        let reads: Vec<_> = read
            .iter()
            .map(|(buffer, len)| buffer.with_len(*len))
            .collect();
        let submitted = self.0.submit(&reads)?;
        Ok(async move {
            let readbacks = submitted.finished().await?;
            readbacks.first().map_or(Ok(Vec::new()), Readback::values)
        })
    }

    fn record(
        &mut self,
        (name, source): (&'static str, &'static str),
        params: &[u32],
        inputs: &[&GpuBuffer],
        output: &GpuBuffer,
        workgroups: usize,
    ) -> Result<()> {
        let kernel = Composed {
            name,
            source: source.into(),
            inputs: inputs.len(),
        };
        self.0
            .dispatch_composed(&kernel, params, inputs, output, workgroups)
    }

    /// Normalises rows as long as the gain.
    pub(crate) fn norm(
        &mut self,
        x: &GpuBuffer,
        norm: Norm<'_>,
        y: &GpuBuffer,
        rows: usize,
    ) -> Result<()> {
        let Norm {
            gain,
            epsilon,
            skipped,
        } = norm;
        let params = [
            rows as u32,
            gain.len() as u32,
            epsilon.to_bits(),
            skipped as u32,
        ];
        self.record(
            ("norm_rows", kernels::NORM_ROWS),
            &params,
            &[x, gain],
            y,
            rows,
        )
    }

    /// Returns whether [`TransformerPass::multiply`] can normalise this number of rows itself.
    pub(crate) fn can_normalise(tokens: usize) -> bool {
        tokens < TILED_FROM
    }

    /// `Y = s · X · Wᵀ`, or `Y += s · X · Wᵀ`. Rows of `Y` have `stride` elements, of which the result
    /// begins at `column`. With a norm rows of `X` are normalised first.
    pub(crate) fn multiply(
        &mut self,
        x: &GpuBuffer,
        weights: &BlockWeights,
        (y, column, stride): (&GpuBuffer, usize, usize),
        product: Product,
        norm: Option<Norm<'_>>,
    ) -> Result<()> {
        let tokens = product.rows;
        let tiled = tokens >= TILED_FROM;
        let kernel = match (weights.words, tiled) {
            (Words::Floats, false) => ("multiply_floats", kernels::MULTIPLY_FLOATS),
            (Words::Bytes, false) => ("multiply_bytes", kernels::MULTIPLY_BYTES),
            (Words::Nibbles, false) => ("multiply_nibbles", kernels::MULTIPLY_NIBBLES),
            (Words::Floats, true) => ("multiply_floats_tiled", kernels::MULTIPLY_FLOATS_TILED),
            (Words::Bytes, true) => ("multiply_bytes_tiled", kernels::MULTIPLY_BYTES_TILED),
            (Words::Nibbles, true) => ("multiply_nibbles_tiled", kernels::MULTIPLY_NIBBLES_TILED),
        };
        for part in &weights.parts {
            let params = [
                tokens as u32,
                weights.cols as u32,
                part.rows as u32,
                (column + part.first) as u32,
                stride as u32,
                u32::from(product.adds),
                weights.group_len as u32,
                f32::from(weights.least).to_bits(),
                product.scale.to_bits(),
                u32::from(norm.is_some()),
                norm.map_or(0.0, |norm| norm.epsilon).to_bits(),
                norm.map_or(0, |norm| norm.skipped as u32),
            ];
            let workgroups = if tiled {
                tokens.div_ceil(32) * part.rows.div_ceil(32)
            } else {
                tokens * part.rows.div_ceil(4)
            };
            let inputs = if tiled {
                &[x, &part.words, &part.scales][..]
            } else {
                // Where there is no norm, another buffer stands for its gain that is not read.
                &[
                    x,
                    norm.map_or(x, |norm| norm.gain),
                    &part.words,
                    &part.scales,
                ]
            };
            self.record(kernel, &params, inputs, y, workgroups)?;
        }
        Ok(())
    }

    /// Adds a vector to `rows` rows of `y`, which have `columns` elements, from `column` on.
    pub(crate) fn add(
        &mut self,
        x: &GpuBuffer,
        (y, column, columns): (&GpuBuffer, usize, usize),
        rows: usize,
    ) -> Result<()> {
        let params = [rows, x.len(), column, columns].map(|value| value as u32);
        let workgroups = (rows * x.len()).div_ceil(WORKGROUP);
        self.record(
            ("add_rows", kernels::ADD_ROWS),
            &params,
            &[x],
            y,
            workgroups,
        )
    }

    /// Writes heads where attention reads them.
    pub(crate) fn place(&mut self, x: &GpuBuffer, heads: &Heads<'_>, y: &GpuBuffer) -> Result<()> {
        check_head(heads.head_len)?;
        let rotation = heads.rotation.as_ref();
        let params = [
            heads.tokens as u32,
            heads.count as u32,
            heads.turned as u32,
            heads.head_len as u32,
            heads.column as u32,
            heads.columns as u32,
            heads.position as u32,
            rotation.map_or(0, |rotation| rotation.pairs as u32),
            rotation.map_or(0, |rotation| u32::from(rotation.neighbours)),
            u32::from(heads.gain.is_some()),
            heads.gain.map_or(0.0, |(_, epsilon)| epsilon).to_bits(),
            heads.start as u32,
            heads.token_stride as u32,
            heads.head_stride as u32,
        ];
        // Where there is no gain or no rotation, another buffer stands for it that is not read.
        let gain = heads.gain.map_or(x, |(gain, _)| gain);
        let angles = rotation.map_or(x, |rotation| rotation.angles);
        let kernel = ("place_heads", kernels::PLACE_HEADS);
        self.record(
            kernel,
            &params,
            &[x, gain, angles],
            y,
            heads.tokens * heads.count,
        )
    }

    /// Attention of queries to the keys and then the values of `kv_heads · capacity` rows each.
    pub(crate) fn attend(
        &mut self,
        [queries, cached]: [&GpuBuffer; 2],
        attention: &Attention,
        mixed: &GpuBuffer,
    ) -> Result<()> {
        check_head(attention.head_len)?;
        let params = [
            attention.tokens as u32,
            attention.heads as u32,
            (attention.heads / attention.kv_heads) as u32,
            attention.head_len as u32,
            attention.position as u32,
            attention.capacity as u32,
            attention.window.unwrap_or(0) as u32,
            attention.scale.to_bits(),
        ];
        let kernel = ("attend", kernels::ATTEND);
        let workgroups = attention.tokens * attention.heads;
        self.record(kernel, &params, &[queries, cached], mixed, workgroups)
    }

    /// Rows of `hidden` elements: the activation of the first `hidden` elements of rows of `x` times
    /// the ones after them.
    pub(crate) fn gate(
        &mut self,
        x: &GpuBuffer,
        y: &GpuBuffer,
        [tokens, hidden]: [usize; 2],
        gelu: bool,
    ) -> Result<()> {
        let params = [(tokens * hidden) as u32, hidden as u32, u32::from(gelu)];
        let workgroups = (tokens * hidden).div_ceil(WORKGROUP);
        self.record(("gate", kernels::GATE), &params, &[x], y, workgroups)
    }
}

/// Checks whether attention works on heads of this length.
fn check_head(len: usize) -> Result<()> {
    check_limit("the length of a head", len, MAX_HEAD)?;
    check_limit("the rest of a head's length divided by 4", len % 4, 0)
}
