//! The choice of a token from logits.

#[cfg(all(test, not(target_arch = "wasm32")))]
mod tests;

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::iter;

use crate::error::{Error, Result};
use crate::graph::choice::{Change, Choices, Draw, Limits, Penalties};
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

    /// Returns what biases and penalties change, where tokens have occurred: a change for each token, in ascending order.
    pub(super) fn changes(&self, seen: &[u32]) -> Vec<Change> {
        let change = |token, bias, count| Change { token, bias, count };
        let biases = self.logit_bias.iter();
        let mut changes: Vec<_> = biases
            .map(|&(token, bias)| change(token, bias, 0))
            .collect();
        if self.penalties().any() {
            changes.extend(seen.iter().map(|&token| change(token, 0.0, 1)));
        }
        changes.sort_unstable_by_key(|change| change.token);
        changes.dedup_by(|next, kept| {
            let same = next.token == kept.token;
            if same {
                kept.bias += next.bias;
                kept.count += next.count;
            }
            same
        });
        changes
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

    /// Returns how the next `count` tokens are chosen after those that occurred.
    pub(super) fn choices(&self, seen: &[u32], count: usize) -> Choices {
        let mut ahead = self.clone();
        // Below 1, which larger numbers round to.
        let mut uniform = || (ahead.uniform() as f32).min(1.0 - f32::EPSILON / 2.0);
        let limits = self.options.limits();
        Choices {
            changes: self.options.changes(seen),
            penalties: self.options.penalties(),
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
        for change in self.options.changes(seen) {
            if let Some(logit) = logits.get_mut(change.token as usize) {
                *logit = penalties.apply(*logit, change);
            }
        }
        match self.options.limits() {
            Some(limits) => draw(logits, limits, self.uniform()),
            None => argmax(logits),
        }
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

/// A token that may be chosen. Likelier ones are greater; of equally likely ones the first is.
struct Candidate {
    token: u32,
    logit: f32,
}

impl Ord for Candidate {
    fn cmp(&self, other: &Self) -> Ordering {
        let likelier = self.logit.total_cmp(&other.logit);
        likelier.then(other.token.cmp(&self.token))
    }
}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Candidate {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Candidate {}

/// Chooses a token within limits: the one at the fraction `uniform` of their probabilities, the likeliest token first.
fn draw(logits: &[f32], limits: Limits, uniform: f64) -> u32 {
    let likeliest = argmax(logits);
    let largest = logits.get(likeliest as usize).map_or(0.0, |&logit| logit);
    // The probability as a fraction of the likeliest one's.
    let weight = |candidate: &Candidate| {
        let above = f64::from(candidate.logit) - f64::from(largest);
        libm::exp(above / f64::from(limits.temperature))
    };
    let all = (0..).zip(logits);
    let all = all.map(|(token, &logit)| Candidate { token, logit });
    let least = f64::from(limits.min_p);
    // A heap, since few of the candidates are needed in order.
    let mut candidates: BinaryHeap<_> = if least > 0.0 {
        all.filter(|candidate| weight(candidate) >= least).collect()
    } else {
        all.collect()
    };
    if limits.top_k > 0 {
        let ranked = iter::from_fn(|| candidates.pop());
        candidates = ranked.take(limits.top_k).collect();
    }
    if limits.top_p < 1.0 {
        let enough = f64::from(limits.top_p) * candidates.iter().map(weight).sum::<f64>();
        let mut before = 0.0;
        let ranked = iter::from_fn(|| candidates.pop());
        candidates = ranked
            .take_while(|candidate| {
                let is_within = before == 0.0 || before < enough;
                before += weight(candidate);
                is_within
            })
            .collect();
    }
    let mut rest = uniform * candidates.iter().map(weight).sum::<f64>();
    let chosen = iter::from_fn(|| candidates.pop()).find(|candidate| {
        rest -= weight(candidate);
        rest < 0.0
    });
    // Rounding leaves a rest. The last candidates may be forbidden.
    chosen.map_or(likeliest, |candidate| candidate.token)
}

/// The first token of the largest logit, or the first one whose logit is NaN: the choice of every back-end.
fn argmax(logits: &[f32]) -> u32 {
    simd::argmax(InstructionSet::best(), logits) as u32
}
