//! Logarithms of the probabilities of tokens.

/// A token, and the natural logarithm of the probability that the model gave it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Candidate {
    /// The token.
    pub token: u32,
    /// The logarithm of its probability.
    pub logprob: f32,
}

/// The token that was chosen, and the likeliest ones in its place. Probabilities are the model's own: the
/// softmax of its logits, before temperature, penalties and biases.
#[derive(Clone, Debug, PartialEq)]
pub struct TokenLogprobs {
    /// The chosen token.
    pub chosen: Candidate,
    /// The likeliest tokens, in descending order.
    pub top: Vec<Candidate>,
}

/// The distribution of a token.
pub(super) struct Distribution {
    logits: Vec<f32>,
    /// The logarithm of the sum of all logits' exponentials.
    total: f64,
}

impl Distribution {
    pub(super) fn new(logits: &[f32]) -> Self {
        let largest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let above = logits
            .iter()
            .map(|&logit| libm::exp(f64::from(logit) - f64::from(largest)));
        Self {
            total: f64::from(largest) + libm::log(above.sum()),
            logits: logits.to_vec(),
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
        let mut order: Vec<u32> = (0..self.logits.len() as u32).collect();
        let descending = |a: &u32, b: &u32| {
            let [a, b] = [a, b].map(|&token| self.logits[token as usize]);
            b.total_cmp(&a)
        };
        let top = top.min(order.len());
        if (1..order.len()).contains(&top) {
            order.select_nth_unstable_by(top - 1, descending);
        }
        order.truncate(top);
        order.sort_by(descending);
        TokenLogprobs {
            chosen: self.candidate(token),
            top: order
                .into_iter()
                .map(|token| self.candidate(token))
                .collect(),
        }
    }
}
