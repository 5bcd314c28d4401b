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
    /// Reads a JSON schema that an answer of this model shall have.
    ///
    /// # Errors
    /// `InvalidArgument` if it is damaged, or needs what is not supported.
    pub(super) fn constraint(&self, schema: &str) -> Result<Constraint> {
        Constraint::new(self.trie.get_or_init(|| self.vocabulary()), schema)
    }

    fn vocabulary(&self) -> Vocabulary {
        let tokens = 0..self.model.vocabulary() as u32;
        let words = tokens.map(|token| {
            let mut bytes = Vec::new();
            if (token as usize) < self.tokenizer.len() {
                self.tokenizer.decode(token, false, &mut bytes);
            }
            bytes
        });
        Vocabulary::new(words, &self.ends)
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
