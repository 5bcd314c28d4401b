//! Rotary position embedding.

use crate::ops::rope::{cosine_and_sine, frequency};

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
    /// The base of the frequencies.
    pub(super) base: f64,
    /// The angle between neighbouring positions for each pair, in radians.
    frequencies: Vec<f64>,
    /// The factor of the rotated elements.
    magnitude: f64,
    /// The further factor of queries.
    pub(super) temperature: Option<Temperature>,
}

/// A factor of queries that grows with the logarithm of their position.
#[derive(Clone, Copy, Debug)]
pub(super) struct Temperature {
    pub(super) scale: f64,
    /// The number of positions after which the factor grows.
    pub(super) length: f64,
}

impl Temperature {
    fn factor(self, position: usize) -> f64 {
        let lengths = (position as f64 / self.length).floor();
        1.0 + self.scale * libm::log(1.0 + lengths)
    }
}

impl Rotation {
    pub(super) fn new(pairs: Pairs, rotated: usize, base: f64, magnitude: f64) -> Self {
        let pairs_of_head = 0..rotated / 2;
        Self {
            pairs,
            rotated,
            base,
            frequencies: pairs_of_head
                .map(|pair| frequency(base, rotated, pair))
                .collect(),
            magnitude,
            temperature: None,
        }
    }

    /// Divides the frequencies by factors: one for each, or one for all.
    pub(super) fn divide(&mut self, factors: &[f64]) {
        let factors = factors.iter().cycle();
        for (frequency, factor) in self.frequencies.iter_mut().zip(factors) {
            *frequency /= factor;
        }
    }

    /// Returns the cosine and the sine for each position and pair, times the magnitude. With a temperature, those of queries
    /// follow, from [`query_angles`](Self::query_angles) on.
    pub(super) fn angles(&self, positions: &[usize]) -> Vec<[f32; 2]> {
        let mut angles = Vec::new();
        for temperature in [None].into_iter().chain(self.temperature.map(Some)) {
            for &position in positions {
                let factor = temperature.map_or(1.0, |temperature| temperature.factor(position));
                let magnitude = factor * self.magnitude;
                for frequency in &self.frequencies {
                    let parts = cosine_and_sine(position as f64 * frequency);
                    angles.push(parts.map(|part| (magnitude * part) as f32));
                }
            }
        }
        angles
    }

    /// Returns the index of the first angle of queries among the angles of a number of positions.
    pub(super) fn query_angles(&self, positions: usize) -> usize {
        self.temperature
            .map_or(0, |_| positions * self.frequencies.len())
    }
}

#[cfg(test)]
mod tests {
    use crate::llm::model::Config;
    use crate::llm::{CacheType, Gguf, GgufWriter};

    /// The cosines and sines of positions in a model with some metadata more.
    fn angles(set: impl FnOnce(&mut GgufWriter), positions: usize) -> Vec<[f32; 2]> {
        let mut writer = GgufWriter::default();
        writer.string("general.architecture", "llama");
        for key in ["block_count", "feed_forward_length"] {
            writer.unsigned(&format!("llama.{key}"), 1);
        }
        writer.unsigned("llama.context_length", 256);
        writer.unsigned("llama.embedding_length", 8);
        writer.unsigned("llama.attention.head_count", 1);
        writer.float("llama.attention.layer_norm_rms_epsilon", 1e-5);
        set(&mut writer);
        let file = Gguf::from_bytes(writer.finish()).expect("a file");
        let config = Config::new(&file, None, CacheType::F32).expect("hyperparameters");
        let positions: Vec<usize> = (0..positions).collect();
        config.rotations[0].angles(&positions)
    }

    #[test]
    fn a_factor_halves_or_quarters_positions() {
        let plain = angles(|_| (), 20);
        let [cosine, sine] = plain[4];
        assert_eq!([cosine, sine], [1f64.cos() as f32, 1f64.sin() as f32]);
        let newer = |file: &mut GgufWriter| file.float("llama.rope.scaling.factor", 2.0);
        let older = |file: &mut GgufWriter| file.float("llama.rope.scale_linear", 4.0);
        for (factor, scaled) in [(2, angles(newer, 80)), (4, angles(older, 80))] {
            let scaled = scaled.chunks(4).step_by(factor).take(20);
            assert_eq!(
                scaled.flatten().copied().collect::<Vec<_>>(),
                plain,
                "{factor}"
            );
        }
    }
}
