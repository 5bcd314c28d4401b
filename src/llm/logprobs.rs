//! Logarithms of the probabilities of tokens.

use super::ranking::Ranking;
use crate::instruction_set::InstructionSet;
use crate::simd;

/// A token, and the natural logarithm of the probability that the model gave it.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Candidate {
    /// The token.
    pub token: u32,
    /// The logarithm of its probability.
    pub logprob: f32,
}

/// The token that was chosen, and the likeliest ones in its place. Probabilities are the model's own: the
/// softmax of its logits, before temperature, penalties and biases.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct TokenLogprobs {
    /// The chosen token.
    pub chosen: Candidate,
    /// The likeliest tokens, in descending order.
    pub top: Vec<Candidate>,
}

/// The width of the first band of logits that are ranked: it has the likeliest tokens of most distributions.
const BAND: f32 = 4.0;

/// The distribution of a token.
pub(super) struct Distribution {
    logits: Vec<f32>,
    largest: f32,
    /// The logarithm of the sum of all logits' exponentials.
    total: f64,
}

impl Distribution {
    pub(super) fn new(logits: &[f32]) -> Self {
        let (set, len) = (InstructionSet::best(), logits.len());
        let mut logprobs = vec![0.0; len];
        simd::softmax(set, true, logits, len, &mut logprobs);
        // The likeliest token's logarithm is the most exact one.
        let likeliest = simd::argmax(set, logits);
        let of = |values: &[f32]| values.get(likeliest).map_or(0.0, |&x| x);
        let largest = of(logits);
        Self {
            total: f64::from(largest) - f64::from(of(&logprobs)),
            logits: logits.to_vec(),
            largest,
        }
    }

    fn candidate(&self, token: u32) -> Candidate {
        let logit = self.logits.get(token as usize);
        let logit = logit.copied().unwrap_or(f32::NEG_INFINITY);
        Candidate {
            token,
            logprob: (f64::from(logit) - self.total) as f32,
        }
    }

    /// Returns the logarithms for a token and for the `top` likeliest ones.
    pub(super) fn of(&self, token: u32, top: usize) -> TokenLogprobs {
        let mut ranking = Ranking::new(&self.logits, self.largest, BAND);
        let top = (0..top).map_while(|rank| ranking.get(rank));
        TokenLogprobs {
            chosen: self.candidate(token),
            top: top.map(|token| self.candidate(token)).collect(),
        }
    }
}
