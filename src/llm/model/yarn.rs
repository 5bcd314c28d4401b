//! `YaRN`: the scaling of rotations for contexts that are longer than the one that a model was trained with.

use super::metadata::Keys;
use super::rotations::original_context;
use crate::error::Result;
use std::f64::consts::TAU;

/// A scaling by which pairs that turn often keep their frequencies, and those that turn less than once or so in the original
/// context are slowed down by a factor (Peng et al., "`YaRN`", 2023).
pub(super) struct Yarn {
    factor: f64,
    /// The original context.
    original: f64,
    /// The turns in the original context from which on frequencies stay, and up to which they are divided by the factor.
    turns: [f64; 2],
    /// The factor of rotated elements.
    pub(super) magnitude: f64,
}

impl Yarn {
    /// Reads the scaling by a factor of a model whose context is given.
    pub(super) fn new(keys: Keys<'_>, factor: f64, context: usize) -> Result<Self> {
        // As in llama.cpp, 0 means the usual magnitude.
        let multiplier = keys.number("rope.scaling.yarn_log_multiplier", Some(0.0))?;
        let magnitude = if multiplier == 0.0 {
            magnitude_of(factor, 1.0)
        } else {
            let multiplier = keys.positive("rope.scaling.yarn_log_multiplier", 1.0)?;
            magnitude_of(factor, 1.0) / magnitude_of(factor, multiplier)
        };
        Ok(Self {
            factor,
            original: original_context(keys, context)? as f64,
            turns: [
                keys.positive("rope.scaling.yarn_beta_fast", 32.0)?,
                keys.positive("rope.scaling.yarn_beta_slow", 1.0)?,
            ],
            magnitude,
        })
    }

    /// Returns the divisors of the frequencies of a rotation of `rotated` elements.
    pub(super) fn divisors(&self, rotated: usize, base: f64) -> Vec<f64> {
        let len = rotated as f64;
        // The pair that turns as often in the original context.
        let pair =
            |turns: f64| len * libm::log(self.original / (turns * TAU)) / (2.0 * libm::log(base));
        let first = pair(self.turns[0]).floor().max(0.0);
        let last = pair(self.turns[1]).ceil().min(len - 1.0);
        let divisor = |pair: usize| {
            let slowed = (pair as f64 - first) / (last - first).max(1e-3);
            let slowed = slowed.clamp(0.0, 1.0);
            1.0 / (slowed / self.factor + (1.0 - slowed))
        };
        (0..rotated / 2).map(divisor).collect()
    }
}

/// Returns the magnitude for contexts that are longer by a factor.
fn magnitude_of(factor: f64, multiplier: f64) -> f64 {
    1.0 + 0.1 * multiplier * libm::log(factor.max(1.0))
}
