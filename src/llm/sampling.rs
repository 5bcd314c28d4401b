//! The choice of a token from logits.

use crate::error::{Error, Result};
use crate::instruction_set::InstructionSet;
use crate::simd;

/// How tokens are chosen. The default is greedy: the token of the largest logit.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Sampling {
    /// Divides logits; 0 is greedy.
    pub temperature: f32,
    /// The number of the likeliest tokens to choose from; 0 is all.
    pub top_k: usize,
    /// The total probability of the likeliest tokens to choose from.
    pub top_p: f32,
    /// The least probability of a token to choose from, as a fraction of the likeliest one's.
    pub min_p: f32,
    /// Divides positive logits of tokens that occurred and multiplies negative ones; 1 is none.
    pub repetition_penalty: f32,
    /// Is subtracted from logits of tokens that occurred.
    pub presence_penalty: f32,
    /// Is subtracted from logits once for each time that their token occurred.
    pub frequency_penalty: f32,
    /// Is added to the logits of these tokens.
    pub logit_bias: Vec<(u32, f32)>,
    /// The seed of the choice; the same logits and seed give the same tokens.
    pub seed: u64,
}

impl Default for Sampling {
    fn default() -> Self {
        Self {
            temperature: 0.0,
            top_k: 0,
            top_p: 1.0,
            min_p: 0.0,
            repetition_penalty: 1.0,
            presence_penalty: 0.0,
            frequency_penalty: 0.0,
            logit_bias: Vec::new(),
            seed: 0,
        }
    }
}

impl Sampling {
    /// Returns whether the choice is the largest logit as the model gives it.
    pub(super) fn is_largest(&self) -> bool {
        self.temperature == 0.0 && self.logit_bias.is_empty() && !self.has_penalties()
    }

    fn has_penalties(&self) -> bool {
        let added = [self.presence_penalty, self.frequency_penalty];
        self.repetition_penalty != 1.0 || added.iter().any(|&penalty| penalty != 0.0)
    }

    pub(super) fn check(&self) -> Result<()> {
        let check = |what, value: f32, valid: bool, range: &'static str| {
            let fault = || Error::invalid(what, value.to_string(), range);
            valid.then_some(()).ok_or_else(fault)
        };
        let (temperature, penalty) = (self.temperature, self.repetition_penalty);
        let unit = 0.0..=1.0;
        check(
            "temperature",
            temperature,
            (0.0..f32::INFINITY).contains(&temperature),
            "0 or larger",
        )?;
        check(
            "top_p",
            self.top_p,
            unit.contains(&self.top_p),
            "from 0 to 1",
        )?;
        check(
            "min_p",
            self.min_p,
            unit.contains(&self.min_p),
            "from 0 to 1",
        )?;
        let valid = penalty > 0.0 && penalty.is_finite();
        check("repetition_penalty", penalty, valid, "larger than 0")?;
        for (what, penalty) in [
            ("presence_penalty", self.presence_penalty),
            ("frequency_penalty", self.frequency_penalty),
        ] {
            check(what, penalty, penalty.is_finite(), "finite")?;
        }
        // Minus infinity forbids a token.
        let biases = self.logit_bias.iter().map(|&(_, bias)| bias);
        let mut refused = biases.filter(|&bias| bias.is_nan() || bias == f32::INFINITY);
        match refused.next() {
            Some(bias) => check("logit_bias", bias, false, "below infinity, and no NaN"),
            None => Ok(()),
        }
    }
}

/// The number that `SplitMix64` adds to its state at each step.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// Chooses tokens one after the other.
#[derive(Clone, Debug)]
pub(super) struct Sampler {
    options: Sampling,
    state: u64,
}

impl Sampler {
    pub(super) fn new(options: Sampling) -> Self {
        let state = options.seed;
        Self { options, state }
    }

    /// Advances the random numbers past those of `tokens` chosen tokens.
    pub(super) fn skip(&mut self, tokens: usize) {
        if self.options.temperature != 0.0 {
            let steps = (tokens as u64).wrapping_mul(STEP);
            self.state = self.state.wrapping_add(steps);
        }
    }

    /// The next token; `seen` are those that occurred.
    pub(super) fn choose(&mut self, logits: &mut [f32], seen: &[u32]) -> u32 {
        self.penalise(logits, seen);
        if self.options.temperature == 0.0 {
            return argmax(logits);
        }
        let candidates = self.candidates(logits);
        let total: f64 = candidates.iter().map(|(_, weight)| weight).sum();
        let mut rest = self.uniform() * total;
        for &(token, weight) in &candidates {
            rest -= weight;
            if rest < 0.0 {
                return token;
            }
        }
        // Rounding leaves a rest. The first one is the likeliest; the last ones may be forbidden.
        candidates.first().map_or(0, |&(token, _)| token)
    }

    fn penalise(&self, logits: &mut [f32], seen: &[u32]) {
        let options = &self.options;
        for &(token, bias) in &options.logit_bias {
            if let Some(logit) = logits.get_mut(token as usize) {
                *logit += bias;
            }
        }
        let penalty = options.repetition_penalty;
        let (presence, frequency) = (options.presence_penalty, options.frequency_penalty);
        if !options.has_penalties() {
            return;
        }
        let mut seen = seen.to_vec();
        seen.sort_unstable();
        for same in seen.chunk_by(|a, b| a == b) {
            if let Some(logit) = logits.get_mut(same[0] as usize) {
                *logit *= if *logit > 0.0 { 1.0 / penalty } else { penalty };
                *logit -= presence + frequency * same.len() as f32;
            }
        }
    }

    /// The tokens that may be chosen with their weights, the likeliest first.
    fn candidates(&self, logits: &[f32]) -> Vec<(u32, f64)> {
        let options = &self.options;
        let mut order: Vec<u32> = (0..logits.len() as u32).collect();
        let logit = |token: u32| logits[token as usize];
        order.sort_by(|&a, &b| logit(b).total_cmp(&logit(a)));
        if options.top_k > 0 {
            order.truncate(options.top_k);
        }
        let largest = order.first().map_or(0.0, |&token| logit(token));
        let weight = |token: u32| {
            let above = f64::from(logit(token)) - f64::from(largest);
            (token, libm::exp(above / f64::from(options.temperature)))
        };
        let mut weights: Vec<(u32, f64)> = order.into_iter().map(weight).collect();
        weights.retain(|&(_, weight)| weight >= f64::from(options.min_p));
        let enough =
            f64::from(options.top_p) * weights.iter().map(|(_, weight)| weight).sum::<f64>();
        let mut sum = 0.0;
        let before = |&&(_, weight): &&(u32, f64)| {
            let before = sum;
            sum += weight;
            before < enough
        };
        let kept = weights.iter().take_while(before).count();
        weights.truncate(kept.max(1));
        weights
    }

    /// A number from 0 to below 1: `SplitMix64`.
    fn uniform(&mut self) -> f64 {
        self.state = self.state.wrapping_add(STEP);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// The first token of the largest logit, or the first one whose logit is NaN: the choice of every back-end.
fn argmax(logits: &[f32]) -> u32 {
    simd::argmax(InstructionSet::best(), logits) as u32
}

#[cfg(test)]
mod tests {
    use super::{Sampler, Sampling};

    #[test]
    fn limits_leave_only_the_likeliest_tokens() {
        let base = Sampling {
            temperature: 1.0,
            ..Sampling::default()
        };
        let cases = [
            Sampling {
                temperature: 0.0,
                ..base.clone()
            },
            Sampling {
                top_k: 1,
                ..base.clone()
            },
            Sampling {
                top_p: 0.1,
                ..base.clone()
            },
            Sampling { min_p: 0.9, ..base },
        ];
        for options in cases {
            for seed in 0..20 {
                let mut sampler = Sampler::new(Sampling {
                    seed,
                    ..options.clone()
                });
                assert_eq!(
                    sampler.choose(&mut [0.0, 1.0, 3.0, -1.0], &[]),
                    2,
                    "{options:?}"
                );
            }
        }
    }

    #[test]
    fn penalties_move_the_choice() {
        let options = Sampling {
            repetition_penalty: 2.0,
            ..Sampling::default()
        };
        let mut sampler = Sampler::new(options);
        assert_eq!(sampler.choose(&mut [1.0, 1.5, -1.0], &[1, 1]), 0);
    }
}
