//! Chat templates and JSON schemas. The feature `llm` links the crates that read them. The npm package has them in a
//! WebAssembly module of their own, since few answers need a JSON schema and many models no template.

#[cfg_attr(feature = "llm", path = "chat/linked.rs")]
#[cfg_attr(not(feature = "llm"), path = "chat/imported.rs")]
mod library;
mod text;

use super::LanguageModel;
use crate::error::Result;
pub(crate) use library::{ChatTemplate, Constraint, Vocabulary};
pub(crate) use text::Text;

impl LanguageModel {
    /// Reads a JSON schema for answers of this model.
    ///
    /// # Errors
    /// `InvalidArgument` if it is damaged, or needs an unsupported feature.
    pub(super) fn constraint(&self, schema: &str) -> Result<Constraint> {
        let vocabulary = if let Some(vocabulary) = self.trie.get() {
            vocabulary
        } else {
            let vocabulary = self.vocabulary()?;
            self.trie.get_or_init(|| vocabulary)
        };
        Constraint::new(vocabulary, schema)
    }

    /// Returns the vocabulary of schemas. One without a token that ends answers gets one more token for it, which no logit
    /// stands for: the parser needs one, and answers end where the JSON is complete.
    fn vocabulary(&self) -> Result<Vocabulary> {
        let len = self.model.vocabulary() as u32;
        let added = [len];
        let ends = if self.ends.is_empty() {
            &added
        } else {
            &*self.ends
        };
        let tokens = 0..len + u32::from(self.ends.is_empty());
        let words = tokens.map(|token| {
            let mut bytes = Vec::new();
            if (token as usize) < self.tokenizer.len() {
                self.tokenizer.decode(token, false, &mut bytes);
            }
            bytes
        });
        Vocabulary::new(words, ends)
    }
}

/// Makes the logits of tokens that are not allowed minus infinity. Bit `token % 32` of word `token / 32` allows a token.
pub(super) fn forbid(allowed: &[u32], logits: &mut [f32]) {
    for (logits, &bits) in logits.chunks_mut(32).zip(allowed) {
        for (bit, logit) in logits.iter_mut().enumerate() {
            if bits >> bit & 1 == 0 {
                *logit = f32::NEG_INFINITY;
            }
        }
    }
}
