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

/// The most vectors that are multiplied together: they share the unpacked weights. The sums of four rows with two vectors
/// fill half of the registers of AVX2.
const VECTORS: usize = 2;

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
pub(super) struct ShortRows<'a, 'y, B, const BYTES: usize>(pub(super) Gemv<'a, 'y>, pub(super) B);

impl<B: ShortBlock<BYTES>, const BYTES: usize> Kernel for ShortRows<'_, '_, B, BYTES> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(mut self, isa: I) {
        let end = self.0.rows();
        for at in (0..end).step_by(ROWS) {
            let count = ROWS.min(end - at);
            let mut vector = 0;
            while vector < self.0.xs.len() {
                vector += match self.0.xs.len() - vector {
                    1 => self.products::<I, 1>(isa, [at, count], vector),
                    _ => self.products::<I, VECTORS>(isa, [at, count], vector),
                };
            }
        }
    }
}

impl<B: ShortBlock<BYTES>, const BYTES: usize> ShortRows<'_, '_, B, BYTES> {
    /// Computes the products of `count` rows from `at` on with `N` vectors from `vector` on; returns `N`.
    #[inline(always)]
    fn products<I: Isa, const N: usize>(
        &mut self,
        isa: I,
        [at, count]: [usize; 2],
        vector: usize,
    ) -> usize {
        let Gemv {
            weights,
            first,
            xs,
            ref mut y,
        } = self.0;
        let row = |i: usize| first + at + i;
        // The last row takes the place of those that are missing.
        let rows = std::array::from_fn(|r| {
            let (blocks, _) = weights.row(row(r.min(count - 1))).as_chunks();
            blocks
        });
        let xs: [Prepared<'_>; N] = std::array::from_fn(|n| xs[vector + n]);
        let sums = products::<I, B, BYTES, N>(isa, rows, xs);
        for ((x, sums), y) in xs.iter().zip(sums).zip(&mut y[vector..]) {
            for (r, (y, sum)) in y[at..at + count].iter_mut().zip(sums).enumerate() {
                *y = checked(isa, weights, row(r), x.x, sum);
            }
        }
        N
    }
}

/// The products of four rows with `N` vectors.
#[inline(always)]
fn products<I: Isa, B: ShortBlock<BYTES>, const BYTES: usize, const N: usize>(
    isa: I,
    [a, b, c, d]: [&[[u8; BYTES]]; ROWS],
    xs: [Prepared<'_>; N],
) -> [[f32; ROWS]; N] {
    let mut sums = [[isa.splat(0.0); ROWS]; N];
    // Eight lanes have four of zeros.
    let (mut heads, mut scales) = ([0.0; 2 * ROWS], [[0.0; 2 * ROWS]; N]);
    let mut offsets = [[isa.splat(0.0); ROWS]; N];
    let bits = std::hint::black_box(&BITS);
    let groups = xs.map(|x| (x.mixed.as_chunks::<{ GROUP / 2 }>().0, x.scales, x.sums));
    let count = xs
        .iter()
        .fold(a.len(), |count, x| count.min(x.scales.len()));
    let blocks = a.iter().zip(b).zip(c).zip(d).take(count).enumerate();
    for (group, (((a, b), c), d)) in blocks {
        let blocks = [a, b, c, d];
        for (block, head) in blocks.into_iter().zip(&mut heads) {
            isa.prefetch(block.as_ptr().wrapping_add(AHEAD).cast());
            let bytes = [block[0], block[1], block[2], block[3]];
            *head = f32::from_bits(u32::from_le_bytes(bytes));
        }
        for (i, at) in (0..ROWS).step_by(I::LANES).enumerate() {
            let heads = isa.to_bits(isa.load(&heads[at..]));
            let scale = widen(isa, isa.shl_bits(heads, 16));
            let weight = if B::MINIMA { widen(isa, heads) } else { scale };
            for (n, (_, x_scales, x_sums)) in groups.iter().enumerate() {
                offsets[n][i] = isa.mul_add(weight, isa.splat(x_sums[group]), offsets[n][i]);
                let scaled = isa.mul(scale, isa.splat(x_scales[group]));
                isa.store(scaled, &mut scales[n][at..]);
            }
        }
        for (r, block) in blocks.into_iter().enumerate() {
            for (n, (pairs, ..)) in groups.iter().enumerate() {
                let pairs = &pairs[group];
                let dot = isa.bits_to_float(B::dot(isa, block, Operand { pairs, bits }));
                sums[n][r] = isa.mul_add(dot, isa.splat(scales[n][r]), sums[n][r]);
            }
        }
    }
    let mut totals = [[0.0; ROWS]; N];
    for (n, totals) in totals.iter_mut().enumerate() {
        for (i, at) in (0..ROWS).step_by(I::LANES).enumerate() {
            isa.store(offsets[n][i], &mut scales[n][at..]);
        }
        for (r, total) in totals.iter_mut().enumerate() {
            *total = sum_lanes(isa, sums[n][r]) + scales[n][r];
        }
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
