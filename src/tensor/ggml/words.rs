//! Blocks as words for a GPU: integers of few bits, and a scale and an offset for each group of weights.

use super::WeightType;
use crate::alloc::try_zeros;
use crate::error::{Error, Result};

/// The words of a type of weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Words {
    /// An `f32` to a word.
    Floats,
    /// Four signed bytes to a word, the first one in the lowest bits.
    Bytes,
    /// Eight unsigned integers of four bits to a word, the first one in the lowest bits.
    Nibbles,
}

impl Words {
    pub(crate) fn of(kind: WeightType) -> Self {
        match kind {
            _ if !kind.is_quantized() => Words::Floats,
            _ if kind.has_four_bits() => Words::Nibbles,
            _ => Words::Bytes,
        }
    }

    /// Returns the numbers of words and of scales that this number of weights has.
    pub(crate) fn lens(kind: WeightType, len: u64) -> [u64; 2] {
        let scales = 2 * (len / kind.group_len() as u64);
        match Words::of(kind) {
            Words::Floats => [len, 0],
            Words::Bytes => [len / 4, scales],
            Words::Nibbles => [len / 8, scales],
        }
    }

    /// Returns the size in bytes that this number of weights has with their scales.
    pub(crate) fn bytes_of(kind: WeightType, len: u64) -> u64 {
        let [words, scales] = Self::lens(kind, len);
        size_of::<f32>() as u64 * (words + scales)
    }
}

/// Weights in words.
#[derive(Debug, Default)]
pub(crate) struct PackedBlocks {
    pub(crate) words: Vec<u32>,
    /// The scale and the offset of each group, which floats do not have.
    pub(crate) scales: Vec<f32>,
}

impl PackedBlocks {
    /// Packs the weights of blocks.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub(crate) fn of(kind: WeightType, blocks: &[u8]) -> Result<Self> {
        let mut packed = Self::default();
        packed.push(kind, blocks)?;
        Ok(packed)
    }

    /// Appends the weights of blocks.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub(crate) fn push(&mut self, kind: WeightType, blocks: &[u8]) -> Result<()> {
        let words = Words::of(kind);
        let len = blocks.len() / kind.block_bytes() * kind.block_len();
        if words == Words::Floats {
            let mut weights = try_zeros(len)?;
            kind.dequantize(blocks, &mut weights);
            self.words.extend(weights.into_iter().map(f32::to_bits));
            return Ok(());
        }
        let per_word = if words == Words::Nibbles { 8 } else { 4 };
        let bits = 32 / per_word;
        let (least, mask) = (i32::from(kind.least()), (1 << bits) - 1);
        let reserved = self.words.try_reserve_exact(len / per_word);
        let scales = 2 * (len / kind.group_len());
        let reserved = reserved.and_then(|()| self.scales.try_reserve_exact(scales));
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
                self.scales.extend([group.scale, group.offset]);
                self.words.extend(integers.chunks_exact(per_word).map(word));
            });
        }
        Ok(())
    }
}
