//! Rotary position embedding.

use crate::ops::rope::{cosine_and_sine, frequency};
use crate::simd::rotate;
use std::ops::Range;

/// The elements of a head that are rotated together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pairs {
    /// Neighbours.
    Neighbours,
    /// One from each half of the rotated part.
    Halves,
}

/// A rotation of heads by angles that grow with the position (Su et al., "`RoFormer`", 2021).
#[derive(Clone, Debug)]
pub(super) struct Rotation {
    pub(super) pairs: Pairs,
    /// The number of elements of a head that are rotated, the first ones.
    pub(super) rotated: usize,
    /// The angle between neighbouring positions for each pair, in radians.
    frequencies: Vec<f64>,
    /// The factor of what is rotated.
    pub(super) magnitude: f64,
}

impl Rotation {
    pub(super) fn new(pairs: Pairs, rotated: usize, base: f64) -> Self {
        let pairs_of_head = 0..rotated / 2;
        Self {
            pairs,
            rotated,
            frequencies: pairs_of_head
                .map(|pair| frequency(base, rotated, pair))
                .collect(),
            magnitude: 1.0,
        }
    }

    /// Divides the frequencies by factors: one for each, or one for all.
    pub(super) fn divide(&mut self, factors: &[f64]) {
        let factors = factors.iter().cycle();
        for (frequency, factor) in self.frequencies.iter_mut().zip(factors) {
            *frequency /= factor;
        }
    }

    /// Returns the cosine and the sine for each position and pair, times the magnitude.
    pub(super) fn angles(&self, positions: Range<usize>) -> Vec<[f32; 2]> {
        let mut angles = Vec::new();
        for position in positions {
            for frequency in &self.frequencies {
                let parts = cosine_and_sine(position as f64 * frequency);
                angles.push(parts.map(|part| (self.magnitude * part) as f32));
            }
        }
        angles
    }

    /// Rotates a head by the angles of its position.
    pub(super) fn apply(&self, head: &mut [f32], angles: &[[f32; 2]]) {
        let interleaved = self.pairs == Pairs::Neighbours;
        rotate(interleaved, &mut head[..self.rotated], angles);
    }
}
