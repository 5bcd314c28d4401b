//! Blocks with one scale, or with one for each 32 weights.

use super::{Group, f16_at, u16_at};

/// The 16 weights of the non-linear 4-bit types.
const IQ4: [i8; 16] = [
    -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113,
];

pub(super) fn q8_0(block: &[u8], mut each: impl FnMut(Group, &[i8])) {
    let mut integers = [0; 32];
    for (integer, &byte) in integers.iter_mut().zip(&block[2..]) {
        *integer = byte as i8;
    }
    each(Group::scaled(f16_at(block, 0)), &integers);
}

/// The integers of 16 bytes: `integer` gets the position and the low, then the high bits of each.
#[inline]
fn nibbles(bytes: &[u8], integer: impl Fn(usize, u8) -> i8) -> [i8; 32] {
    let mut integers = [0; 32];
    for (i, &byte) in bytes.iter().take(16).enumerate() {
        integers[i] = integer(i, byte & 15);
        integers[i + 16] = integer(i + 16, byte >> 4);
    }
    integers
}

pub(super) fn q4_0(block: &[u8], mut each: impl FnMut(Group, &[i8])) {
    let integers = nibbles(&block[2..], |_, q| q as i8 - 8);
    each(Group::scaled(f16_at(block, 0)), &integers);
}

/// A block's scale, and its offset after it.
fn scale_and_offset(block: &[u8]) -> Group {
    Group {
        scale: f16_at(block, 0),
        offset: f16_at(block, 2),
    }
}

pub(super) fn q4_1(block: &[u8], mut each: impl FnMut(Group, &[i8])) {
    each(
        scale_and_offset(block),
        &nibbles(&block[4..], |_, q| q as i8),
    );
}

/// The integers of five bits, of which the fifth ones stand at a byte before all others.
#[inline]
fn five_bits(block: &[u8], at: usize) -> [i8; 32] {
    let high = u32::from(u16_at(block, at)) | u32::from(u16_at(block, at + 2)) << 16;
    nibbles(&block[at + 4..], |i, q| {
        (q | ((high >> i & 1) << 4) as u8) as i8
    })
}

pub(super) fn q5_0(block: &[u8], mut each: impl FnMut(Group, &[i8])) {
    let integers = five_bits(block, 2).map(|q| q - 16);
    each(Group::scaled(f16_at(block, 0)), &integers);
}

pub(super) fn q5_1(block: &[u8], mut each: impl FnMut(Group, &[i8])) {
    each(scale_and_offset(block), &five_bits(block, 4));
}

pub(super) fn iq4_nl(block: &[u8], mut each: impl FnMut(Group, &[i8])) {
    let integers = nibbles(&block[2..], |_, q| IQ4[usize::from(q)]);
    each(Group::scaled(f16_at(block, 0)), &integers);
}

pub(super) fn iq4_xs(block: &[u8], mut each: impl FnMut(Group, &[i8])) {
    let (d, high) = (f16_at(block, 0), u16_at(block, 2));
    for (i, bytes) in block[8..].chunks_exact(16).enumerate() {
        let low = block[4 + i / 2] >> (4 * (i % 2)) & 15;
        let scale = u16::from(low) | (high >> (2 * i) & 3) << 4;
        let integers = nibbles(bytes, |_, q| IQ4[usize::from(q)]);
        each(Group::scaled(d * (f32::from(scale) - 32.0)), &integers);
    }
}
