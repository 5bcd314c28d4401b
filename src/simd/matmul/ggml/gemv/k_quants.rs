//! Rows of blocks of 256 weights.

use super::prepare::elements_at;
use super::short::{nibbles, pairs_at};
use super::{AHEAD, Gemv, Prepared, checked};
use crate::alloc::scratch::LINE;
use crate::simd::isa::{Isa, Kernel, constant_bits};
use crate::simd::reduce::sum_lanes;
use crate::tensor::ggml::MAX_BLOCK;
use crate::tensor::quantized::half::f16_to_f32;

/// The number of weights that share a scale in most types.
const GROUP: usize = 32;

/// The factors of a block: 256 rounded elements of the vector, with the scales and sums of their groups.
#[derive(Clone, Copy)]
pub(super) struct Operand<'a> {
    pairs: &'a [f32],
    scales: &'a [f32],
    sums: &'a [f32],
}

/// A type whose blocks are several groups each.
pub(super) trait LongBlock<const BYTES: usize>: Copy {
    /// The groups of a block.
    const GROUPS: usize = MAX_BLOCK / GROUP;

    /// Returns `total` and a block's products.
    fn add<I: Isa>(isa: I, block: &[u8; BYTES], x: Operand<'_>, total: I::F32) -> I::F32;
}

/// Rows of blocks of several groups.
pub(super) struct LongRows<'a, 'y, B, const BYTES: usize>(pub(super) Gemv<'a, 'y>, pub(super) B)
where
    B: LongBlock<BYTES>;

impl<B: LongBlock<BYTES>, const BYTES: usize> Kernel for LongRows<'_, '_, B, BYTES> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(mut self, isa: I) {
        for i in 0..self.0.rows() {
            let Gemv {
                weights,
                first,
                xs,
                ref mut y,
            } = self.0;
            let (blocks, _) = weights.row(first + i).as_chunks::<BYTES>();
            for (x, y) in xs.iter().zip(&mut **y) {
                let sum = sum_lanes(isa, row_product::<I, B, BYTES>(isa, blocks, x));
                y[i] = checked(isa, weights, first + i, x.x, sum);
            }
        }
    }
}

/// The sums of the products of a row.
#[inline(always)]
fn row_product<I: Isa, B: LongBlock<BYTES>, const BYTES: usize>(
    isa: I,
    blocks: &[[u8; BYTES]],
    x: &Prepared<'_>,
) -> I::F32 {
    let mut total = isa.splat(0.0);
    let numbers = x.scales.chunks(B::GROUPS).zip(x.sums.chunks(B::GROUPS));
    let operands = x.mixed.chunks(MAX_BLOCK / 2).zip(numbers);
    for (block, (pairs, (scales, sums))) in blocks.iter().zip(operands) {
        for line in (0..BYTES).step_by(4 * LINE) {
            isa.prefetch(block.as_ptr().wrapping_add(AHEAD + line).cast());
        }
        let operand = Operand {
            pairs,
            scales,
            sums,
        };
        total = B::add(isa, block, operand, total);
    }
    total
}

/// The scales of a block's eight groups, then their minima, negative.
#[inline(always)]
fn group_scales<I: Isa, const BYTES: usize>(isa: I, bytes: &[u8; BYTES]) -> [f32; 16] {
    let word =
        |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    let (d, m, both) = (word(4), word(8), word(12));
    let (low, four, two) = (0x3f3f_3f3f, 0x0f0f_0f0f, 0x3030_3030);
    let join = |a: u32, b: u32| u128::from(a) | u128::from(b) << 32;
    let scales = join(d & low, both & four | d >> 2 & two);
    let minima = join(m & low, both >> 4 & four | m >> 2 & two);
    let q = (scales | minima << 64).to_le_bytes();
    let factors = [f16_at(bytes, 0), -f16_at(bytes, 2)];
    let mut scales = [0.0; 16];
    for at in (0..16).step_by(I::LANES) {
        // SAFETY: there are 16 bytes, of which `LANES` divide the number.
        let q = isa.bits_to_float(unsafe { isa.load_bytes(q.as_ptr().add(at)) });
        isa.store(isa.mul(q, isa.splat(factors[at / 8])), &mut scales[at..]);
    }
    scales
}

fn f16_at(bytes: &[u8], at: usize) -> f32 {
    f16_to_f32(u16::from_le_bytes([bytes[at], bytes[at + 1]]))
}

/// Adds a block of eight groups, whose bytes from `BYTES` − 128 on hold the low four bits of two
/// groups' weights each. `high` adds the other bits of a group's weights from `at` on.
#[inline(always)]
fn add_groups<I: Isa, const BYTES: usize>(
    isa: I,
    bytes: &[u8; BYTES],
    x: Operand<'_>,
    mut total: I::F32,
    high: impl Fn(I, &[u8; BYTES], I::Bits, usize, usize) -> I::Bits,
) -> I::F32 {
    let mut scales = group_scales(isa, bytes);
    for at in (0..8).step_by(I::LANES) {
        let minima = isa.load(&scales[8 + at..]);
        total = isa.mul_add(isa.load(&x.sums[at..]), minima, total);
        let scale = isa.mul(isa.load(&scales[at..]), isa.load(&x.scales[at..]));
        isa.store(scale, &mut scales[at..]);
    }
    for pair in 0..4 {
        let mut sums = [isa.splat_bits(0); 2];
        for at in (0..GROUP).step_by(2 * I::LANES) {
            let low = pairs_at(isa, bytes, BYTES - 128 + GROUP * pair + at);
            for (half, (q, sum)) in nibbles(isa, low).into_iter().zip(&mut sums).enumerate() {
                let group = 2 * pair + half;
                let q = high(isa, bytes, q, group, at);
                *sum = isa.dot_pairs(q, elements_at(isa, x.pairs, GROUP * group + at), *sum);
            }
        }
        for (sum, &scale) in sums.into_iter().zip(&scales[2 * pair..]) {
            total = isa.mul_add(isa.bits_to_float(sum), isa.splat(scale), total);
        }
    }
    total
}

/// Adds nothing.
#[inline(always)]
fn no_fifths<I: Isa>(_: I, _: &[u8; 144], q: I::Bits, _: usize, _: usize) -> I::Bits {
    q
}

/// Adds the fifth bits of a group: a byte has one of each group.
#[inline(always)]
fn add_fifths<I: Isa>(isa: I, block: &[u8; 176], q: I::Bits, group: usize, at: usize) -> I::Bits {
    let bits = isa.shl_bits(pairs_at(isa, block, 16 + at), 4);
    let bits = isa.shr_bits(bits, group as u32);
    isa.add_bits(q, isa.and_bits(bits, constant_bits!(isa, 0x0010_0010)))
}

#[derive(Clone, Copy)]
pub(super) struct Q4K;

impl LongBlock<144> for Q4K {
    #[inline(always)]
    fn add<I: Isa>(isa: I, block: &[u8; 144], x: Operand<'_>, total: I::F32) -> I::F32 {
        add_groups(isa, block, x, total, no_fifths)
    }
}

#[derive(Clone, Copy)]
pub(super) struct Q5K;

impl LongBlock<176> for Q5K {
    #[inline(always)]
    fn add<I: Isa>(isa: I, block: &[u8; 176], x: Operand<'_>, total: I::F32) -> I::F32 {
        add_groups(isa, block, x, total, add_fifths)
    }
}

#[derive(Clone, Copy)]
pub(super) struct Q6K;

impl LongBlock<210> for Q6K {
    const GROUPS: usize = 16;

    #[inline(always)]
    fn add<I: Isa>(isa: I, block: &[u8; 210], x: Operand<'_>, mut total: I::F32) -> I::F32 {
        let d = isa.splat(f16_at(block, 208));
        let mut scales = [0.0; 16];
        for at in (0..16).step_by(I::LANES) {
            // SAFETY: there are 16 bytes, of which `LANES` divide the number.
            let q = unsafe { isa.load_signed_bytes(block.as_ptr().add(192 + at)) };
            let scale = isa.mul(isa.bits_to_float(q), d);
            total = isa.mul_add(scale, isa.load(&x.sums[at..]), total);
            isa.store(isa.mul(scale, isa.load(&x.scales[at..])), &mut scales[at..]);
        }
        // Sixteen bytes of each 32 have bits of four groups.
        for (half, part) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            let mut sums = [isa.splat_bits(0); 4];
            for at in (16 * part..16 * part + 16).step_by(2 * I::LANES) {
                let a = nibbles(isa, pairs_at(isa, block, 64 * half + at));
                let b = nibbles(isa, pairs_at(isa, block, 64 * half + 32 + at));
                let high = isa.shl_bits(pairs_at(isa, block, 128 + 32 * half + at), 4);
                for (i, (low, sum)) in [a[0], b[0], a[1], b[1]].iter().zip(&mut sums).enumerate() {
                    let high = isa.shr_bits(high, 2 * i as u32);
                    let high = isa.and_bits(high, constant_bits!(isa, 0x0030_0030));
                    let x = elements_at(isa, x.pairs, 128 * half + 32 * i + at);
                    *sum = isa.dot_pairs(isa.add_bits(*low, high), x, *sum);
                }
            }
            for (i, sum) in sums.into_iter().enumerate() {
                let scale = isa.splat(scales[8 * half + 2 * i + part]);
                total = isa.mul_add(isa.bits_to_float(sum), scale, total);
            }
        }
        total
    }
}
