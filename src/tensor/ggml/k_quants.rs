//! Blocks of 256 weights, whose groups of 16 or 32 have scales in few bits.

use super::{Group, f16_at};
use std::array;

/// The bytes from one on. Blocks have as many as their formats say.
fn bytes_at<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    array::from_fn(|i| bytes[at..][..N][i])
}

pub(super) fn q2_k(block: &[u8], mut each: impl FnMut(Group, &[i8])) {
    let (scales, qs) = block.split_at(16);
    let (d, dmin) = (f16_at(block, 80), f16_at(block, 82));
    for (index, &scale) in scales.iter().enumerate() {
        let group = Group {
            scale: d * f32::from(scale & 15),
            offset: -(dmin * f32::from(scale >> 4)),
        };
        each(group, &two_bits(qs, index).map(|q| q as i8));
    }
}

/// The `index`-th 16 weights of two bits: each 32 bytes hold four times 32 weights.
fn two_bits(qs: &[u8], index: usize) -> [u8; 16] {
    let bytes: [u8; 16] = bytes_at(qs, index / 8 * 32 + index % 2 * 16);
    bytes.map(|byte| byte >> (2 * (index / 2 % 4)) & 3)
}

/// The `index`-th 32 weights of four bits: each 32 bytes hold two times 32 weights.
fn four_bits(qs: &[u8], index: usize) -> [u8; 32] {
    let bytes: [u8; 32] = bytes_at(qs, index / 2 * 32);
    bytes.map(|byte| byte >> (4 * (index % 2)) & 15)
}

pub(super) fn q3_k(block: &[u8], mut each: impl FnMut(Group, &[i8])) {
    let (mask, qs, scales, d) = (
        &block[..32],
        &block[32..96],
        &block[96..108],
        f16_at(block, 108),
    );
    for index in 0..16 {
        let low = scales[index % 8] >> (4 * (index / 8)) & 15;
        let high = scales[8 + index % 4] >> (2 * (index / 4)) & 3;
        let scale = d * (f32::from(low | high << 4) - 32.0);
        let (qs, masks) = (two_bits(qs, index), bytes_at::<16>(mask, index % 2 * 16));
        let integers: [i8; 16] = array::from_fn(|i| {
            let missing = (masks[i] >> (index / 2) & 1) ^ 1;
            qs[i] as i8 - 4 * missing as i8
        });
        each(Group::scaled(scale), &integers);
    }
}

/// The scale and the offset of a group of 32, six bits each.
fn six_bits(block: &[u8], index: usize) -> Group {
    let scales = &block[4..16];
    let (d, m, both) = (
        scales[index % 4],
        scales[4 + index % 4],
        scales[8 + index % 4],
    );
    let (scale, min) = if index < 4 {
        (d & 63, m & 63)
    } else {
        (both & 15 | d >> 2 & 0x30, both >> 4 | m >> 2 & 0x30)
    };
    Group {
        scale: f16_at(block, 0) * f32::from(scale),
        offset: -(f16_at(block, 2) * f32::from(min)),
    }
}

pub(super) fn q4_k(block: &[u8], mut each: impl FnMut(Group, &[i8])) {
    for index in 0..8 {
        let integers = four_bits(&block[16..], index).map(|q| q as i8);
        each(six_bits(block, index), &integers);
    }
}

pub(super) fn q5_k(block: &[u8], mut each: impl FnMut(Group, &[i8])) {
    for index in 0..8 {
        let (low, high) = (four_bits(&block[48..], index), bytes_at::<32>(block, 16));
        let integers: [i8; 32] = array::from_fn(|i| (low[i] | (high[i] >> index & 1) << 4) as i8);
        each(six_bits(block, index), &integers);
    }
}

pub(super) fn q6_k(block: &[u8], mut each: impl FnMut(Group, &[i8])) {
    let (low, high, scales, d) = (
        &block[..128],
        &block[128..192],
        &block[192..208],
        f16_at(block, 208),
    );
    for (index, &scale) in scales.iter().enumerate() {
        // Each 64 bytes hold two times 64 weights.
        let low: [u8; 16] = bytes_at(low, index / 8 * 64 + index % 4 * 16);
        let low = low.map(|byte| byte >> (4 * (index / 4 % 2)) & 15);
        let high = two_bits(high, index);
        let integers: [i8; 16] = array::from_fn(|i| (low[i] | high[i] << 4) as i8 - 32);
        each(Group::scaled(d * f32::from(scale as i8)), &integers);
    }
}
