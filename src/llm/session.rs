//! A sequence of tokens with its cache.

use super::LanguageModel;
use super::model::{KvCache, Wanted};
use crate::error::{Error, Result};

/// A sequence of tokens that a model has read, which can be continued and rewound.
///
/// Memory for keys and values is allocated once, for as many tokens as
/// [`LoadOptions::context_length`](super::LoadOptions::context_length).
#[derive(Debug)]
pub struct Session<'a> {
    model: &'a LanguageModel,
    cache: KvCache,
    tokens: Vec<u32>,
}

impl<'a> Session<'a> {
    pub(super) fn new(model: &'a LanguageModel) -> Result<Self> {
        let cache = KvCache::new(&model.model.config, model.context_length)?;
        Ok(Self {
            model,
            cache,
            tokens: Vec::new(),
        })
    }

    /// The tokens read so far.
    pub fn tokens(&self) -> &[u32] {
        &self.tokens
    }

    /// Reads tokens and returns the logits after the last one, one for each token of the vocabulary.
    ///
    /// # Errors
    /// `Empty` for no tokens, `LimitExceeded` if the context has no room for them,
    /// `InvalidArgument` for a token beyond the vocabulary; none of them is read then.
    pub fn prefill(&mut self, tokens: &[u32]) -> Result<Vec<f32>> {
        self.read(tokens, Wanted::Last)
    }

    /// Reads tokens and returns the logits after each of them, row after row.
    ///
    /// # Errors
    /// The errors of [`Session::prefill`].
    pub fn logits(&mut self, tokens: &[u32]) -> Result<Vec<f32>> {
        self.read(tokens, Wanted::All)
    }

    /// Reads one token and returns the logits after it.
    ///
    /// # Errors
    /// The errors of [`Session::prefill`].
    pub fn decode(&mut self, token: u32) -> Result<Vec<f32>> {
        self.read(&[token], Wanted::Last)
    }

    fn read(&mut self, tokens: &[u32], wanted: Wanted) -> Result<Vec<f32>> {
        if tokens.is_empty() {
            return Err(Error::Empty { op: "prefill" });
        }
        let logits = self.model.model.forward(&mut self.cache, tokens, wanted);
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

    /// Forgets all tokens but the first `len`.
    ///
    /// # Errors
    /// `InvalidArgument` if there are fewer.
    pub fn rewind(&mut self, len: usize) -> Result<()> {
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
}
