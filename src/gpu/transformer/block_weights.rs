//! Weights in blocks on their way to a GPU, and there.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::gpu::context::Gpu;
use crate::gpu::kernels;
use crate::gpu::recorder::{GpuBuffer, Recorder};
use crate::ops::shape::check_limit;
use crate::tensor::ggml::WeightType;

/// Weights that an invocation multiplies at a time: rows are a multiple of them.
const EIGHT: usize = 8;

/// The words of weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Words {
    Floats,
    Bytes,
    Nibbles,
}

impl Words {
    fn of(kind: WeightType) -> Self {
        match kind {
            _ if !kind.is_quantized() => Words::Floats,
            _ if kind.has_four_bits() => Words::Nibbles,
            _ => Words::Bytes,
        }
    }
}

/// A matrix of weights in a GPU's memory, in as many parts as buffers must have.
#[derive(Clone)]
pub(crate) struct BlockWeights {
    words: Words,
    pub(super) group_len: usize,
    pub(super) least: i8,
    rows: usize,
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
    /// `LimitExceeded` if a row is longer than a buffer or its length is no multiple of 8,
    /// `OutOfMemory`, `DeviceLost`.
    pub(crate) async fn new(
        gpu: &Arc<Gpu>,
        kind: WeightType,
        matrices: &[&[u8]],
        cols: usize,
    ) -> Result<Self> {
        check_limit("the rest of a row of weights divided by 8", cols % EIGHT, 0)?;
        let words = Words::of(kind);
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

    /// Returns the size in bytes that this number of weights has on a GPU.
    pub(crate) fn bytes_of(kind: WeightType, len: u64) -> u64 {
        let float = size_of::<f32>() as u64;
        let scales = 2 * float * (len / kind.group_len() as u64);
        match Words::of(kind) {
            Words::Floats => float * len,
            Words::Bytes => len + scales,
            Words::Nibbles => len / 2 + scales,
        }
    }

    /// Returns the name and the text of the kernel that multiplies by these weights.
    pub(super) fn kernel(&self, tiled: bool) -> (&'static str, &'static str) {
        match (self.words, tiled) {
            (Words::Floats, false) => ("multiply_floats", kernels::MULTIPLY_FLOATS),
            (Words::Bytes, false) => ("multiply_bytes", kernels::MULTIPLY_BYTES),
            (Words::Nibbles, false) => ("multiply_nibbles", kernels::MULTIPLY_NIBBLES),
            (Words::Floats, true) => ("multiply_floats_tiled", kernels::MULTIPLY_FLOATS_TILED),
            (Words::Bytes, true) => ("multiply_bytes_tiled", kernels::MULTIPLY_BYTES_TILED),
            (Words::Nibbles, true) => ("multiply_nibbles_tiled", kernels::MULTIPLY_NIBBLES_TILED),
        }
    }

    /// Returns the name of the kernel that multiplies one row.
    pub(crate) fn row_kernel(&self) -> &'static str {
        self.kernel(false).0
    }

    /// Returns the rows and the size in bytes of each part, which a kernel multiplies by on its own.
    pub(crate) fn parts(&self) -> impl Iterator<Item = (usize, usize)> {
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
