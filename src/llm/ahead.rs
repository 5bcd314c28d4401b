//! Tokens that are chosen before anyone asks for them.

use std::collections::VecDeque;

use super::LanguageModel;
use super::sequence::Sequence;
use crate::error::Result;
use crate::runtime::seconds;

/// The seconds for which a reader of an answer may wait before some tokens come at once.
const WAIT: f64 = 0.03;

/// The likeliest tokens after those of a sequence. Where a model on a GPU chooses several one after the other, the GPU
/// need not wait for the host between two of them.
#[derive(Debug, Default)]
pub(super) struct Ahead {
    /// The tokens chosen so far, of which the model has read all but the last.
    tokens: VecDeque<u32>,
    /// The number of tokens that were chosen last, and the seconds for each.
    last: Option<(usize, f64)>,
}

impl Ahead {
    /// Reads a token, and returns the likeliest one after it. There are at most `most` more to come.
    ///
    /// # Errors
    /// The errors of [`Sequence::read`].
    pub(super) async fn next(
        &mut self,
        model: &LanguageModel,
        sequence: &mut Sequence,
        token: u32,
        most: usize,
    ) -> Result<u32> {
        if self.tokens.is_empty() {
            let count = self.count(most.min(model.model.ahead()));
            let start = seconds();
            self.tokens = sequence.choose(model, token, count).await?.into();
            self.last = Some((count, (seconds() - start) / count as f64));
        } else {
            sequence.advance(token);
        }
        Ok(self.tokens.pop_front().unwrap_or_default())
    }

    /// Returns the number of tokens to choose now: those of [`WAIT`], but at most twice as many as last time.
    fn count(&self, most: usize) -> usize {
        let count = self
            .last
            .map_or(1, |(count, each)| ((WAIT / each) as usize).min(2 * count));
        count.min(most).max(1)
    }
}
