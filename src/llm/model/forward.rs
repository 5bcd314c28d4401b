//! The forward pass: blocks of tokens through all layers.

#[cfg(feature = "gpu")]
use super::Executor;
use super::{Config, Model, State};
use crate::error::{Error, Result};

/// Tokens that go through the layers at a time.
pub(crate) const BLOCK: usize = 128;

/// Of which tokens logits are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// Of the last one.
    Last,
    /// Of all.
    All,
}

impl Model {
    /// Reads tokens after the first `first` ones and returns logits: rows of as many values as there
    /// are tokens in the vocabulary.
    ///
    /// The tokens must have passed [`Model::check`].
    ///
    /// # Errors
    /// `OutOfMemory`; on a GPU also `DeviceLost` and `Gpu`.
    pub(crate) async fn forward(
        &self,
        state: &mut State,
        mut first: usize,
        tokens: &[u32],
        wanted: Wanted,
    ) -> Result<Vec<f32>> {
        let mut logits = Vec::new();
        let blocks = tokens.len().div_ceil(BLOCK);
        for (index, block) in tokens.chunks(BLOCK).enumerate() {
            let rows = match wanted {
                Wanted::All => block.len(),
                Wanted::Last => usize::from(index + 1 == blocks),
            };
            match state {
                State::Cpu(sequence) => {
                    logits.extend_from_slice(sequence.read(self, first, block, rows)?);
                }
                #[cfg(feature = "gpu")]
                State::Gpu(sequence) => {
                    let Executor::Gpu(gpu) = &self.executor else {
                        return Err(foreign());
                    };
                    logits.extend(gpu.read(self, sequence, first, block, rows).await?);
                }
            }
            first += block.len();
        }
        Ok(logits)
    }

    /// Checks whether tokens can be read after the first `first` ones.
    ///
    /// # Errors
    /// `LimitExceeded` if the cache has no room for them, `InvalidArgument` for an unknown token.
    pub(crate) fn check(&self, first: usize, tokens: &[u32]) -> Result<()> {
        let vocabulary = self.weights.vocabulary();
        if let Some(token) = tokens.iter().find(|&&token| token as usize >= vocabulary) {
            return Err(Error::invalid(
                "tokens",
                token.to_string(),
                format!("below {vocabulary}"),
            ));
        }
        let capacity = self.config.capacity;
        if tokens.len() > capacity - first {
            return Err(Error::LimitExceeded {
                what: "the number of tokens in the context",
                value: (first + tokens.len()) as u64,
                limit: capacity as u64,
            });
        }
        Ok(())
    }

    /// Writes the embeddings of tokens.
    pub(super) fn embed(&self, tokens: &[u32], rows: &mut [f32]) -> Result<()> {
        let scale = self.config.embedding_scale();
        let embedding = self.weights.matrices[self.weights.embedding].matrix(&self.file)?;
        let rows = rows.chunks_exact_mut(self.config.width);
        for (&token, row) in tokens.iter().zip(rows) {
            embedding.dequantize_row(token as usize, row);
            for x in row {
                *x *= scale;
            }
        }
        Ok(())
    }
}

/// The error of a sequence that another model made.
#[cfg(feature = "gpu")]
fn foreign() -> Error {
    Error::Foreign {
        what: "session",
        owner: "model",
    }
}

impl Config {
    /// Returns the number of elements of all keys in a sequence's cache, which is that of the
    /// values, saturating.
    pub(crate) fn cache_len(&self) -> usize {
        let sizes = [self.kv_heads, self.capacity, self.head_len];
        sizes.into_iter().fold(self.layers, usize::saturating_mul)
    }

    /// Returns the length of a token's queries, and of its keys.
    pub(super) fn projections(&self) -> (usize, usize) {
        (self.heads * self.head_len, self.kv_heads * self.head_len)
    }
}
