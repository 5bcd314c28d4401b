//! Rows of blocks of 256 weights.

use super::{GROUP, bytes_at};
use crate::simd::isa::{Isa, constant_bits};
use crate::tensor::ggml::MAX_BLOCK;
use crate::tensor::quantized::half::f16_to_f32;

/// The low and the high halves of bytes.
#[inline(always)]
fn nibbles<I: Isa>(isa: I, bytes: I::Bits) -> [I::Bits; 2] {
    let low = isa.and_bits(bytes, constant_bits!(isa, 15));
    [low, isa.shr_bits(bytes, 4)]
}

/// The scales of a block's eight groups, then their minima, negative, then zeros.
#[inline(always)]
fn group_scales<I: Isa, const BYTES: usize>(isa: I, bytes: &[u8; BYTES]) -> [f32; 24] {
    let word =
        |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    let (d, m, both) = (word(4), word(8), word(12));
    let (low, four, two) = (0x3f3f_3f3f, 0x0f0f_0f0f, 0x3030_3030);
    let join = |a: u32, b: u32| u128::from(a) | u128::from(b) << 32;
    let scales = join(d & low, both & four | d >> 2 & two);
    let minima = join(m & low, both >> 4 & four | m >> 2 & two);
    // Behind them a vector of 16 lanes reads zeros.
    let mut q = [0; 24];
    q[..16].copy_from_slice(&(scales | minima << 64).to_le_bytes());
    let factors = [f16_at(bytes, 0), -f16_at(bytes, 2)];
    let mut scales = [0.0; 24];
    for at in (0..16).step_by(I::LANES.min(8)) {
        let factor = isa.splat(factors[at / 8]);
        let q = isa.bits_to_float(bytes_at(isa, &q, at));
        isa.store(isa.mul(q, factor), &mut scales[at..]);
    }
    scales
}

fn f16_at(bytes: &[u8], at: usize) -> f32 {
    f16_to_f32(u16::from_le_bytes([bytes[at], bytes[at + 1]]))
}

/// Adds blocks of eight groups, whose bytes from `BYTES` − 128 on hold the low four bits of two
/// groups' weights each. `high` returns what the bits of a group's weights from `at` on add.
#[inline(always)]
fn groups<I: Isa, const BYTES: usize>(
    isa: I,
    bytes: &[u8; BYTES],
    x: &[f32; MAX_BLOCK],
    mut total: I::F32,
    high: impl Fn(I, &[u8; BYTES], usize, usize) -> I::Bits,
    [scales, x_sums]: [&[f32]; 2],
) -> I::F32 {
    for at in (0..8).step_by(I::LANES) {
        // Behind the minima there are zeros.
        let minima = isa.load(&scales[8 + at..]);
        total = isa.mul_add(isa.load(&x_sums[at..]), minima, total);
    }
    for pair in 0..4 {
        let mut sums = [isa.splat(0.0); 2];
        for at in (0..GROUP).step_by(I::LANES) {
            let low = bytes_at(isa, bytes, BYTES - 128 + GROUP * pair + at);
            for (half, (q, sum)) in nibbles(isa, low).into_iter().zip(&mut sums).enumerate() {
                let group = 2 * pair + half;
                let q = isa.add_bits(q, high(isa, bytes, group, at));
                let x = isa.load(&x[GROUP * group + at..]);
                *sum = isa.mul_add(isa.bits_to_float(q), x, *sum);
            }
        }
        for (half, sum) in sums.into_iter().enumerate() {
            total = isa.mul_add(sum, isa.splat(scales[2 * pair + half]), total);
        }
    }
    total
}

#[inline(always)]
fn no_bits<I: Isa>(isa: I, _: &[u8; 144], _: usize, _: usize) -> I::Bits {
    isa.splat_bits(0)
}

#[inline(always)]
pub(super) fn q4_k<I: Isa>(
    isa: I,
    bytes: &[u8; 144],
    x: &[f32; MAX_BLOCK],
    x_sums: &[f32],
    total: I::F32,
) -> I::F32 {
    let scales = group_scales(isa, bytes);
    groups(isa, bytes, x, total, no_bits, [&scales, x_sums])
}

/// The fifth bits of a group: a byte has one of each group.
#[inline(always)]
fn fifth_bits<I: Isa>(isa: I, bytes: &[u8; 176], group: usize, at: usize) -> I::Bits {
    let bits = isa.shl_bits(bytes_at(isa, bytes, 16 + at), 4);
    isa.and_bits(isa.shr_bits(bits, group as u32), constant_bits!(isa, 16))
}

#[inline(always)]
pub(super) fn q5_k<I: Isa>(
    isa: I,
    bytes: &[u8; 176],
    x: &[f32; MAX_BLOCK],
    x_sums: &[f32],
    total: I::F32,
) -> I::F32 {
    let scales = group_scales(isa, bytes);
    groups(isa, bytes, x, total, fifth_bits, [&scales, x_sums])
}

#[inline(always)]
pub(super) fn q6_k<I: Isa>(
    isa: I,
    bytes: &[u8; 210],
    x: &[f32; MAX_BLOCK],
    _: &[f32],
    mut total: I::F32,
) -> I::F32 {
    let d = f16_at(bytes, 208);
    let mut scales = [0.0; 16];
    for at in (0..16).step_by(I::LANES) {
        // SAFETY: there are 16 bytes, of which `LANES` divide the number.
        let q = unsafe { isa.load_signed_bytes(bytes.as_ptr().add(192 + at)) };
        isa.store(
            isa.mul(isa.bits_to_float(q), isa.splat(d)),
            &mut scales[at..],
        );
    }
    for half in 0..2 {
        for at in (0..32).step_by(I::LANES) {
            let low = [
                nibbles(isa, bytes_at(isa, bytes, 64 * half + at)),
                nibbles(isa, bytes_at(isa, bytes, 64 * half + 32 + at)),
            ];
            let high = isa.shl_bits(bytes_at(isa, bytes, 128 + 32 * half + at), 4);
            for quarter in 0..4 {
                let high = isa.shr_bits(high, 2 * quarter as u32);
                let high = isa.and_bits(high, constant_bits!(isa, 0x30));
                let q = isa.add_bits(low[quarter % 2][quarter / 2], high);
                let q = isa.bits_to_float(isa.sub_bits(q, constant_bits!(isa, 32)));
                let first = 128 * half + 32 * quarter + at;
                let weights = isa.mul(q, isa.splat(scales[first / 16]));
                total = isa.mul_add(weights, isa.load(&x[first..]), total);
            }
        }
    }
    total
}
