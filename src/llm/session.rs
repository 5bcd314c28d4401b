//! A sequence of tokens that users read, continue and rewind.

use super::LanguageModel;
use super::model::Wanted;
use super::sequence::Sequence;
use crate::error::Result;

/// A sequence of tokens that a model has read, which can be continued and rewound.
///
/// Memory for keys and values is allocated once, for as many tokens as
/// [`LoadOptions::context_length`](super::LoadOptions::context_length).
#[derive(Debug)]
pub struct Session<'a> {
    model: &'a LanguageModel,
    sequence: Sequence,
}

impl<'a> Session<'a> {
    pub(super) fn new(model: &'a LanguageModel) -> Result<Self> {
        let sequence = Sequence::new(model)?;
        Ok(Self { model, sequence })
    }

    /// The tokens read so far.
    pub fn tokens(&self) -> &[u32] {
        self.sequence.tokens()
    }

    /// Reads tokens and returns the logits after the last one, one for each token of the vocabulary.
    ///
    /// # Errors
    /// `Empty` for no tokens, `LimitExceeded` if the context has no room for them,
    /// `InvalidArgument` for a token beyond the vocabulary; none of them is read then.
    pub async fn prefill_async(&mut self, tokens: &[u32]) -> Result<Vec<f32>> {
        self.sequence.read(self.model, tokens, Wanted::Last).await
    }

    /// Reads tokens and returns the logits after each of them, row after row.
    ///
    /// # Errors
    /// The errors of [`Session::prefill_async`].
    pub async fn logits_async(&mut self, tokens: &[u32]) -> Result<Vec<f32>> {
        self.sequence.read(self.model, tokens, Wanted::All).await
    }

    /// Reads one token and returns the logits after it.
    ///
    /// # Errors
    /// The errors of [`Session::prefill_async`].
    pub async fn decode_async(&mut self, token: u32) -> Result<Vec<f32>> {
        self.sequence.read(self.model, &[token], Wanted::Last).await
    }

    /// Forgets all tokens but the first `len`.
    ///
    /// # Errors
    /// `InvalidArgument` if there are fewer.
    pub fn rewind(&mut self, len: usize) -> Result<()> {
        self.sequence.rewind(len)
    }
}

/// Blocking versions.
#[cfg(not(target_arch = "wasm32"))]
impl Session<'_> {
    /// Blocking version of [`Session::prefill_async`].
    pub fn prefill(&mut self, tokens: &[u32]) -> Result<Vec<f32>> {
        crate::runtime::block_on(self.prefill_async(tokens))
    }

    /// Blocking version of [`Session::logits_async`].
    pub fn logits(&mut self, tokens: &[u32]) -> Result<Vec<f32>> {
        crate::runtime::block_on(self.logits_async(tokens))
    }

    /// Blocking version of [`Session::decode_async`].
    pub fn decode(&mut self, token: u32) -> Result<Vec<f32>> {
        crate::runtime::block_on(self.decode_async(token))
    }
}
