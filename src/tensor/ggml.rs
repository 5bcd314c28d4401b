//! ggml's block formats: the number of weights of a block, and their encoding.

mod k_quants;
mod simple;
// The layout of weights on GPUs; without one, only the bytes that it takes are reported.
#[cfg_attr(not(feature = "gpu"), allow(dead_code))]
mod words;

use crate::tensor::quantized::half::{bf16_to_f32, f16_to_f32};
pub(crate) use words::Words;
#[cfg(any(feature = "gpu", feature = "cuda"))]
pub(crate) use words::{PackedBlocks, pieces};

/// The largest number of weights in a block.
pub(crate) const MAX_BLOCK: usize = 256;

/// The type of a tensor in a GGUF file.
#[allow(non_camel_case_types)] // ggml's names.
#[allow(missing_docs)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WeightType {
    F32,
    F16,
    BF16,
    Q8_0,
    Q4_0,
    Q4_1,
    Q5_0,
    Q5_1,
    Q2_K,
    Q3_K,
    Q4_K,
    Q5_K,
    Q6_K,
    IQ4_NL,
    IQ4_XS,
}

use WeightType::{
    BF16, F16, F32, IQ4_NL, IQ4_XS, Q2_K, Q3_K, Q4_0, Q4_1, Q4_K, Q5_0, Q5_1, Q5_K, Q6_K, Q8_0,
};

/// Type, ggml's number of it, weights and bytes of a block.
const TYPES: [(WeightType, u32, usize, usize); 15] = [
    (F32, 0, 1, 4),
    (F16, 1, 1, 2),
    (Q4_0, 2, 32, 18),
    (Q4_1, 3, 32, 20),
    (Q5_0, 6, 32, 22),
    (Q5_1, 7, 32, 24),
    (Q8_0, 8, 32, 34),
    (Q2_K, 10, 256, 84),
    (Q3_K, 11, 256, 110),
    (Q4_K, 12, 256, 144),
    (Q5_K, 13, 256, 176),
    (Q6_K, 14, 256, 210),
    (IQ4_NL, 20, 32, 18),
    (IQ4_XS, 23, 256, 136),
    (BF16, 30, 1, 2),
];

/// Writes ggml's name of the type, such as `Q4_K`.
impl std::fmt::Display for WeightType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Debug::fmt(self, f)
    }
}

impl WeightType {
    /// Returns the type of a name, such as `Q4_K`.
    #[cfg(all(target_arch = "wasm32", feature = "js-llm"))]
    pub(crate) fn named(name: &str) -> Option<Self> {
        let mut types = TYPES.iter().map(|&(kind, ..)| kind);
        types.find(|kind| format!("{kind:?}") == name)
    }

    /// The type of ggml's number, if it is supported.
    pub fn from_id(id: u32) -> Option<Self> {
        let row = TYPES.iter().find(|row| row.1 == id)?;
        Some(row.0)
    }

    /// ggml's number of the type.
    pub fn id(self) -> u32 {
        self.row().1
    }

    /// The number of weights in a block.
    pub fn block_len(self) -> usize {
        self.row().2
    }

    /// The size of a block in bytes.
    pub fn block_bytes(self) -> usize {
        self.row().3
    }

    /// The size of a row of `cols` weights in bytes, or `None` if `cols` is not a number of whole
    /// blocks or the size overflows.
    pub fn row_bytes(self, cols: usize) -> Option<usize> {
        let whole = cols.is_multiple_of(self.block_len());
        let blocks = cols / self.block_len();
        whole.then(|| blocks.checked_mul(self.block_bytes()))?
    }

    fn row(self) -> &'static (WeightType, u32, usize, usize) {
        let found = TYPES.iter().find(|row| row.0 == self);
        found.unwrap_or(&TYPES[0])
    }

    /// Writes the weights of whole blocks, bit for bit as ggml's Python package computes them. `to` should have as many
    /// elements as the blocks have weights; the excess of either is ignored.
    pub fn dequantize(self, blocks: &[u8], to: &mut [f32]) {
        let blocks = blocks.chunks_exact(self.block_bytes());
        for (block, to) in blocks.zip(to.chunks_exact_mut(self.block_len())) {
            self.dequantize_block(block, to);
        }
    }

    fn dequantize_block(self, block: &[u8], to: &mut [f32]) {
        match self {
            F32 => to[0] = f32::from_le_bytes([block[0], block[1], block[2], block[3]]),
            F16 => to[0] = f16_to_f32(u16_at(block, 0)),
            BF16 => to[0] = bf16_to_f32(u16_at(block, 0)),
            _ => {
                let mut to = to;
                self.for_each_group(block, |group, integers| {
                    let weights = to.split_off_mut(..integers.len()).unwrap_or_default();
                    for (weight, &integer) in weights.iter_mut().zip(integers) {
                        *weight = group.weight(integer);
                    }
                });
            }
        }
    }

    /// Calls `each` with the groups of a block in order. Types of one weight a block have none.
    #[inline]
    pub(crate) fn for_each_group(self, block: &[u8], each: impl FnMut(Group, &[i8])) {
        match self {
            F32 | F16 | BF16 => {}
            Q8_0 => simple::q8_0(block, each),
            Q4_0 => simple::q4_0(block, each),
            Q4_1 => simple::q4_1(block, each),
            Q5_0 => simple::q5_0(block, each),
            Q5_1 => simple::q5_1(block, each),
            IQ4_NL => simple::iq4_nl(block, each),
            IQ4_XS => simple::iq4_xs(block, each),
            Q2_K => k_quants::q2_k(block, each),
            Q3_K => k_quants::q3_k(block, each),
            Q4_K => k_quants::q4_k(block, each),
            Q5_K => k_quants::q5_k(block, each),
            Q6_K => k_quants::q6_k(block, each),
        }
    }
}

/// The properties that the layout of weights on a GPU depends on.
#[cfg_attr(not(any(feature = "gpu", feature = "cuda")), allow(dead_code))]
impl WeightType {
    /// Whether weights are integers with a scale for each group of them.
    pub(crate) fn is_quantized(self) -> bool {
        !matches!(self, F32 | F16 | BF16)
    }

    /// The number of weights in a group: 16 or 32.
    pub(crate) fn group_len(self) -> usize {
        if matches!(self, Q2_K | Q3_K | Q6_K) {
            16
        } else {
            32
        }
    }

    /// Whether four bits hold the integers less [`WeightType::least`].
    pub(crate) fn has_four_bits(self) -> bool {
        matches!(self, Q4_0 | Q4_1 | Q4_K)
    }

    /// The least integer of a type of four bits.
    pub(crate) fn least(self) -> i8 {
        if self == Q4_0 { -8 } else { 0 }
    }
}

/// The scale and the offset that the weights of a group share.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Group {
    pub(crate) scale: f32,
    /// -0 if the format has none: adding -0 changes no weight, not even the sign of a zero.
    pub(crate) offset: f32,
}

impl Group {
    /// A group without an offset.
    fn scaled(scale: f32) -> Self {
        let offset = -0.0;
        Self { scale, offset }
    }

    /// The weight that an integer stands for.
    fn weight(self, integer: i8) -> f32 {
        self.scale * f32::from(integer) + self.offset
    }
}

fn u16_at(block: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([block[at], block[at + 1]])
}

/// Returns the f16 number at a byte.
fn f16_at(block: &[u8], at: usize) -> f32 {
    f16_to_f32(u16_at(block, at))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Random blocks of every type with the weights that the Python package `gguf` 0.17 computes:
    /// of each type its number, bytes of blocks, number of weights, the blocks and the weights.
    const FIXTURE: &[u8] = include_bytes!("../../tests/data/gguf-blocks.bin");

    fn word(bytes: &[u8]) -> usize {
        u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) as usize
    }

    #[test]
    fn every_type_dequantizes_bit_for_bit() {
        let (mut rest, mut types) = (FIXTURE, 0);
        while !rest.is_empty() {
            let [id, bytes, len] = [0, 4, 8].map(|at| word(&rest[at..]));
            let (blocks, after) = rest[12..].split_at(bytes);
            let (expected, after) = after.split_at(4 * len);
            let kind = WeightType::from_id(id as u32).expect("a known type");
            let mut weights = vec![f32::NAN; len];
            kind.dequantize(blocks, &mut weights);
            for (i, (weight, expected)) in weights.iter().zip(expected.chunks_exact(4)).enumerate()
            {
                assert_eq!(weight.to_bits() as usize, word(expected), "{kind:?} {i}");
            }
            (rest, types) = (after, types + 1);
        }
        assert_eq!(types, TYPES.len());
    }

    #[test]
    fn rows_of_partial_blocks_have_no_size() {
        assert_eq!(Q4_K.row_bytes(512), Some(288));
        assert_eq!(Q4_K.row_bytes(576), None);
        assert_eq!(F32.row_bytes(usize::MAX), None);
    }
}
