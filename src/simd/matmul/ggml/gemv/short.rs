//! Rows of blocks of 32 weights, four rows at a time.

use super::prepare::elements_at;
use super::{AHEAD, Gemv, Prepared, checked};
use crate::simd::half::widen;
use crate::simd::isa::{Isa, Kernel, constant_bits};
use crate::simd::reduce::sum_lanes;

/// The number of weights of a block.
const GROUP: usize = 32;

/// The number of rows computed together: they share the loads of `x`, and their scales form one vector.
pub(in super::super) const ROWS: usize = 4;

/// The factors of a block: 32 rounded elements of the vector.
#[derive(Clone, Copy)]
pub(super) struct Operand<'a> {
    pairs: &'a [f32; GROUP / 2],
    /// [`BITS`], which the compiler does not know: engines make constants of several instructions.
    bits: &'a [i32; 8],
}

/// A type whose blocks are one group each.
pub(super) trait ShortBlock<const BYTES: usize>: Copy {
    /// Whether the f16 behind the scale is a minimum.
    const MINIMA: bool = false;

    /// Returns the sums of a block's integers times `x`, as pairs.
    fn dot<I: Isa>(isa: I, block: &[u8; BYTES], x: Operand<'_>) -> I::Bits;
}

/// Rows of blocks of one group.
pub(super) struct ShortRows<'a, B, const BYTES: usize>(pub(super) Gemv<'a>, pub(super) B);

impl<B: ShortBlock<BYTES>, const BYTES: usize> Kernel for ShortRows<'_, B, BYTES> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let Gemv {
            weights,
            first,
            x,
            y,
        } = self.0;
        for (i, y) in y.chunks_mut(ROWS).enumerate() {
            let row = |i: usize| first + i;
            // The last row takes the place of those that are missing.
            let rows = std::array::from_fn(|r| {
                let (blocks, _) = weights.row(row(ROWS * i + r.min(y.len() - 1))).as_chunks();
                blocks
            });
            let sums = products::<I, B, BYTES>(isa, rows, x);
            for (r, (y, sum)) in y.iter_mut().zip(sums).enumerate() {
                *y = checked(isa, weights, row(ROWS * i + r), x.x, sum);
            }
        }
    }
}

/// The products of four rows.
#[inline(always)]
fn products<I: Isa, B: ShortBlock<BYTES>, const BYTES: usize>(
    isa: I,
    [a, b, c, d]: [&[[u8; BYTES]]; ROWS],
    x: Prepared<'_>,
) -> [f32; ROWS] {
    let mut sums = [isa.splat(0.0); ROWS];
    // Eight lanes have four of zeros.
    let (mut heads, mut scales) = ([0.0; 2 * ROWS], [0.0; 2 * ROWS]);
    let mut offsets = [isa.splat(0.0); ROWS];
    let (xs, _) = x.mixed.as_chunks();
    let bits = std::hint::black_box(&BITS);
    let groups = xs.iter().zip(x.scales).zip(x.sums);
    let blocks = a.iter().zip(b).zip(c).zip(d);
    for ((((a, b), c), d), ((pairs, x_scale), x_sum)) in blocks.zip(groups) {
        let blocks = [a, b, c, d];
        for (block, head) in blocks.into_iter().zip(&mut heads) {
            isa.prefetch(block.as_ptr().wrapping_add(AHEAD).cast());
            let bytes = [block[0], block[1], block[2], block[3]];
            *head = f32::from_bits(u32::from_le_bytes(bytes));
        }
        let vectors = (0..ROWS).step_by(I::LANES).zip(&mut offsets);
        for (at, offset) in vectors {
            let heads = isa.to_bits(isa.load(&heads[at..]));
            let scale = widen(isa, isa.shl_bits(heads, 16));
            let weight = if B::MINIMA { widen(isa, heads) } else { scale };
            *offset = isa.mul_add(weight, isa.splat(*x_sum), *offset);
            isa.store(isa.mul(scale, isa.splat(*x_scale)), &mut scales[at..]);
        }
        for ((block, sum), &scale) in blocks.into_iter().zip(&mut sums).zip(&scales) {
            let dot = isa.bits_to_float(B::dot(isa, block, Operand { pairs, bits }));
            *sum = isa.mul_add(dot, isa.splat(scale), *sum);
        }
    }
    for (at, &offset) in (0..ROWS).step_by(I::LANES).zip(&offsets) {
        isa.store(offset, &mut scales[at..]);
    }
    let mut totals = [0.0; ROWS];
    for ((total, &sum), offset) in totals.iter_mut().zip(&sums).zip(&scales) {
        *total = sum_lanes(isa, sum) + offset;
    }
    totals
}

/// `2 · LANES` bytes of a block, as pairs.
#[inline(always)]
pub(super) fn pairs_at<I: Isa, const BYTES: usize>(
    isa: I,
    bytes: &[u8; BYTES],
    at: usize,
) -> I::Bits {
    assert!(at + 2 * I::LANES <= BYTES);
    // SAFETY: the block has these bytes.
    unsafe { isa.load_pairs(bytes.as_ptr().add(at)) }
}

/// The low and the high halves of bytes.
#[inline(always)]
pub(super) fn nibbles<I: Isa>(isa: I, bytes: I::Bits) -> [I::Bits; 2] {
    let low = isa.and_bits(bytes, constant_bits!(isa, 0x000f_000f));
    [low, isa.shr_pairs(bytes, 4)]
}

#[derive(Clone, Copy)]
pub(super) struct Q80;

impl ShortBlock<34> for Q80 {
    #[inline(always)]
    fn dot<I: Isa>(isa: I, block: &[u8; 34], x: Operand<'_>) -> I::Bits {
        let mut sum = isa.splat_bits(0);
        for at in (0..GROUP).step_by(2 * I::LANES) {
            // SAFETY: 32 bytes follow the scale, of which `2 · LANES` divide the number.
            let q = unsafe { isa.load_signed_pairs(block.as_ptr().add(2 + at)) };
            sum = isa.dot_pairs(q, elements_at(isa, x.pairs, at), sum);
        }
        sum
    }
}

/// The sums of a block whose last 16 bytes are nibbles, to which `high` adds. It is a function that is
/// always inlined: closures are not.
#[inline(always)]
fn dot_nibbles<I: Isa, const BYTES: usize>(
    isa: I,
    block: &[u8; BYTES],
    x: Operand<'_>,
    high: impl Fn(I, &[u8; BYTES], Operand<'_>, I::Bits, usize) -> I::Bits,
) -> I::Bits {
    let mut sum = isa.splat_bits(0);
    for at in (0..16).step_by(2 * I::LANES) {
        let [low, up] = nibbles(isa, pairs_at(isa, block, BYTES - 16 + at));
        let (low, up) = (
            high(isa, block, x, low, at),
            high(isa, block, x, up, 16 + at),
        );
        sum = isa.dot_pairs(low, elements_at(isa, x.pairs, at), sum);
        sum = isa.dot_pairs(up, elements_at(isa, x.pairs, 16 + at), sum);
    }
    sum
}

#[derive(Clone, Copy)]
pub(super) struct Q40;

impl ShortBlock<18> for Q40 {
    #[inline(always)]
    fn dot<I: Isa>(isa: I, block: &[u8; 18], x: Operand<'_>) -> I::Bits {
        dot_nibbles(isa, block, x, no_fifths)
    }
}

#[derive(Clone, Copy)]
pub(super) struct Q41;

impl ShortBlock<20> for Q41 {
    const MINIMA: bool = true;

    #[inline(always)]
    fn dot<I: Isa>(isa: I, block: &[u8; 20], x: Operand<'_>) -> I::Bits {
        dot_nibbles(isa, block, x, no_fifths)
    }
}

/// Bit `i` of an integer, as pairs.
const BITS: [i32; 8] = {
    let mut bits = [0; 8];
    let mut i = 0;
    while i < 8 {
        bits[i] = 1 << (2 * i) | 1 << (2 * i + 17);
        i += 1;
    }
    bits
};

/// Adds the fifth bits to integers from `at` on. The 32 bits are in the four bytes before the nibbles.
#[inline(always)]
fn add_fifths<I: Isa, const BYTES: usize>(
    isa: I,
    block: &[u8; BYTES],
    x: Operand<'_>,
    q: I::Bits,
    at: usize,
) -> I::Bits {
    let first = BYTES - 20 + at / 16 * 2;
    let word = u32::from(u16::from_le_bytes([block[first], block[first + 1]]));
    let words = isa.splat_bits((word << 16 | word) as i32);
    // SAFETY: `at` modulo 16 is a multiple of `2 · LANES`, which divide 16: a vector is there.
    let bits = isa.to_bits(unsafe { isa.load_ptr(x.bits.as_ptr().add(at % 16 / 2).cast()) });
    let fifth = isa.eq_pairs(isa.and_bits(words, bits), bits);
    isa.add_bits(q, isa.and_bits(fifth, constant_bits!(isa, 0x0010_0010)))
}

/// Adds nothing.
#[inline(always)]
fn no_fifths<I: Isa, const BYTES: usize>(
    _: I,
    _: &[u8; BYTES],
    _: Operand<'_>,
    q: I::Bits,
    _: usize,
) -> I::Bits {
    q
}

#[derive(Clone, Copy)]
pub(super) struct Q50;

impl ShortBlock<22> for Q50 {
    #[inline(always)]
    fn dot<I: Isa>(isa: I, block: &[u8; 22], x: Operand<'_>) -> I::Bits {
        dot_nibbles(isa, block, x, add_fifths)
    }
}

#[derive(Clone, Copy)]
pub(super) struct Q51;

impl ShortBlock<24> for Q51 {
    const MINIMA: bool = true;

    #[inline(always)]
    fn dot<I: Isa>(isa: I, block: &[u8; 24], x: Operand<'_>) -> I::Bits {
        dot_nibbles(isa, block, x, add_fifths)
    }
}
