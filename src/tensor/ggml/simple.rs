//! Blocks with one scale, or with one for each 32 weights.

use super::{f16_at, u16_at};

/// The 16 weights of the non-linear 4-bit types.
pub(super) const IQ4: [i8; 16] = [
    -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113,
];

pub(super) fn q8_0(block: &[u8], to: &mut [f32]) {
    let d = f16_at(block, 0);
    for (to, &q) in to.iter_mut().zip(&block[2..]) {
        *to = f32::from(q as i8) * d;
    }
}

/// Calls `weight` with the position and the low, then the high bits of each of 16 bytes.
fn nibbles(bytes: &[u8], to: &mut [f32], weight: impl Fn(usize, u8) -> f32) {
    for (i, &byte) in bytes.iter().take(16).enumerate() {
        to[i] = weight(i, byte & 15);
        to[i + 16] = weight(i + 16, byte >> 4);
    }
}

pub(super) fn q4_0(block: &[u8], to: &mut [f32]) {
    let d = f16_at(block, 0);
    nibbles(&block[2..], to, |_, q| d * (f32::from(q) - 8.0));
}

pub(super) fn q4_1(block: &[u8], to: &mut [f32]) {
    let (d, m) = (f16_at(block, 0), f16_at(block, 2));
    nibbles(&block[4..], to, |_, q| d * f32::from(q) + m);
}

/// The fifth bits of 32 weights.
fn high_bits(block: &[u8], at: usize) -> u32 {
    u32::from(u16_at(block, at)) | u32::from(u16_at(block, at + 2)) << 16
}

pub(super) fn q5_0(block: &[u8], to: &mut [f32]) {
    let (d, high) = (f16_at(block, 0), high_bits(block, 2));
    nibbles(&block[6..], to, |i, q| {
        let q = u32::from(q) | (high >> i & 1) << 4;
        d * (q as f32 - 16.0)
    });
}

pub(super) fn q5_1(block: &[u8], to: &mut [f32]) {
    let (d, m, high) = (f16_at(block, 0), f16_at(block, 2), high_bits(block, 4));
    nibbles(&block[8..], to, |i, q| {
        let q = u32::from(q) | (high >> i & 1) << 4;
        d * q as f32 + m
    });
}

pub(super) fn iq4_nl(block: &[u8], to: &mut [f32]) {
    let d = f16_at(block, 0);
    nibbles(&block[2..], to, |_, q| d * f32::from(IQ4[usize::from(q)]));
}

pub(super) fn iq4_xs(block: &[u8], to: &mut [f32]) {
    let (d, high) = (f16_at(block, 0), u16_at(block, 2));
    let groups = block[8..].chunks_exact(16).zip(to.chunks_exact_mut(32));
    for (i, (bytes, to)) in groups.enumerate() {
        let low = block[4 + i / 2] >> (4 * (i % 2)) & 15;
        let scale = u16::from(low) | (high >> (2 * i) & 3) << 4;
        let d = d * (f32::from(scale) - 32.0);
        nibbles(bytes, to, |_, q| d * f32::from(IQ4[usize::from(q)]));
    }
}
