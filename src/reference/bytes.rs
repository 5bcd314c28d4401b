//! Oracles of the operations on bytes.

use super::{Expected, wide};

/// Returns the word and the byte of a number.
fn place(number: usize, stride: usize) -> (usize, usize) {
    match stride {
        1 => (number / 4, number % 4),
        words => (number % words, number / words),
    }
}

pub(super) fn unpack_bytes(x: &[f32], stride: usize) -> Vec<Expected> {
    let number = |i: usize| {
        let (word, byte) = place(i, stride);
        Expected::exact(f64::from(x[word].to_bits() >> (8 * byte) & 255) / 255.0)
    };
    (0..4 * x.len()).map(number).collect()
}

/// Words as numbers. Of a number so near to the middle of two bytes that `f32` has no room for the difference, either is
/// right, and any word is accepted.
pub(super) fn pack_bytes(x: &[f32], stride: usize) -> Vec<Expected> {
    let scaled = |x: f32| 255.0 * wide(x).clamp(0.0, 1.0) + 0.5;
    let is_near = |&x: &f32| (scaled(x) - scaled(x).round()).abs() < 1e-3;
    let mut words = vec![(0, false); x.len().div_ceil(4)];
    for (i, x) in x.iter().enumerate() {
        let (word, byte) = place(i, stride);
        let (bits, is_uncertain) = &mut words[word];
        *bits |= (scaled(*x) as u32) << (8 * byte);
        *is_uncertain |= is_near(x);
    }
    let expected = |&(bits, is_uncertain): &(u32, bool)| {
        let word = wide(f32::from_bits(bits));
        let magnitude = if is_uncertain {
            f64::INFINITY
        } else {
            word.abs()
        };
        Expected::new(word, magnitude)
    };
    words.iter().map(expected).collect()
}
