//! The tokens that a model has read, with their keys and values.

use super::LanguageModel;
use super::model::{KvCache, Wanted};
use crate::error::{Error, Result};

/// A sequence of tokens. Its methods take the model that it was made for.
#[derive(Debug)]
pub(crate) struct Sequence {
    cache: KvCache,
    tokens: Vec<u32>,
}

impl Sequence {
    pub(crate) fn new(model: &LanguageModel) -> Result<Self> {
        let cache = KvCache::new(&model.model.config, model.context_length)?;
        Ok(Self {
            cache,
            tokens: Vec::new(),
        })
    }

    pub(super) fn tokens(&self) -> &[u32] {
        &self.tokens
    }

    /// Reads tokens and returns the wanted logits. Reads none of them if there is an error.
    ///
    /// # Errors
    /// The errors of [`Session::prefill`](super::Session::prefill).
    pub(super) fn read(
        &mut self,
        model: &LanguageModel,
        tokens: &[u32],
        wanted: Wanted,
    ) -> Result<Vec<f32>> {
        self.check(model, tokens)?;
        let logits = model.model.forward(&mut self.cache, tokens, wanted);
        match logits {
            Ok(logits) => {
                self.tokens.extend_from_slice(tokens);
                Ok(logits)
            }
            Err(error) => {
                self.cache.len = self.tokens.len();
                Err(error)
            }
        }
    }

    /// Checks whether tokens can be read.
    ///
    /// # Errors
    /// The errors of [`Session::prefill`](super::Session::prefill).
    pub(super) fn check(&self, model: &LanguageModel, tokens: &[u32]) -> Result<()> {
        if tokens.is_empty() {
            return Err(Error::Empty { op: "prefill" });
        }
        model.model.check(&self.cache, tokens)
    }

    /// Forgets all tokens but the first `len`.
    ///
    /// # Errors
    /// `InvalidArgument` if there are fewer.
    pub(super) fn rewind(&mut self, len: usize) -> Result<()> {
        if len > self.tokens.len() {
            let most = self.tokens.len();
            return Err(Error::invalid(
                "len",
                len.to_string(),
                format!("at most {most}"),
            ));
        }
        self.tokens.truncate(len);
        self.cache.len = len;
        Ok(())
    }

    /// Forgets all tokens from the first one on that differs from `prompt`, and at least the last
    /// one of `prompt`. Returns the number of tokens that remain.
    pub(super) fn keep_prefix(&mut self, prompt: &[u32]) -> Result<usize> {
        let same = |(a, b): &(&u32, &u32)| a == b;
        let common = self.tokens.iter().zip(prompt).take_while(same).count();
        let len = common.min(prompt.len().saturating_sub(1));
        self.rewind(len)?;
        Ok(len)
    }
}
