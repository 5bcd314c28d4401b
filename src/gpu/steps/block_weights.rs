//! Weights in blocks: their upload to a GPU, and their storage there.

use std::sync::Arc;

use crate::error::Result;
use crate::gpu::context::Gpu;
use crate::gpu::kernels;
use crate::gpu::pipelines::{Composed, Proof};
use crate::gpu::recorder::{GpuBuffer, Recorder, Submitted};
use crate::graph::steps::check_row;
use crate::ops::shape::check_limit;
use crate::tensor::ggml::{PackedBlocks, WeightType, Words, pieces};

/// The number of rows, and of columns, of a tile of f16, and of columns of its slabs.
pub(super) const F16_TILE: usize = 64;

/// The part of a product that a workgroup computes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Tile {
    /// Some elements of a row.
    Row,
    /// 32 rows by 32 columns.
    By32,
    /// 64 rows by 64 columns.
    By64,
    /// 64 rows by 64 columns, of f16.
    F16,
}

impl Tile {
    /// Returns the number of tiles that a product has; none for parts of rows.
    pub(super) fn count(self, [tokens, rows]: [usize; 2]) -> Option<usize> {
        let side = match self {
            Self::Row => return None,
            Self::By32 => 32,
            Self::By64 => 64,
            Self::F16 => F16_TILE,
        };
        Some(tokens.div_ceil(side) * rows.div_ceil(side))
    }
}

/// A matrix of weights in a GPU's memory, divided into parts that fit into buffers.
#[derive(Clone)]
pub(crate) struct BlockWeights {
    words: Words,
    pub(super) group_len: usize,
    pub(super) least: i8,
    pub(super) rows: usize,
    pub(super) cols: usize,
    pub(super) parts: Vec<Part>,
}

/// Some rows of a matrix.
#[derive(Clone)]
pub(super) struct Part {
    pub(super) first: usize,
    pub(super) rows: usize,
    pub(super) words: GpuBuffer,
    pub(super) scales: GpuBuffer,
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
    /// The errors of [`StepBackend::weights`](crate::graph::steps::StepBackend::weights).
    pub(super) async fn new(
        gpu: &Arc<Gpu>,
        kind: WeightType,
        matrices: &[&[u8]],
        cols: usize,
    ) -> Result<Self> {
        check_row(cols)?;
        check_limit("the length of a row of weights", cols, gpu.max_len())?;
        let row_bytes = kind.row_bytes(cols).unwrap_or_default().max(1);
        let (mut parts, mut rows) = (Vec::new(), 0);
        let mut packed = PackedBlocks::default();
        for blocks in divided(matrices, gpu.max_len() / cols.max(1) * row_bytes) {
            let part_rows = blocks.iter().map(|blocks| blocks.len()).sum::<usize>() / row_bytes;
            let lens = Words::lens(kind, (part_rows * cols) as u64);
            let (mut buffers, mut at) = (None, [0, 0]);
            let mut writing: Option<Submitted> = None;
            for blocks in pieces(&blocks, row_bytes) {
                // While the GPU copies the piece before.
                packed.replace(kind, blocks)?;
                if let Some(before) = writing.take() {
                    before.finished().await?;
                }
                writing = {
                    let mut recorder = Recorder::new(gpu)?;
                    let [words, scales] = match buffers.take() {
                        Some(begun) => begun,
                        None => allocate(&mut recorder, lens)?,
                    };
                    write(gpu, &words, &mut at[0], &packed.words);
                    write(gpu, &scales, &mut at[1], &packed.scales);
                    buffers = Some([words, scales]);
                    Some(recorder.submit(&[])?)
                };
            }
            if let Some(last) = writing {
                last.finished().await?;
            }
            let Some([words, scales]) = buffers else {
                continue;
            };
            parts.push(Part {
                first: rows,
                rows: part_rows,
                words,
                scales,
            });
            rows += part_rows;
        }
        Ok(Self {
            words: Words::of(kind),
            group_len: kind.group_len(),
            least: kind.least(),
            rows,
            cols,
            parts,
        })
    }

    /// Returns the kernel that multiplies by these weights.
    pub(super) fn kernel(&self, tile: Tile) -> Composed {
        let (name, text) = match (self.words, tile) {
            (Words::Floats, Tile::Row) => ("multiply_floats", kernels::MULTIPLY_FLOATS),
            (Words::Bytes, Tile::Row) => ("multiply_bytes", kernels::MULTIPLY_BYTES),
            (Words::Nibbles, Tile::Row) => ("multiply_nibbles", kernels::MULTIPLY_NIBBLES),
            (Words::Floats, Tile::By32) => {
                ("multiply_floats_tiled", kernels::MULTIPLY_FLOATS_TILED)
            }
            (Words::Bytes, Tile::By32) => ("multiply_bytes_tiled", kernels::MULTIPLY_BYTES_TILED),
            (Words::Nibbles, Tile::By32) => {
                ("multiply_nibbles_tiled", kernels::MULTIPLY_NIBBLES_TILED)
            }
            (Words::Floats, Tile::By64) => ("multiply_floats_wide", kernels::MULTIPLY_FLOATS_WIDE),
            (Words::Bytes, Tile::By64) => ("multiply_bytes_wide", kernels::MULTIPLY_BYTES_WIDE),
            (Words::Nibbles, Tile::By64) => {
                ("multiply_nibbles_wide", kernels::MULTIPLY_NIBBLES_WIDE)
            }
            (Words::Floats, Tile::F16) => ("multiply_floats_f16", kernels::MULTIPLY_FLOATS_F16),
            (Words::Bytes, Tile::F16) => ("multiply_bytes_f16", kernels::MULTIPLY_BYTES_F16),
            (Words::Nibbles, Tile::F16) => ("multiply_nibbles_f16", kernels::MULTIPLY_NIBBLES_F16),
        };
        Composed {
            name,
            source: text.into(),
            proof: match tile {
                Tile::F16 => Proof::StaysWithin,
                _ => Proof::Ends,
            },
        }
    }

    /// Returns the name and the text of the kernel that copies a row.
    pub(super) fn row_copy(&self) -> (&'static str, &'static str) {
        match self.words {
            Words::Floats => ("take_floats", kernels::TAKE_FLOATS),
            Words::Bytes => ("take_bytes", kernels::TAKE_BYTES),
            Words::Nibbles => ("take_nibbles", kernels::TAKE_NIBBLES),
        }
    }

    /// Returns the name and the text of the kernel that multiplies by the matrices of experts.
    pub(super) fn experts(&self) -> (&'static str, &'static str) {
        match self.words {
            Words::Floats => ("experts_floats", kernels::EXPERTS_FLOATS),
            Words::Bytes => ("experts_bytes", kernels::EXPERTS_BYTES),
            Words::Nibbles => ("experts_nibbles", kernels::EXPERTS_NIBBLES),
        }
    }

    /// Returns the rows and the size in bytes of each part, which a kernel multiplies by on its own.
    pub(super) fn parts(&self) -> impl Iterator<Item = (usize, usize)> {
        self.parts.iter().map(|part| {
            // Floats have no scales; their words stand for them.
            let scales = match self.words {
                Words::Floats => 0,
                _ => part.scales.len(),
            };
            let len = part.words.len() + scales;
            (part.rows, len * size_of::<f32>())
        })
    }
}

/// Allocates buffers for words and scales. Floats have no scales; their words stand for them.
fn allocate(recorder: &mut Recorder<'_>, lens: [u64; 2]) -> Result<[GpuBuffer; 2]> {
    // Buffers are shorter than the address space.
    let [words, scales] = lens.map(|len| len as usize);
    let words = recorder.allocate(words)?;
    let scales = match scales {
        0 => words.clone(),
        len => recorder.allocate(len)?,
    };
    Ok([words, scales])
}

/// Writes values to a buffer, behind `at` bytes.
fn write(gpu: &Gpu, buffer: &GpuBuffer, at: &mut u64, values: &[impl bytemuck::NoUninit]) {
    let bytes = bytemuck::cast_slice(values);
    if !bytes.is_empty() {
        gpu.queue.write_buffer(buffer.raw(), *at, bytes);
        *at += bytes.len() as u64;
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
