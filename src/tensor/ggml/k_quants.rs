//! Blocks of 256 weights, whose groups of 16 or 32 have scales in few bits.

use super::f16_at;

pub(super) fn q2_k(block: &[u8], to: &mut [f32]) {
    let (scales, qs) = block.split_at(16);
    let (d, dmin) = (f16_at(block, 80), f16_at(block, 82));
    for (i, to) in to.iter_mut().enumerate() {
        let scale = scales[i / 16];
        let (dl, ml) = (d * f32::from(scale & 15), dmin * f32::from(scale >> 4));
        *to = dl * f32::from(two_bits(qs, i)) - ml;
    }
}

/// Weight `i` of two bits: each 32 bytes hold four times 32 weights.
fn two_bits(qs: &[u8], i: usize) -> u8 {
    qs[i / 128 * 32 + i % 32] >> (2 * (i / 32 % 4)) & 3
}

/// Weight `i` of four bits: each `half` bytes hold twice as many weights.
fn four_bits(qs: &[u8], half: usize, i: usize) -> u8 {
    qs[i / (2 * half) * half + i % half] >> (4 * (i / half % 2)) & 15
}

pub(super) fn q3_k(block: &[u8], to: &mut [f32]) {
    let (mask, qs, scales, d) = (
        &block[..32],
        &block[32..96],
        &block[96..108],
        f16_at(block, 108),
    );
    for (i, to) in to.iter_mut().enumerate() {
        let group = i / 16;
        let low = scales[group % 8] >> (4 * (group / 8)) & 15;
        let high = scales[8 + group % 4] >> (2 * (group / 4)) & 3;
        let dl = d * (f32::from(low | high << 4) - 32.0);
        let missing = (mask[i % 32] >> (i / 32) & 1) ^ 1;
        *to = dl * (f32::from(two_bits(qs, i)) - f32::from(missing * 4));
    }
}

/// Scale and minimum of a group of 32, six bits each.
fn scale_min(scales: &[u8], group: usize) -> (f32, f32) {
    let (d, m, both) = (
        scales[group % 4],
        scales[4 + group % 4],
        scales[8 + group % 4],
    );
    let (scale, min) = if group < 4 {
        (d & 63, m & 63)
    } else {
        (both & 15 | d >> 2 & 0x30, both >> 4 | m >> 2 & 0x30)
    };
    (f32::from(scale), f32::from(min))
}

pub(super) fn q4_k(block: &[u8], to: &mut [f32]) {
    let (d, dmin) = (f16_at(block, 0), f16_at(block, 2));
    for (group, to) in to.chunks_exact_mut(32).enumerate() {
        let (scale, min) = scale_min(&block[4..16], group);
        let (scale, min) = (d * scale, dmin * min);
        for (i, to) in to.iter_mut().enumerate() {
            *to = scale * f32::from(four_bits(&block[16..], 32, group * 32 + i)) - min;
        }
    }
}

pub(super) fn q5_k(block: &[u8], to: &mut [f32]) {
    let (d, dmin) = (f16_at(block, 0), f16_at(block, 2));
    for (group, to) in to.chunks_exact_mut(32).enumerate() {
        let (scale, min) = scale_min(&block[4..16], group);
        let (scale, min) = (d * scale, dmin * min);
        for (i, to) in to.iter_mut().enumerate() {
            let low = four_bits(&block[48..], 32, group * 32 + i);
            let high = block[16 + i] >> group & 1;
            *to = scale * f32::from(low | high << 4) - min;
        }
    }
}

pub(super) fn q6_k(block: &[u8], to: &mut [f32]) {
    let (low, high, scales, d) = (
        &block[..128],
        &block[128..192],
        &block[192..208],
        f16_at(block, 208),
    );
    for (i, to) in to.iter_mut().enumerate() {
        let scale = d * f32::from(scales[i / 16] as i8);
        let q = four_bits(low, 64, i) | two_bits(high, i) << 4;
        *to = scale * (f32::from(q) - 32.0);
    }
}
