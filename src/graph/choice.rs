//! The choice of a token from logits.

/// The penalties of tokens that have occurred.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Penalties {
    /// Divides positive logits and multiplies negative ones; 1 is no penalty.
    pub(crate) repetition: f32,
    /// The number that is subtracted if the token occurred.
    pub(crate) presence: f32,
    /// The number that is subtracted once for each time that the token occurred.
    pub(crate) frequency: f32,
}

impl Penalties {
    pub(crate) fn any(self) -> bool {
        self.repetition != 1.0 || self.presence != 0.0 || self.frequency != 0.0
    }

    /// Returns a logit as a change makes it. Back-ends may subtract from the product without rounding it first, so that
    /// their results differ by up to 2⁻²³ of the product; division by `repetition` differs by as much.
    pub(crate) fn apply(self, logit: f32, change: Change) -> f32 {
        let logit = logit + change.bias;
        if change.count == 0 {
            return logit;
        }
        let factor = if logit > 0.0 {
            1.0 / self.repetition
        } else {
            self.repetition
        };
        logit * factor - (self.presence + self.frequency * change.count as f32)
    }
}

/// A token's bias, which is added to its logit, and the number of times that it occurred.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Change {
    pub(crate) token: u32,
    pub(crate) bias: f32,
    pub(crate) count: u32,
}

/// The bias that forbids a token on back-ends, since shaders may know no infinity.
const LEAST_BIAS: f32 = -1e30;

impl Change {
    /// Returns the token, the bias and the count of each change.
    pub(crate) fn list(changes: &[Self]) -> Vec<f32> {
        let numbers = |change: &Self| {
            let bias = change.bias.max(LEAST_BIAS);
            [change.token as f32, bias, change.count as f32]
        };
        changes.iter().flat_map(numbers).collect()
    }
}

/// How tokens are chosen one after the other.
#[derive(Clone, Debug)]
pub(crate) struct Choices {
    /// The changes of logits by the tokens that occurred before the first chosen one.
    pub(crate) changes: Vec<Change>,
    pub(crate) penalties: Penalties,
    /// The tokens that may be chosen if not all may, as bits: bit `token % 32` of word `token / 32`. They are those of the
    /// first choice, and there is no other.
    pub(crate) allowed: Option<Vec<u32>>,
    /// For each token its draw, or none where the largest logit is the choice.
    pub(crate) draws: Vec<Option<Draw>>,
}

/// Changes of logits in a back-end's memory.
pub(crate) struct Changes<B> {
    /// The changes, in the form that [`Change::list`] returns.
    pub(crate) list: B,
    /// The number of changes.
    pub(crate) len: usize,
    pub(crate) penalties: Penalties,
}

/// The largest number of tokens that are chosen one after the other before the host learns of the first.
pub(crate) const AHEAD: usize = 8;

/// The likeliest tokens that back-ends rank. A draw within a larger `top_k` needs all logits.
pub(crate) const RANKED: usize = 64;

/// The limits of the tokens to choose from; [`Sampling`](crate::llm::Sampling) describes them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Divides logits; not 0.
    pub(crate) temperature: f32,
    pub(crate) top_k: usize,
    pub(crate) top_p: f32,
    pub(crate) min_p: f32,
}

impl Limits {
    /// Returns the number of ranked tokens that may be drawn, of `len` tokens, and whether the limits exclude all
    /// others.
    pub(crate) fn ranked(&self, len: usize) -> (usize, bool) {
        let most = match self.top_k {
            0 => len,
            top_k => top_k.min(len),
        };
        (most.min(RANKED), most <= RANKED)
    }
}

/// A draw of a token: the one at the fraction `uniform` of the probabilities within limits, the likeliest token first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Draw {
    pub(crate) limits: Limits,
    pub(crate) uniform: f32,
}
