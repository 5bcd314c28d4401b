//! `B` in few bits, unpacked panel by panel to strips that stay in the cache.

use super::panel::{KC, MADE_COLS, Part, Strips};
use super::tile::VECTORS;
use super::{BLOCK_COLS, Matrix, multiply, pieces};
use crate::error::Result;
use crate::ops::shape::check_matrix;
use crate::simd::half::widen_finite;
use crate::simd::isa::{Isa, MAX_LANES, ROUNDING};
use crate::simd::threads::Cpu;
use crate::tensor::quantized::{BLOCK, GROUP, QuantizedWeights, WeightFormat, WordLayout};

/// The prefetch distance in words: they are read from memory front to back.
const AHEAD: usize = 512;

/// `C = A · B` of row-major matrices: `m × k` values of `A`, `m × n` of `C`.
///
/// # Errors
/// `LengthMismatch` of other lengths, `OutOfMemory` where there is no memory for panels.
pub(crate) fn multiply_words(
    cpu: Cpu,
    weights: &QuantizedWeights,
    a: &[f32],
    c: &mut [f32],
    m: usize,
) -> Result<()> {
    let [k, n] = weights.shape();
    // Checked again because the kernels' pointers rely on it.
    check_matrix("a", [m, k], a.len(), " (m × k)")?;
    check_matrix("c", [m, n], c.len(), " (m × n)")?;
    if c.is_empty() {
        return Ok(());
    }
    if k == 0 {
        c.fill(0.0);
        return Ok(());
    }
    let (shape, a) = ([m, k, n], Matrix::new(a, [m, k], false));
    let pieces = pieces(cpu, shape);
    // SAFETY: the lengths are those of the shapes.
    unsafe {
        match weights.format {
            WeightFormat::Q8_0 => multiply(cpu.isa, pieces, a, Words(weights, Q8), shape, c),
            WeightFormat::Q4_0 => multiply(cpu.isa, pieces, a, Words(weights, Q4), shape, c),
            WeightFormat::F32 | WeightFormat::F16 => {
                multiply(cpu.isa, pieces, a, Words(weights, F16), shape, c)
            }
        }
    }
}

/// The number format of words: unpacks from each word of a vector the number that starts at bit
/// `shift`.
trait Numbers: Copy {
    fn values<I: Isa>(self, isa: I, words: I::Bits, shift: u32) -> I::F32;

    /// Whether they are factors of their block's scale.
    const SCALED: bool = true;
}

/// Integers from 0 to 2²² as numbers, less a constant that is about as large at most: they are
/// the low bits of [`ROUNDING`] plus the integer.
#[inline(always)]
fn less<I: Isa>(isa: I, integers: I::Bits, constant: f32) -> I::F32 {
    let rounding = isa.splat_bits(ROUNDING.to_bits() as i32);
    let sum = isa.reinterpret(isa.add_bits(integers, rounding));
    isa.sub(sum, isa.splat(ROUNDING + constant))
}

#[derive(Clone, Copy)]
struct Q8;

impl Numbers for Q8 {
    #[inline(always)]
    fn values<I: Isa>(self, isa: I, words: I::Bits, shift: u32) -> I::F32 {
        // The sign bit flipped, a byte is 128 too much.
        let byte = isa.and_bits(isa.shr_bits(words, shift), isa.splat_bits(255));
        less(isa, isa.xor_bits(byte, isa.splat_bits(128)), 128.0)
    }
}

#[derive(Clone, Copy)]
struct Q4;

impl Numbers for Q4 {
    #[inline(always)]
    fn values<I: Isa>(self, isa: I, words: I::Bits, shift: u32) -> I::F32 {
        less(
            isa,
            isa.and_bits(isa.shr_bits(words, shift), isa.splat_bits(15)),
            8.0,
        )
    }
}

/// Finite f16 numbers.
#[derive(Clone, Copy)]
struct F16;

impl Numbers for F16 {
    const SCALED: bool = false;

    #[inline(always)]
    fn values<I: Isa>(self, isa: I, words: I::Bits, shift: u32) -> I::F32 {
        widen_finite(isa, isa.shl_bits(words, 16 - shift))
    }
}

/// Weights whose words hold numbers of this kind.
#[derive(Clone, Copy)]
struct Words<'a, N>(&'a QuantizedWeights, N);

// Panels start with a block and a group, and no strip is of two groups.
const _: () = assert!(KC.is_multiple_of(BLOCK) && MADE_COLS.is_multiple_of(GROUP));
const _: () =
    assert!(BLOCK_COLS.is_multiple_of(GROUP) && GROUP.is_multiple_of(VECTORS * MAX_LANES));

impl<N: Numbers> Strips for Words<'_, N> {
    #[inline(always)]
    fn strip<I: Isa>(self, isa: I, part: Part, wide: usize, to: &mut [f32]) {
        for (block, rows) in to.chunks_mut(wide * BLOCK).enumerate() {
            self.unpack(
                isa,
                part.p / BLOCK + block,
                part.col,
                [part.cols, wide],
                rows,
            );
        }
    }
}

impl<N: Numbers> Words<'_, N> {
    /// Unpacks `used` columns of a block, or as many of its rows as there are in `to`, to rows of `wide` values, in
    /// whole vectors. The values after the used columns are zero.
    #[inline(always)]
    fn unpack<I: Isa>(
        self,
        isa: I,
        block: usize,
        col: usize,
        [used, wide]: [usize; 2],
        to: &mut [f32],
    ) {
        let Words(weights, numbers) = self;
        let WordLayout { scales, per_word } = weights.layout;
        let bits = (BLOCK / per_word) as u32;
        let stride = weights.stride(col);
        let words = &weights.words[weights.place(block, 0, col)..];
        let depth = to.len() / wide;
        for row in 0..depth.div_ceil(per_word) {
            let first = row * per_word;
            for at in (0..wide).step_by(I::LANES) {
                let of = |row: usize| load(isa, &words[row * stride + at..row * stride + used]);
                let (words, scale) = (of(scales + row), of(0));
                for place in 0..per_word.min(depth - first) {
                    let mut values = numbers.values(isa, words, bits * place as u32);
                    if N::SCALED {
                        values = isa.mul(values, isa.reinterpret(scale));
                    }
                    isa.store(values, &mut to[(first + place) * wide + at..]);
                }
            }
        }
    }
}

/// The first words; where they are fewer than a vector holds, zeros follow.
#[inline(always)]
fn load<I: Isa>(isa: I, words: &[u32]) -> I::Bits {
    isa.prefetch(words.as_ptr().wrapping_add(AHEAD).cast());
    let mut first = [0; MAX_LANES];
    let from = if words.len() >= I::LANES {
        words.as_ptr()
    } else {
        first[..words.len()].copy_from_slice(words);
        first.as_ptr()
    };
    // SAFETY: there are as many words as a vector holds, of which a number has the size.
    isa.to_bits(unsafe { isa.load_ptr(from.cast()) })
}
