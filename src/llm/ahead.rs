//! Tokens that are chosen before anyone asks for them.

use std::collections::VecDeque;

use super::LanguageModel;
use super::sampling::Sampler;
use super::sequence::Sequence;
use crate::error::Result;
use crate::runtime::seconds;

/// The seconds for which a reader of an answer may wait before some tokens come at once.
const WAIT: f64 = 0.03;

/// The tokens after those of a sequence. Where a model on a GPU chooses several one after the other, the GPU need not wait
/// for the host between two of them.
#[derive(Debug, Default)]
pub(super) struct Ahead {
    /// The tokens chosen so far; the model has read all but the last. `None` if the host must choose from all logits;
    /// later tokens are then invalid.
    tokens: VecDeque<Option<u32>>,
    /// The number of tokens that were chosen last, and the seconds for each.
    last: Option<(usize, f64)>,
    /// The number of tokens that the host still chooses. It starts twice as high each time that a token needs all
    /// logits, because the GPU's pass after such a token is wasted.
    left: usize,
    /// The number that `left` last started from.
    pause: usize,
}

/// The largest number of tokens that the host chooses before a GPU tries again.
const LONGEST_PAUSE: usize = 64;

impl Ahead {
    /// Reads a token, and returns the next one. If `allowed` is given, the next token is one of these. If that takes
    /// all logits to choose, returns none and leaves the token unread. There are at most `most` more to come.
    ///
    /// # Errors
    /// The errors of [`Sequence::read`].
    pub(super) async fn next(
        &mut self,
        model: &LanguageModel,
        sequence: &mut Sequence,
        sampler: &mut Sampler,
        token: u32,
        (allowed, most): (Option<&[u32]>, usize),
    ) -> Result<Option<u32>> {
        if self.left > 0 {
            self.left -= 1;
            return Ok(None);
        }
        if self.tokens.is_empty() {
            // What is allowed after the next token depends on it.
            let most = if allowed.is_some() { 1 } else { most };
            let count = self.count(most.min(model.model.ahead()));
            let start = seconds();
            let mut choices = sampler.choices(&[sequence.tokens(), &[token]], count);
            choices.allowed = allowed.map(<[u32]>::to_vec);
            self.tokens = sequence.choose(model, token, &choices).await?.into();
            self.last = Some((count, (seconds() - start) / count as f64));
        }
        let next = self.tokens.pop_front().flatten();
        if next.is_some() {
            sequence.advance(token);
            sampler.skip(1);
            self.pause = 0;
        } else {
            let pause = (2 * self.pause + 1).min(LONGEST_PAUSE);
            *self = Self {
                left: pause - 1,
                pause,
                ..Self::default()
            };
        }
        Ok(next)
    }

    /// Returns whether no token is chosen yet.
    pub(super) fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }

    /// Returns the number of tokens to choose now: those of [`WAIT`], but at most twice as many as last time.
    fn count(&self, most: usize) -> usize {
        let count = self
            .last
            .map_or(1, |(count, each)| ((WAIT / each) as usize).min(2 * count));
        count.min(most).max(1)
    }
}
