//! The block formats: the positions of a weight's bits, and their meaning.
//!
//! Source of the layouts: ggml's `block_*` structures; of the arithmetic and its order: its
//! `dequantize_row_*`.

use crate::build::Builder;
use crate::inst::{Op, Reg};
use crate::types::PtxType::{F16, F32, S8, S32, U8};

/// One of ggml's block formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(
    all(target_arch = "wasm32", feature = "js"),
    derive(serde::Deserialize, tsify::Tsify),
    serde(rename_all = "snake_case")
)]
#[non_exhaustive]
pub enum QuantFormat {
    /// 32 weights of 4 bits, with an f16 scale: `d · (q − 8)`.
    Q4_0,
    /// 32 weights of 8 bits, with an f16 scale: `d · q`.
    Q8_0,
    /// 256 weights of 4 bits; each 32 have a scale and a minimum of 6 bits.
    Q4K,
    /// 256 weights of 5 bits; each 32 have a scale and a minimum of 6 bits.
    Q5K,
    /// 256 weights of 6 bits; each 16 have a scale of 8 bits.
    Q6K,
}

impl QuantFormat {
    /// All formats.
    pub const ALL: [QuantFormat; 5] = [
        QuantFormat::Q4_0,
        QuantFormat::Q8_0,
        QuantFormat::Q4K,
        QuantFormat::Q5K,
        QuantFormat::Q6K,
    ];

    /// Returns the number of weights and the size in bytes of a block.
    pub fn block(self) -> (u32, u32) {
        match self {
            QuantFormat::Q4_0 => (32, 18),
            QuantFormat::Q8_0 => (32, 34),
            QuantFormat::Q4K => (256, 144),
            QuantFormat::Q5K => (256, 176),
            QuantFormat::Q6K => (256, 210),
        }
    }

    /// Returns the format's name, as used in the names of kernels.
    pub fn name(self) -> &'static str {
        match self {
            QuantFormat::Q4_0 => "q4_0",
            QuantFormat::Q8_0 => "q8_0",
            QuantFormat::Q4K => "q4_k",
            QuantFormat::Q5K => "q5_k",
            QuantFormat::Q6K => "q6_k",
        }
    }

    /// Weight `i` of the block at `block`.
    pub(super) fn dequantize(self, k: &mut Builder, block: Reg, i: Reg) -> Reg {
        match self {
            QuantFormat::Q4_0 => q4_0(k, block, i),
            QuantFormat::Q8_0 => q8_0(k, block, i),
            QuantFormat::Q4K => q4_k(k, block, i),
            QuantFormat::Q5K => q5_k(k, block, i),
            QuantFormat::Q6K => q6_k(k, block, i),
        }
    }
}

/// An f16 of the block as f32.
pub(super) fn half(k: &mut Builder, block: Reg, at: i32) -> Reg {
    let bits = k.ld_global(F16, block, at);
    k.convert(Op::CvtF32F16, F32, &[bits.into()])
}

/// The byte at `at + index` of the block.
fn byte(k: &mut Builder, block: Reg, index: Reg, at: i32) -> Reg {
    let address = k.at(block, index, 1);
    k.ld_global(U8, address, at)
}

/// Bits `from .. from + 4` of a byte.
fn nibble(k: &mut Builder, byte: Reg, from: Reg) -> Reg {
    let bits = k.shr(byte, from);
    k.and(bits, 15)
}

fn from_unsigned(k: &mut Builder, value: Reg) -> Reg {
    k.convert(Op::CvtF32U32, F32, &[value.into()])
}

fn from_signed(k: &mut Builder, value: Reg) -> Reg {
    k.convert(Op::CvtF32S32, F32, &[value.into()])
}

/// `value − by` as a signed number.
fn centred(k: &mut Builder, value: Reg, by: u32) -> Reg {
    let value = k.op(Op::Sub, S32, S32, &[value.into(), by.into()]);
    from_signed(k, value)
}

/// The scale, then 16 bytes: their low halves are the first 16 weights, their high halves the other 16.
fn q4_0(k: &mut Builder, block: Reg, i: Reg) -> Reg {
    let d = half(k, block, 0);
    let index = k.and(i, 15);
    let bits = byte(k, block, index, 2);
    let upper = k.shr(i, 4);
    let from = k.shl(upper, 2);
    let q = nibble(k, bits, from);
    let q = centred(k, q, 8);
    k.mul(q, d)
}

/// The scale; then the weights.
fn q8_0(k: &mut Builder, block: Reg, i: Reg) -> Reg {
    let d = half(k, block, 0);
    let address = k.at(block, i, 1);
    let q = k.ld_global(S8, address, 2);
    let q = from_signed(k, q);
    k.mul(q, d)
}

/// The scale and the minimum of group `j` of 32 weights: six bits each of the twelve bytes from 4
/// on. The first four groups have bytes of their own; those of the others are in the high bits.
pub(super) fn scale_and_min(k: &mut Builder, block: Reg, j: Reg) -> [Reg; 2] {
    let low = k.and(j, 3);
    let first = byte(k, block, low, 4);
    let second = byte(k, block, low, 8);
    let third = byte(k, block, low, 12);
    let plain = k.lt(j, 4);
    let mut six = |plain_bits: Reg, high: Reg, from: u32| {
        let plain_bits = k.and(plain_bits, 63);
        let low = k.shr(third, from);
        let low = k.and(low, 15);
        let high = k.shr(high, 6);
        let high = k.shl(high, 4);
        let split = k.or(low, high);
        k.select(plain, plain_bits, split)
    };
    [six(first, first, 0), six(second, second, 4)]
}

/// `d · scale · q − dmin · min`, with ggml's rounding after each product.
fn scaled(k: &mut Builder, block: Reg, j: Reg, q: Reg) -> Reg {
    let (d, dmin) = (half(k, block, 0), half(k, block, 2));
    let [scale, min] = scale_and_min(k, block, j);
    let (scale, min) = (from_unsigned(k, scale), from_unsigned(k, min));
    let (d, m) = (k.mul(d, scale), k.mul(dmin, min));
    let q = from_unsigned(k, q);
    let product = k.mul(d, q);
    k.sub(product, m)
}

/// Bits 4 of weight `i`, whose group is `j`: groups of 32 share bytes in pairs, the first in the
/// low halves.
fn q4_of_pair(k: &mut Builder, block: Reg, i: Reg, j: Reg, at: i32) -> Reg {
    let pair = k.shr(j, 1);
    let in_group = k.and(i, 31);
    let index = k.fma(pair, 32, in_group);
    let bits = byte(k, block, index, at);
    let odd = k.and(j, 1);
    let from = k.shl(odd, 2);
    nibble(k, bits, from)
}

fn q4_k(k: &mut Builder, block: Reg, i: Reg) -> Reg {
    let j = k.shr(i, 5);
    let q = q4_of_pair(k, block, i, j, 16);
    scaled(k, block, j, q)
}

/// As `Q4_K`, with a fifth bit: bit `j` of byte `i % 32` of the 32 bytes from 16 on.
fn q5_k(k: &mut Builder, block: Reg, i: Reg) -> Reg {
    let j = k.shr(i, 5);
    let low = q4_of_pair(k, block, i, j, 48);
    let in_group = k.and(i, 31);
    let high = byte(k, block, in_group, 16);
    let high = k.shr(high, j);
    let high = k.and(high, 1);
    let q = k.fma(high, 16, low);
    scaled(k, block, j, q)
}

/// Per 128 weights: 64 bytes of four low bits, two weights 64 apart to a byte; 32 bytes of two
/// high bits, four weights 32 apart to a byte; 8 scales. All low bits come first, then all high
/// ones, all scales, and the block's scale.
fn q6_k(k: &mut Builder, block: Reg, i: Reg) -> Reg {
    let half_block = k.shr(i, 7);
    let in_half = k.and(i, 127);
    let in_64 = k.and(in_half, 63);
    let index = k.fma(half_block, 64, in_64);
    let low = byte(k, block, index, 0);
    let from = k.shr(in_half, 6);
    let from = k.shl(from, 2);
    let low = nibble(k, low, from);
    let in_32 = k.and(in_half, 31);
    let index = k.fma(half_block, 32, in_32);
    let high = byte(k, block, index, 128);
    let from = k.shr(in_half, 5);
    let from = k.shl(from, 1);
    let high = k.shr(high, from);
    let high = k.and(high, 3);
    let q = k.fma(high, 16, low);
    let q = centred(k, q, 32);
    let index = k.shr(i, 4);
    let address = k.at(block, index, 1);
    let scale = k.ld_global(S8, address, 192);
    let scale = from_signed(k, scale);
    let d = half(k, block, 208);
    let d = k.mul(d, scale);
    k.mul(d, q)
}
