//! The steps of a language model's forward pass, recorded one after the other.

mod block_weights;

use std::sync::Arc;

use super::context::Gpu;
use super::kernels;
use super::pipelines::Composed;
use super::readback::Readback;
use super::recorder::{GpuBuffer, Recorder};
use crate::error::Result;
use crate::ops::shape::check_limit;
pub(crate) use block_weights::BlockWeights;

/// The most elements of a head: what an invocation of [`kernels::ATTEND`] has sums for.
const MAX_HEAD: usize = 256;

/// Rows from which on a product is computed in tiles.
const TILED_FROM: usize = 4;

/// Invocations of a workgroup, each of which has an element.
const WORKGROUP: usize = 64;

/// The elements of which a workgroup finds the largest, up to [`WORKGROUP`] workgroups.
const LARGEST_ELEMENTS: usize = 1024;

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
    /// Whether an element of the result holds two f16, one of each half of a head.
    pub(crate) packed: bool,
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
    /// Whether an element of the cache holds two f16, one of each half of a row.
    pub(crate) packed: bool,
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
        let kernel = weights.kernel(tiled);
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

    /// Writes the index of the first largest element, or of the first NaN, as the operation `argmax` does. Its kernel,
    /// which other operations fuse with, would bring all their texts into the package for language models.
    pub(crate) fn largest(&mut self, x: &GpuBuffer, index: &GpuBuffer) -> Result<()> {
        let groups = x.len().div_ceil(LARGEST_ELEMENTS).clamp(1, WORKGROUP);
        let pairs = self.0.allocate(2 * groups)?;
        let kernel = ("largest", kernels::LARGEST);
        let params = [x.len(), groups, 0].map(|value| value as u32);
        self.record(kernel, &params, &[x], &pairs, groups)?;
        self.record(kernel, &[groups as u32, 1, 1], &[&pairs], index, 1)
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
        check_head(heads.head_len, heads.packed)?;
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
        let kernel = if heads.packed {
            ("place_heads_f16", kernels::PLACE_HEADS_F16)
        } else {
            ("place_heads", kernels::PLACE_HEADS)
        };
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
        check_head(attention.head_len, attention.packed)?;
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
        let kernel = if attention.packed {
            ("attend_f16", kernels::ATTEND_F16)
        } else {
            ("attend", kernels::ATTEND)
        };
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

/// Checks whether attention works on heads of this length, of which each half is vectors of four elements where the
/// cache is packed.
fn check_head(len: usize, packed: bool) -> Result<()> {
    check_limit("the length of a head", len, MAX_HEAD)?;
    if packed {
        return check_limit("the rest of a head's length divided by 8", len % 8, 0);
    }
    check_limit("the rest of a head's length divided by 4", len % 4, 0)
}
