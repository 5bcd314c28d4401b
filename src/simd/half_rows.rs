//! Rows of f16, two in a word: that of an element of the first half of a row and that of the one at the same place of
//! the second half, so that a vector of words gives two vectors of successive elements.

use super::InstructionSet;
use super::isa::{Isa, Kernel, constant, constant_bits, dispatch};
use crate::tensor::quantized::half::{f16_to_f32, f32_to_f16};

/// The largest f16. Elements beyond it become it.
const MOST: f32 = 65_504.0;

/// Writes a row as words, of which there are half as many, rounded up. NaN stays NaN.
#[cfg_attr(not(feature = "llm-core"), allow(dead_code))]
pub(crate) fn pack_row(row: &[f32], words: &mut [f32]) {
    let half = |value: f32| u32::from(f32_to_f16(value.clamp(-MOST, MOST)));
    let (first, second) = row.split_at(row.len().div_ceil(2).min(row.len()));
    for (i, (word, &low)) in words.iter_mut().zip(first).enumerate() {
        let high = second.get(i).map_or(0, |&high| half(high));
        *word = f32::from_bits(half(low) | high << 16);
    }
}

/// Reads rows of `len` elements that [`pack_row`] wrote.
pub(super) fn unpack_rows(isa: InstructionSet, len: usize, words: &[f32], rows: &mut [f32]) {
    dispatch(isa, Unpack { len, words, rows });
}

struct Unpack<'a> {
    len: usize,
    words: &'a [f32],
    rows: &'a mut [f32],
}

impl Kernel for Unpack<'_> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let half = self.len.div_ceil(2);
        let rows = self.rows.chunks_exact_mut(self.len);
        for (row, words) in rows.zip(self.words.chunks_exact(half)) {
            let (first, second) = row.split_at_mut(half);
            let whole = second.len() / I::LANES * I::LANES;
            for at in (0..whole).step_by(I::LANES) {
                let both = isa.to_bits(isa.load(&words[at..]));
                isa.store(widen(isa, isa.shl_bits(both, 16)), &mut first[at..]);
                isa.store(widen(isa, both), &mut second[at..]);
            }
            for (word, first) in words.iter().zip(&mut *first).skip(whole) {
                *first = f16_to_f32(word.to_bits() as u16);
            }
            for (word, second) in words.iter().zip(second).skip(whole) {
                *second = f16_to_f32((word.to_bits() >> 16) as u16);
            }
        }
    }
}

/// The numbers of the f16 in the upper halves of integers.
#[inline(always)]
pub(super) fn widen<I: Isa>(isa: I, bits: I::Bits) -> I::F32 {
    /// 2¹¹², which makes up for the difference of the exponents' biases.
    const REBIAS: f32 = f32::from_bits((127 + 112) << 23);
    /// The exclusive or of the exponents of 2¹⁶ and of infinity.
    const TO_INFINITY: i32 = (0xff ^ (127 + 16)) << 23;
    let digits = isa.and_bits(isa.shr_bits(bits, 3), constant_bits!(isa, 0x0fff_e000));
    let finite = isa.mul(isa.reinterpret(digits), constant!(isa, REBIAS));
    let special = isa.xor_bits(isa.to_bits(finite), constant_bits!(isa, TO_INFINITY));
    let beyond = isa.ge(finite, constant!(isa, 65_536.0));
    let magnitude = isa.select(beyond, isa.reinterpret(special), finite);
    isa.with_sign(magnitude, isa.reinterpret(bits))
}
