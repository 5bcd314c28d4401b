//! Rows of keys and values as words, in the types that [`CacheType`] describes.

use super::InstructionSet;
use super::half::widen;
use super::isa::{Isa, Kernel, dispatch};
use crate::tensor::CacheType;
use crate::tensor::cache_type::BLOCK_LEN;
use crate::tensor::quantized::half::{f16_to_f32, f32_to_f16};

/// The largest f16. Elements beyond it become it.
const MOST_F16: f32 = 65_504.0;

/// The largest integer of a block of `Q8_0`.
const MOST_INTEGER: f32 = 127.0;

/// Writes a row as [`CacheType::words`] words of 32 bits.
#[cfg_attr(not(feature = "llm-core"), allow(dead_code))]
pub(crate) fn pack_row(kind: CacheType, row: &[f32], words: &mut [f32]) {
    match kind {
        CacheType::F32 => words.copy_from_slice(row),
        CacheType::F16 => pack_halves(row, words),
        CacheType::Q8_0 => pack_integers(row, words),
    }
}

/// NaN stays NaN.
fn pack_halves(row: &[f32], words: &mut [f32]) {
    let half = |value: f32| u32::from(f32_to_f16(value.clamp(-MOST_F16, MOST_F16)));
    let (first, second) = row.split_at(row.len().div_ceil(2).min(row.len()));
    for (i, (word, &low)) in words.iter_mut().zip(first).enumerate() {
        let high = second.get(i).map_or(0, |&high| half(high));
        *word = f32::from_bits(half(low) | high << 16);
    }
}

/// A block with an element that is not finite gets a scale that is NaN.
fn pack_integers(row: &[f32], words: &mut [f32]) {
    words.fill(0.0);
    let (integers, scales) = words.split_at_mut(row.len().div_ceil(4));
    let words = integers.chunks_mut(BLOCK_LEN / 4);
    for ((block, words), scale) in row.chunks(BLOCK_LEN).zip(words).zip(scales) {
        let largest = block
            .iter()
            .fold(0.0, |largest: f32, x| largest.max(x.abs()));
        let is_finite = block.iter().all(|x| x.is_finite());
        *scale = if is_finite {
            largest / MOST_INTEGER
        } else {
            f32::NAN
        };
        let factor = if largest > 0.0 {
            MOST_INTEGER / largest
        } else {
            0.0
        };
        for (elements, word) in block.chunks(4).zip(words) {
            let bytes = [0, 1, 2, 3].map(|i| {
                let element = elements.get(i).map_or(0.0, |x| x * factor);
                libm::rintf(element) as i8 as u8
            });
            *word = f32::from_bits(u32::from_le_bytes(bytes));
        }
    }
}

/// Reads rows of `len` elements that [`pack_row`] wrote as words.
pub(super) fn unpack_rows(
    isa: InstructionSet,
    (kind, len): (CacheType, usize),
    words: &[f32],
    rows: &mut [f32],
) {
    match kind {
        CacheType::F32 => rows.copy_from_slice(words),
        CacheType::F16 => dispatch(isa, UnpackHalves { len, words, rows }),
        CacheType::Q8_0 => dispatch(isa, UnpackIntegers { len, words, rows }),
    }
}

struct UnpackIntegers<'a> {
    len: usize,
    words: &'a [f32],
    rows: &'a mut [f32],
}

impl Kernel for UnpackIntegers<'_> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let rows = self.rows.chunks_exact_mut(self.len);
        let words = self.words.chunks_exact(CacheType::Q8_0.words(self.len));
        for (row, words) in rows.zip(words) {
            let (integers, scales) = words.split_at(self.len.div_ceil(4));
            let words = integers.chunks(BLOCK_LEN / 4);
            for ((block, words), &scale) in row.chunks_mut(BLOCK_LEN).zip(words).zip(scales) {
                if block.len() < BLOCK_LEN {
                    for (elements, word) in block.chunks_mut(4).zip(words) {
                        for (x, byte) in elements.iter_mut().zip(word.to_bits().to_le_bytes()) {
                            *x = f32::from(byte as i8) * scale;
                        }
                    }
                    continue;
                }
                let scale = isa.splat(scale);
                for at in (0..BLOCK_LEN).step_by(I::LANES) {
                    // SAFETY: the words have `BLOCK_LEN` bytes, a multiple of `LANES`.
                    let integers = unsafe {
                        let bytes: *const u8 = words.as_ptr().cast();
                        isa.load_signed_bytes(bytes.add(at))
                    };
                    let elements = isa.mul(isa.bits_to_float(integers), scale);
                    isa.store(elements, &mut block[at..]);
                }
            }
        }
    }
}

struct UnpackHalves<'a> {
    len: usize,
    words: &'a [f32],
    rows: &'a mut [f32],
}

impl Kernel for UnpackHalves<'_> {
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
