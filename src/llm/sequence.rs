//! The tokens that a model has read, with their keys and values.

use super::LanguageModel;
use super::ScaledLora;
use super::lora::scaled;
use super::model::{KeptPositions, Model, SequenceRows, State, Wanted};
use crate::error::{Error, Result};
use crate::graph::choice::Choices;
use std::ops::Range;

/// A sequence of tokens. Its methods take the model that it was made for.
#[derive(Debug)]
pub(crate) struct Sequence {
    state: State,
    tokens: Vec<u32>,
    /// The first position whose keys and values the layers with a window still have.
    oldest: usize,
    lora: Vec<ScaledLora>,
}

impl Sequence {
    /// # Errors
    /// `InvalidArgument` for an encoder, which reads whole texts only; `OutOfMemory`; on a GPU `LimitExceeded` and `DeviceLost`.
    pub(crate) fn new(model: &LanguageModel) -> Result<Self> {
        model.model.check_decoder()?;
        Ok(Self {
            state: model.model.state()?,
            tokens: Vec::new(),
            oldest: 0,
            lora: Vec::new(),
        })
    }

    /// The tokens and positions that there are keys and values for.
    pub(super) fn kept(&self) -> KeptPositions {
        let len = self.tokens.len();
        let oldest = self.oldest.min(len);
        KeptPositions { len, oldest }
    }

    pub(crate) fn tokens(&self) -> &[u32] {
        &self.tokens
    }

    pub(super) fn state(&self) -> &State {
        &self.state
    }

    /// Gives the sequence a number: sequences of the same one never run at the same time.
    #[cfg(feature = "llm")]
    pub(super) fn set_number(&mut self, number: u64) {
        self.state.set_number(number);
    }

    pub(crate) fn lora(&self) -> &[ScaledLora] {
        &self.lora
    }

    /// Replaces the tokens, with their keys and values as [`Model::export`](super::model::Model::export) returns them.
    pub(super) async fn restore(
        &mut self,
        model: &LanguageModel,
        tokens: Vec<u32>,
        kept: KeptPositions,
        cache: &[f32],
    ) -> Result<()> {
        self.tokens.clear();
        model.model.import(&mut self.state, kept, cache).await?;
        self.tokens = tokens;
        self.oldest = kept.oldest;
        Ok(())
    }

    /// Prepares to read `count` tokens: keys and values of a window that later ones have taken the place of, before the
    /// sequence was cut, are computed again. Returns the position of the first token.
    async fn prepare(&mut self, model: &Model, count: usize) -> Result<usize> {
        let len = self.tokens.len();
        let Some([window, room]) = model.config.ring() else {
            return Ok(len);
        };
        if self.oldest > (len + 1).saturating_sub(window) {
            let adapters = scaled(&self.lora);
            self.oldest = usize::MAX; // Until all are read: the future may be dropped.
            let again = model.forward(&mut self.state, 0, &self.tokens, Wanted::Nothing, &adapters);
            again.await?;
            self.oldest = len.saturating_sub(room);
        }
        // Also if the tokens are not read to their end.
        self.oldest = self.oldest.max((len + count).saturating_sub(room));
        Ok(len)
    }

    /// Reads tokens and returns their requested results. Reads none of them if there is an error.
    ///
    /// # Errors
    /// The errors of [`Session::prefill_async`](super::Session::prefill_async).
    pub(crate) async fn read(
        &mut self,
        model: &LanguageModel,
        tokens: &[u32],
        wanted: Wanted,
    ) -> Result<Vec<f32>> {
        Self::check(model, self.tokens.len(), tokens)?;
        let model = &model.model;
        let first = self.prepare(model, tokens.len()).await?;
        let logits = model
            .forward(&mut self.state, first, tokens, wanted, &scaled(&self.lora))
            .await?;
        self.tokens.extend_from_slice(tokens);
        Ok(logits)
    }

    /// Reads tokens of several sequences in one pass, and returns the requested results of each. Each may share a pass with
    /// its number of tokens, and all have the adapters of the first. Reads none of them if there is an error.
    ///
    /// # Errors
    /// The errors of [`Sequence::read`].
    pub(crate) async fn read_together(
        model: &LanguageModel,
        reads: &mut [(&mut Self, &[u32], Wanted)],
    ) -> Result<Vec<Vec<f32>>> {
        let model = &model.model;
        for (sequence, tokens, _) in &mut *reads {
            model.check(sequence.tokens.len(), tokens)?;
            sequence.prepare(model, tokens.len()).await?;
        }
        let largest = reads.iter().all(|read| read.2 == Wanted::Largest);
        let all: Vec<u32> = reads.iter().flat_map(|read| read.1).copied().collect();
        let adapters = reads
            .first()
            .map_or(Vec::new(), |read| scaled(&read.0.lora));
        let logits = {
            let rows = reads.iter().map(|(sequence, tokens, _)| SequenceRows {
                state: &sequence.state,
                first: sequence.tokens.len(),
                tokens: tokens.len(),
            });
            let rows: Vec<_> = rows.collect();
            let logits = model.forward_together(&rows, &all, largest, &adapters);
            logits.await?
        };
        let len = if largest { 1 } else { model.vocabulary() };
        let mut rest = &logits[..];
        let results = reads.iter_mut().map(|(sequence, tokens, wanted)| {
            sequence.tokens.extend_from_slice(tokens);
            let rows = rest.split_off(..tokens.len() * len);
            wanted.of_rows(rows.unwrap_or_default(), len, largest)
        });
        Ok(results.collect())
    }

    /// Reads a token and chooses the next one, reads that, and so on; returns the chosen tokens, with `None` if the
    /// host must choose from all logits. `choices` are at most [`Model::ahead`](super::model::Model::ahead). The
    /// sequence has none of the tokens read until [`Sequence::advance`] adds them.
    ///
    /// # Errors
    /// The errors of [`Sequence::read`].
    pub(crate) async fn choose(
        &mut self,
        model: &LanguageModel,
        token: u32,
        choices: &Choices,
    ) -> Result<Vec<Option<u32>>> {
        Self::check(model, self.tokens.len(), &[token])?;
        let model = &model.model;
        model.check_room(self.tokens.len(), choices.draws.len())?;
        let first = self.prepare(model, choices.draws.len()).await?;
        let adapters = scaled(&self.lora);
        let chosen = model.choose(&mut self.state, first, token, choices, &adapters);
        let known = |index: f32| (index >= 0.0).then_some(index as u32);
        Ok(chosen.await?.into_iter().map(known).collect())
    }

    /// Adds a token that [`Sequence::choose`] has read.
    pub(crate) fn advance(&mut self, token: u32) {
        self.tokens.push(token);
    }

    /// Checks whether tokens can be read after the first `length` ones.
    ///
    /// # Errors
    /// The errors of [`Session::prefill_async`](super::Session::prefill_async).
    fn check(model: &LanguageModel, length: usize, tokens: &[u32]) -> Result<()> {
        if tokens.is_empty() {
            return Err(Error::Empty { op: "prefill" });
        }
        model.model.check(length, tokens)
    }

    /// Sets the adapters that later reads go through. Forgets all tokens if they change, since keys and
    /// values depend on them.
    ///
    /// # Errors
    /// `Foreign` for another model's adapter, `InvalidArgument` for a scale that is not finite.
    pub(crate) fn set_lora(&mut self, model: &LanguageModel, lora: &[ScaledLora]) -> Result<()> {
        if self.changes_lora(model, lora)? {
            self.lora = lora.to_vec();
            self.tokens.clear();
        }
        Ok(())
    }

    /// Checks adapters; returns whether they are other ones than the sequence has.
    fn changes_lora(&self, model: &LanguageModel, lora: &[ScaledLora]) -> Result<bool> {
        let changes = self.lora != lora;
        if changes {
            model.model.check_adapters(&scaled(lora))?;
        }
        Ok(changes)
    }

    /// Copies the sequence.
    ///
    /// # Errors
    /// `OutOfMemory`; on a GPU also `DeviceLost`.
    pub(crate) async fn fork(&self, model: &LanguageModel) -> Result<Self> {
        let kept = self.kept();
        let cache = model.model.export(&self.state, kept).await?;
        let mut fork = Self::new(model)?;
        fork.lora.clone_from(&self.lora);
        let tokens = self.tokens.clone();
        fork.restore(model, tokens, kept, &cache).await?;
        Ok(fork)
    }

    /// Forgets all tokens but the first `length`.
    ///
    /// # Errors
    /// `InvalidArgument` if there are fewer.
    pub(crate) fn rewind(&mut self, length: usize) -> Result<()> {
        if length > self.tokens.len() {
            let most = self.tokens.len();
            return Err(Error::invalid(
                "length",
                length.to_string(),
                format!("at most {most}"),
            ));
        }
        self.tokens.truncate(length);
        Ok(())
    }

    /// Forgets the tokens of a range and reads those after it again; returns the logits after the last one.
    pub(crate) async fn remove(
        &mut self,
        model: &LanguageModel,
        range: Range<usize>,
    ) -> Result<Vec<f32>> {
        let len = self.tokens.len();
        if range.start > range.end || range.end >= len {
            let value = format!("{range:?}");
            let requirement = format!("ascending and before the last of {len} tokens");
            return Err(Error::invalid("range", value, requirement));
        }
        let rest = self.tokens[range.end..].to_vec();
        self.rewind(range.start)?;
        self.read(model, &rest, Wanted::Last).await
    }

    /// Sets the adapters, and forgets all tokens from the first one on that differs from `prompt`, and at least the last
    /// one of `prompt`. Returns the number of tokens that remain: none if these were other adapters.
    ///
    /// # Errors
    /// The errors of [`Sequence::set_lora`], and of [`Sequence::read`] with the rest of `prompt`. The sequence stays as it
    /// was then.
    pub(crate) fn keep_prefix(
        &mut self,
        model: &LanguageModel,
        prompt: &[u32],
        lora: &[ScaledLora],
    ) -> Result<usize> {
        let changes = self.changes_lora(model, lora)?;
        let same = |(a, b): &(&u32, &u32)| !changes && a == b;
        let common = self.tokens.iter().zip(prompt).take_while(same).count();
        let length = common.min(prompt.len().saturating_sub(1));
        Self::check(model, length, &prompt[length..])?;
        if changes {
            self.lora = lora.to_vec();
        }
        self.rewind(length)?;
        Ok(length)
    }
}
