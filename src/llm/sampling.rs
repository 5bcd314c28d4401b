//! The choice of a token from logits.

#[cfg(all(test, not(target_arch = "wasm32")))]
mod tests;

use super::ranking::Ranking;
use crate::error::{Error, Result};
use crate::graph::choice::{Change, Choices, Draw, Limits, Penalties};
use crate::instruction_set::InstructionSet;
use crate::simd;

/// Options for the choice of tokens. The default is greedy: the token of the largest logit.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
#[non_exhaustive]
pub struct Sampling {
    /// Divides logits; 0 is greedy. Finite and not negative.
    pub temperature: f32,
    /// The number of the likeliest tokens to choose from; 0 is all.
    pub top_k: usize,
    /// The total probability of the likeliest tokens to choose from, from 0 to 1.
    pub top_p: f32,
    /// The least probability of a token to choose from, as a fraction of the likeliest one's, from 0 to 1.
    pub min_p: f32,
    /// Divides positive logits of tokens that occurred and multiplies negative ones; 1 is no penalty. Positive and
    /// finite.
    pub repetition_penalty: f32,
    /// The number that is subtracted from logits of tokens that occurred. Finite.
    pub presence_penalty: f32,
    /// The number that is subtracted from logits once for each time that their token occurred. Finite.
    pub frequency_penalty: f32,
    /// The numbers that are added to the logits of these tokens. −∞ forbids a token; +∞ and NaN are refused.
    pub logit_bias: Vec<(u32, f32)>,
    /// The seed of the choice; the same logits and seed give the same tokens, except for draws that the rounding of
    /// sums of probabilities decides: about one in a hundred thousand.
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
    /// Returns the options with this temperature.
    #[must_use]
    pub fn with_temperature(self, temperature: f32) -> Self {
        Self {
            temperature,
            ..self
        }
    }

    /// Returns the options with this number of likeliest tokens.
    #[must_use]
    pub fn with_top_k(self, top_k: usize) -> Self {
        Self { top_k, ..self }
    }

    /// Returns the options with this total probability of the likeliest tokens.
    #[must_use]
    pub fn with_top_p(self, top_p: f32) -> Self {
        Self { top_p, ..self }
    }

    /// Returns the options with this least probability, as a fraction of the likeliest one.
    #[must_use]
    pub fn with_min_p(self, min_p: f32) -> Self {
        Self { min_p, ..self }
    }

    /// Returns the options with this repetition penalty.
    #[must_use]
    pub fn with_repetition_penalty(self, repetition_penalty: f32) -> Self {
        Self {
            repetition_penalty,
            ..self
        }
    }

    /// Returns the options with this presence penalty.
    #[must_use]
    pub fn with_presence_penalty(self, presence_penalty: f32) -> Self {
        Self {
            presence_penalty,
            ..self
        }
    }

    /// Returns the options with this frequency penalty.
    #[must_use]
    pub fn with_frequency_penalty(self, frequency_penalty: f32) -> Self {
        Self {
            frequency_penalty,
            ..self
        }
    }

    /// Returns the options with these summands of logits.
    #[must_use]
    pub fn with_logit_bias(self, logit_bias: impl Into<Vec<(u32, f32)>>) -> Self {
        Self {
            logit_bias: logit_bias.into(),
            ..self
        }
    }

    /// Returns the options with this seed.
    #[must_use]
    pub fn with_seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// Returns whether the choice is the largest logit as the model gives it.
    pub(super) fn is_largest(&self) -> bool {
        self.temperature == 0.0 && self.logit_bias.is_empty() && !self.penalties().any()
    }

    pub(super) fn penalties(&self) -> Penalties {
        Penalties {
            repetition: self.repetition_penalty,
            presence: self.presence_penalty,
            frequency: self.frequency_penalty,
        }
    }

    /// Returns the limits of the tokens to choose from, unless the largest logit is the choice.
    pub(super) fn limits(&self) -> Option<Limits> {
        let limits = Limits {
            temperature: self.temperature,
            top_k: self.top_k,
            top_p: self.top_p,
            min_p: self.min_p,
        };
        (self.temperature != 0.0).then_some(limits)
    }

    /// Returns the changes of logits by biases, and by penalties where tokens have occurred: one for each token, in
    /// ascending order. The tokens are given in parts.
    pub(super) fn changes(&self, seen: &[&[u32]]) -> Vec<Change> {
        let mut counted: Vec<u64> = Vec::new();
        if self.penalties().any() {
            let seen = seen.iter().copied().flatten();
            counted.extend(seen.map(|&token| u64::from(token)));
        }
        counted.sort_unstable();
        let same = counted.chunk_by(|a, b| a == b);
        let same = same.map(|same| Change {
            token: same[0] as u32,
            bias: 0.0,
            count: same.len() as u32,
        });
        let mut changes: Vec<Change> = same.collect();
        for &(token, bias) in &self.logit_bias {
            match changes.binary_search_by_key(&token, |change| change.token) {
                Ok(index) => changes[index].bias += bias,
                Err(index) => changes.insert(
                    index,
                    Change {
                        token,
                        bias,
                        count: 0,
                    },
                ),
            }
        }
        changes
    }

    /// Returns an error for a value outside its range, and for a bias of a token beyond the vocabulary.
    pub(super) fn check(&self, vocabulary: usize) -> Result<()> {
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
        for &(token, bias) in &self.logit_bias {
            // Minus infinity forbids a token.
            let valid = bias < f32::INFINITY;
            check("logit_bias", bias, valid, "below infinity, and no NaN")?;
            require_token("logit_bias", token, vocabulary)?;
        }
        Ok(())
    }
}

/// Checks that a token is one of a vocabulary.
pub(super) fn require_token(what: &'static str, token: u32, vocabulary: usize) -> Result<()> {
    if (token as usize) < vocabulary {
        return Ok(());
    }
    let requirement = format!("token ids below {vocabulary}");
    Err(Error::invalid(what, token.to_string(), requirement))
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

    /// Returns the choice of the next `count` tokens. The tokens that occurred are given in parts.
    pub(super) fn choices(&self, seen: &[&[u32]], count: usize) -> Choices {
        let mut state = self.state;
        // Below 1, which larger numbers round to.
        let mut uniform = || (uniform(&mut state) as f32).min(1.0 - f32::EPSILON / 2.0);
        let limits = self.options.limits();
        Choices {
            changes: self.options.changes(seen),
            penalties: self.options.penalties(),
            allowed: None,
            draws: (0..count)
                .map(|_| {
                    limits.map(|limits| Draw {
                        limits,
                        uniform: uniform(),
                    })
                })
                .collect(),
        }
    }

    /// The next token; `seen` are those that occurred.
    pub(super) fn choose(&mut self, logits: &mut [f32], seen: &[u32]) -> u32 {
        let penalties = self.options.penalties();
        for change in self.options.changes(&[seen]) {
            if let Some(logit) = logits.get_mut(change.token as usize) {
                *logit = penalties.apply(*logit, change);
            }
        }
        match self.options.limits() {
            Some(limits) => draw(logits, limits, uniform(&mut self.state)),
            None => argmax(logits),
        }
    }
}

/// Returns the number from 0 to below 1 after a state: `SplitMix64`.
fn uniform(state: &mut u64) -> f64 {
    *state = state.wrapping_add(STEP);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
}

/// The width of the first band of logits, divided by the temperature: most draws need no token that is less likely than
/// a thousandth of the likeliest one.
const BAND: f32 = 7.0;

/// Chooses a token within limits: the one at the fraction `uniform` of their probabilities, the likeliest token first.
fn draw(logits: &[f32], limits: Limits, uniform: f64) -> u32 {
    let likeliest = argmax(logits);
    let probabilities = probabilities(logits, limits, likeliest);
    let probability = |token: u32| f64::from(at(&probabilities, token));
    let mut ranking = Ranking::new(logits, at(logits, likeliest), BAND * limits.temperature);
    let most = match limits.top_k {
        0 => logits.len(),
        most => most.min(logits.len()),
    };
    let total: f64 = if most < logits.len() {
        let ranked = (0..most).filter_map(|rank| ranking.get(rank));
        ranked.map(probability).sum()
    } else {
        probabilities.iter().map(|&p| f64::from(p)).sum()
    };
    // No number where a logit is NaN or the largest one infinite.
    if total.is_nan() || total <= 0.0 {
        return likeliest;
    }
    // The sums up to each rank: of the tokens to draw from, or of as many as the draw needs.
    let mut sums = Vec::new();
    let mut sum = 0.0;
    let is_nucleus = limits.top_p < 1.0;
    let fraction = if is_nucleus {
        f64::from(limits.top_p)
    } else {
        uniform
    };
    let end = fraction * total;
    while sums.len() < most && (sums.is_empty() || sum < end || (sum == end && !is_nucleus)) {
        let Some(token) = ranking.get(sums.len()) else {
            break;
        };
        sum += probability(token);
        sums.push(sum);
    }
    let drawn = if is_nucleus { uniform * sum } else { end };
    let rank = sums.partition_point(|&sum| sum <= drawn);
    // Rounding may leave none. The last tokens may be forbidden.
    let chosen = if rank < sums.len() {
        ranking.get(rank)
    } else {
        None
    };
    chosen.unwrap_or(likeliest)
}

/// Returns the probabilities of all tokens. Probabilities below the least one are 0.
fn probabilities(logits: &[f32], limits: Limits, likeliest: u32) -> Vec<f32> {
    let scaled = logits.iter().map(|logit| logit / limits.temperature);
    let scaled: Vec<f32> = scaled.collect();
    let mut probabilities = vec![0.0; logits.len()];
    let set = InstructionSet::best();
    simd::softmax(set, false, &scaled, logits.len(), &mut probabilities);
    let least = limits.min_p * at(&probabilities, likeliest);
    for probability in &mut probabilities {
        if *probability < least {
            *probability = 0.0;
        }
    }
    probabilities
}

fn at(values: &[f32], token: u32) -> f32 {
    values.get(token as usize).copied().unwrap_or(0.0)
}

/// The first token of the largest logit, or the first one whose logit is NaN: the choice of every back-end.
fn argmax(logits: &[f32]) -> u32 {
    simd::argmax(InstructionSet::best(), logits) as u32
}
