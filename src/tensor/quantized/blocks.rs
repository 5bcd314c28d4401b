//! Weights in the block format of ggml's files: `n` rows of blocks of 32 weights, each block with
//! an f16 scale before the numbers.

use super::{BLOCK, QuantizedWeights, WeightFormat};
use crate::error::{Error, Result};
use crate::ops::shape::{check_len, volume};

/// The bits of infinity in f16.
const INFINITE: u16 = 0x7c00;

impl QuantizedWeights {
    /// Creates weights from blocks of ggml's `Q8_0` (34 bytes: a scale and 32 signed bytes) or
    /// `Q4_0` (18 bytes: a scale and 16 bytes, low halves first). The blocks hold a transposed
    /// matrix, `n` rows of `k` weights, as in model files.
    ///
    /// # Errors
    /// `InvalidArgument` for another format, for a `k` that is not a multiple of 32 and for a scale
    /// that is not finite, `LengthMismatch`, `ShapeOverflow`, `OutOfMemory`.
    pub fn from_blocks(blocks: &[u8], k: usize, n: usize, format: WeightFormat) -> Result<Self> {
        let bytes = match format {
            WeightFormat::Q8_0 => 2 + BLOCK,
            WeightFormat::Q4_0 => 2 + BLOCK / 2,
            _ => {
                return Err(Error::invalid(
                    "format",
                    format!("{format:?}"),
                    "Q8_0 or Q4_0",
                ));
            }
        };
        if !k.is_multiple_of(BLOCK) {
            return Err(Error::invalid("k", k.to_string(), "a multiple of 32"));
        }
        let a_column = k / BLOCK;
        // A column alone may have more bytes than can be counted.
        let len = volume("blocks", [n, a_column, bytes])?;
        check_len("blocks", len, blocks.len())?;
        let mut weights = Self::zeros(k, n, format)?;
        for (index, block) in blocks.chunks_exact(bytes).enumerate() {
            let (scale, numbers) = (u16::from_le_bytes([block[0], block[1]]), &block[2..]);
            check_scale(scale, index)?;
            let bits = |i: usize| match format {
                WeightFormat::Q8_0 => numbers[i].into(),
                _ if i < BLOCK / 2 => (numbers[i] & 15).into(),
                _ => (numbers[i - BLOCK / 2] >> 4).into(),
            };
            weights.store(index % a_column, index / a_column, scale, bits);
        }
        Ok(weights)
    }
}

/// Refuses an infinite scale: times zero it would be NaN on one back-end and not on another.
fn check_scale(scale: u16, block: usize) -> Result<()> {
    // Binary16 has the largest exponent for infinities and NaN alone.
    if scale & INFINITE != INFINITE {
        return Ok(());
    }
    let value = format!("{scale:#06x} for the scale of block {block}");
    Err(Error::invalid("blocks", value, "of finite scales"))
}
