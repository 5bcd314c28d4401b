//! Blocks as words for a GPU: integers of few bits, and a scale and an offset for each group of weights.

use super::WeightType;
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

/// Divides matrices into whole rows of `row_bytes` bytes that are packed at a time.
pub(crate) fn pieces<'a>(
    matrices: &[&'a [u8]],
    row_bytes: usize,
) -> impl Iterator<Item = &'a [u8]> {
    let piece = (PIECE / row_bytes).max(1) * row_bytes;
    matrices.iter().flat_map(move |blocks| blocks.chunks(piece))
}

/// Weights in words.
#[derive(Debug, Default)]
pub(crate) struct PackedBlocks {
    pub(crate) words: Vec<u32>,
    /// The scale and the offset of each group, which floats do not have.
    pub(crate) scales: Vec<f32>,
}

/// The bytes of blocks that are packed before they are copied to a GPU. Packed weights may take more memory than the blocks.
const PIECE: usize = 16 << 20;

/// The bytes of blocks that a thread packs at a time.
const SHARE: usize = 64 << 10;

impl PackedBlocks {
    /// Packs the weights of blocks in place of the ones before, whose memory it reuses.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub(crate) fn replace(&mut self, kind: WeightType, blocks: &[u8]) -> Result<()> {
        let count = blocks.len() / kind.block_bytes();
        let [words, scales] = Words::lens(kind, (count * kind.block_len()) as u64);
        resize(&mut self.words, words as usize)?;
        resize(&mut self.scales, scales as usize)?;
        let share = SHARE / kind.block_bytes();
        let [words, scales] = Words::lens(kind, (share * kind.block_len()) as u64);
        let mut scales = self.scales.chunks_mut((scales as usize).max(1));
        let shares = blocks
            .chunks(share * kind.block_bytes())
            .zip(self.words.chunks_mut(words as usize))
            // Floats have no scales.
            .map(|(blocks, words)| (blocks, words, scales.next().unwrap_or_default()));
        for_each(shares, |(blocks, words, scales)| {
            pack(kind, blocks, words, scales);
        });
        Ok(())
    }
}

fn resize<T: Copy + Default>(values: &mut Vec<T>, len: usize) -> Result<()> {
    let reserved = values.try_reserve_exact(len.saturating_sub(values.len()));
    reserved.map_err(|_| Error::OutOfMemory {
        bytes: (len * size_of::<T>()) as u64,
    })?;
    values.resize(len, T::default());
    Ok(())
}

/// Calls `f` with every item, natively on all threads: packing takes most of the time in which a model's file is loaded.
#[cfg(all(relampago_threads, not(target_arch = "wasm32")))]
fn for_each<T: Send>(items: impl Iterator<Item = T>, f: impl Fn(T) + Sync + Send) {
    use rayon::iter::{IntoParallelIterator, ParallelIterator};
    items.collect::<Vec<T>>().into_par_iter().for_each(f);
}

#[cfg(not(all(relampago_threads, not(target_arch = "wasm32"))))]
fn for_each<T>(items: impl Iterator<Item = T>, f: impl Fn(T)) {
    items.for_each(f);
}

/// Packs the weights of blocks, which have as many words and scales.
fn pack(kind: WeightType, blocks: &[u8], words: &mut [u32], scales: &mut [f32]) {
    let (layout, least) = (Words::of(kind), kind.least());
    if layout == Words::Floats {
        const SOME: usize = 256;
        let some = blocks.chunks(SOME * kind.block_bytes());
        for (blocks, words) in some.zip(words.chunks_mut(SOME)) {
            let mut weights = [0.0f32; SOME];
            kind.dequantize(blocks, &mut weights);
            for (word, weight) in words.iter_mut().zip(weights) {
                *word = weight.to_bits();
            }
        }
        return;
    }
    let mut words = words.iter_mut();
    let mut put = |word: u32| {
        if let Some(to) = words.next() {
            *to = word;
        }
    };
    let mut scales = scales.as_chunks_mut().0.iter_mut();
    for block in blocks.chunks_exact(kind.block_bytes()) {
        kind.for_each_group(block, |group, integers| {
            if let Some(to) = scales.next() {
                *to = [group.scale, group.offset];
            }
            for eight in integers.as_chunks().0 {
                let bytes = eight.map(|integer: i8| integer.wrapping_sub(least) as u8);
                let bytes = u64::from_le_bytes(bytes);
                if layout == Words::Nibbles {
                    put(nibbles(bytes));
                } else {
                    // The first four bytes, then the others.
                    put(bytes as u32);
                    put((bytes >> 32) as u32);
                }
            }
        });
    }
}

/// Returns the lower four bits of eight bytes, without the bits between them.
fn nibbles(bytes: u64) -> u32 {
    let pairs = (bytes | bytes >> 4) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs | pairs >> 8) & 0x0000_ffff_0000_ffff;
    (fours | fours >> 16) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The weights of packed words, as kernels read them.
    fn unpacked(kind: WeightType, packed: &PackedBlocks) -> Vec<f32> {
        let signed = |word: u32| word.to_le_bytes().map(|byte| f32::from(byte as i8));
        let least = f32::from(kind.least());
        let integers: Vec<f32> = match Words::of(kind) {
            Words::Floats => {
                return packed
                    .words
                    .iter()
                    .map(|&word| f32::from_bits(word))
                    .collect();
            }
            Words::Bytes => packed.words.iter().flat_map(|&word| signed(word)).collect(),
            Words::Nibbles => {
                let nibble = |word: u32, i: u32| (word >> (4 * i) & 15) as f32 + least;
                let words = packed.words.iter();
                words
                    .flat_map(|&word| (0..8).map(move |i| nibble(word, i)))
                    .collect()
            }
        };
        let groups = integers
            .chunks_exact(kind.group_len())
            .zip(packed.scales.as_chunks().0);
        let weights = groups.flat_map(|(integers, &[scale, offset])| {
            integers.iter().map(move |integer| scale * integer + offset)
        });
        weights.collect()
    }

    #[test]
    fn packed_weights_are_those_of_the_blocks() {
        let mut random = 1u32;
        let mut byte = || {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (random >> 24) as u8
        };
        for kind in (0..64).filter_map(WeightType::from_id) {
            let mut packed = PackedBlocks::default();
            for count in [1, SHARE / kind.block_bytes() + 3, 0] {
                let blocks: Vec<u8> = (0..count * kind.block_bytes()).map(|_| byte()).collect();
                packed.replace(kind, &blocks).unwrap();
                let mut expected = vec![0.0; count * kind.block_len()];
                kind.dequantize(&blocks, &mut expected);
                let actual = unpacked(kind, &packed);
                assert_eq!(actual.len(), expected.len(), "{kind}");
                for (i, (actual, expected)) in actual.iter().zip(&expected).enumerate() {
                    let same = actual.to_bits() == expected.to_bits()
                        || (actual.is_nan() && expected.is_nan());
                    assert!(same, "{kind} {i}: {actual} is not {expected}");
                }
            }
        }
    }
}
