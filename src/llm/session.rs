//! A sequence of tokens that users read, continue and rewind.

use super::model::Wanted;
use super::sequence::Sequence;
use super::{LanguageModel, ScaledLora};
use crate::error::Result;
use std::ops::Range;

/// A sequence of tokens that a model has read, which can be continued and rewound.
///
/// Memory for keys and values of [`LoadOptions::context_length`](super::LoadOptions::context_length) tokens is allocated
/// once on a GPU, and grows with the tokens on SIMD.
#[derive(Debug)]
pub struct Session {
    pub(super) model: LanguageModel,
    pub(super) sequence: Sequence,
}

impl Session {
    pub(super) fn new(model: &LanguageModel) -> Result<Self> {
        Ok(Self {
            sequence: Sequence::new(model)?,
            model: model.clone(),
        })
    }

    /// The model that reads the tokens.
    pub fn model(&self) -> &LanguageModel {
        &self.model
    }

    /// The tokens read so far.
    pub fn tokens(&self) -> &[u32] {
        self.sequence.tokens()
    }

    /// Reads tokens and returns the logits after the last one, one for each token of the vocabulary.
    ///
    /// # Errors
    /// `Empty` for no tokens, `LimitExceeded` if the context has no room for them,
    /// `InvalidArgument` for a token beyond the vocabulary; `OutOfMemory`; on a GPU `DeviceLost` and `Gpu`. None of the
    /// tokens is read then, nor after the future was dropped.
    pub async fn prefill_async(&mut self, tokens: &[u32]) -> Result<Vec<f32>> {
        self.sequence.read(&self.model, tokens, Wanted::Last).await
    }

    /// Reads tokens and returns the logits after each of them, row after row.
    ///
    /// # Errors
    /// The errors of [`Session::prefill_async`].
    pub async fn logits_async(&mut self, tokens: &[u32]) -> Result<Vec<f32>> {
        self.sequence.read(&self.model, tokens, Wanted::All).await
    }

    /// Reads one token and returns the logits after it.
    ///
    /// # Errors
    /// The errors of [`Session::prefill_async`].
    pub async fn decode_async(&mut self, token: u32) -> Result<Vec<f32>> {
        self.sequence
            .read(&self.model, &[token], Wanted::Last)
            .await
    }

    /// Forgets all tokens but the first `length`. Layers with a window keep the keys and values of 512 tokens before it; after
    /// a cut by more, the next call reads the remaining tokens again.
    ///
    /// # Errors
    /// `InvalidArgument` if there are fewer.
    pub fn rewind(&mut self, length: usize) -> Result<()> {
        self.sequence.rewind(length)
    }

    /// Sets the adapters that later tokens are read with; none is the model itself. If they are not the
    /// ones so far, all tokens are forgotten: their keys and values depend on the adapters.
    ///
    /// # Errors
    /// `Foreign` for another model's adapter, `InvalidArgument` for a scale that is not finite.
    pub fn set_lora(&mut self, lora: &[ScaledLora]) -> Result<()> {
        self.sequence.set_lora(&self.model, lora)
    }

    /// Forgets the tokens of a range, and reads those after it again at their new positions. This makes
    /// room in a context that is full, at the cost of a prefill; returns the logits after the last token.
    ///
    /// # Errors
    /// `InvalidArgument` if the range is not ascending or does not end before the last token; nothing changes then. The
    /// errors of [`Session::prefill_async`]; the session has only the tokens before the range then.
    pub async fn remove_async(&mut self, range: Range<usize>) -> Result<Vec<f32>> {
        self.sequence.remove(&self.model, range).await
    }

    /// Copies the session, so that both can be continued.
    ///
    /// # Errors
    /// `OutOfMemory`; on a GPU also `DeviceLost`.
    pub async fn fork_async(&self) -> Result<Self> {
        Ok(Self {
            sequence: self.sequence.fork(&self.model).await?,
            model: self.model.clone(),
        })
    }

    /// Returns the session as bytes, for [`LanguageModel::load_session_async`]: the tokens with their keys and
    /// values.
    ///
    /// # Errors
    /// `OutOfMemory`; on a GPU also `DeviceLost`.
    pub async fn save_async(&self) -> Result<Vec<u8>> {
        self.sequence.save(&self.model).await
    }
}

impl LanguageModel {
    /// Makes a session of the bytes that [`Session::save_async`] returned, on any back-end. `lora` are the
    /// adapters that it had, whose weights are not part of the bytes.
    ///
    /// # Errors
    /// `InvalidModel` if the bytes are damaged, or another model or other adapters wrote them, or the same model with
    /// another [`LoadOptions::cache_type`](super::LoadOptions::cache_type);
    /// `LimitExceeded` if the context is too short; `Foreign` for another model's adapter, `InvalidArgument` for a scale
    /// that is not finite; `OutOfMemory`, `DeviceLost`.
    pub async fn load_session_async(&self, bytes: &[u8], lora: &[ScaledLora]) -> Result<Session> {
        Ok(Session {
            sequence: Sequence::load(self, bytes, lora).await?,
            model: self.clone(),
        })
    }

    /// Blocking version of [`LanguageModel::load_session_async`].
    #[cfg(not(target_arch = "wasm32"))]
    pub fn load_session(&self, bytes: &[u8], lora: &[ScaledLora]) -> Result<Session> {
        crate::runtime::block_on(self.load_session_async(bytes, lora))
    }
}

/// Blocking versions.
#[cfg(not(target_arch = "wasm32"))]
impl Session {
    /// Blocking version of [`Session::prefill_async`].
    pub fn prefill(&mut self, tokens: &[u32]) -> Result<Vec<f32>> {
        crate::runtime::block_on(self.prefill_async(tokens))
    }

    /// Blocking version of [`Session::logits_async`].
    pub fn logits(&mut self, tokens: &[u32]) -> Result<Vec<f32>> {
        crate::runtime::block_on(self.logits_async(tokens))
    }

    /// Blocking version of [`Session::remove_async`].
    pub fn remove(&mut self, range: Range<usize>) -> Result<Vec<f32>> {
        crate::runtime::block_on(self.remove_async(range))
    }

    /// Blocking version of [`Session::fork_async`].
    pub fn fork(&self) -> Result<Self> {
        crate::runtime::block_on(self.fork_async())
    }

    /// Blocking version of [`Session::save_async`].
    pub fn save(&self) -> Result<Vec<u8>> {
        crate::runtime::block_on(self.save_async())
    }

    /// Blocking version of [`Session::decode_async`].
    pub fn decode(&mut self, token: u32) -> Result<Vec<f32>> {
        crate::runtime::block_on(self.decode_async(token))
    }
}
