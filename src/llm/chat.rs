//! Chat templates and JSON schemas. The feature `llm` links the crates that read them. The npm package has them in a
//! WebAssembly module of their own, since few answers need a JSON schema and many models no template.

#[cfg_attr(feature = "llm", path = "chat/linked.rs")]
#[cfg_attr(not(feature = "llm"), path = "chat/imported.rs")]
mod library;
mod text;

use super::LanguageModel;
use crate::error::Result;
pub(crate) use library::{AnswerReader, ChatRequest, ChatTemplate, Constraint, Vocabulary};
pub(crate) use text::Text;

/// The control tokens of formats of calls and of reasoning. A vocabulary has some of them, or texts in their place.
const MARKERS: [&str; 11] = [
    "<tool_call>",
    "</tool_call>",
    "[TOOL_CALLS]",
    "[ARGS]",
    "<|tool_call_start|>",
    "<|tool_call_end|>",
    "<|python_tag|>",
    "<think>",
    "</think>",
    "[THINK]",
    "[/THINK]",
];

/// A conversation as text, and how its answer is held and read.
#[derive(Debug)]
pub(crate) struct Rendered {
    pub(crate) text: Text,
    /// The grammar of the answer, if it has calls.
    pub(crate) grammar: Option<String>,
    /// Divides the answer, if it may have calls or reasoning.
    pub(crate) reader: Option<AnswerReader>,
}

impl LanguageModel {
    /// The control tokens of the vocabulary that formats of calls use.
    pub(super) fn markers(&self) -> Vec<(String, u32)> {
        let markers = MARKERS.into_iter().filter_map(|text| {
            let id = self.tokenizer.id(text)?;
            let mut bytes = Vec::new();
            self.tokenizer.decode(id, false, &mut bytes);
            bytes.is_empty().then(|| (text.to_owned(), id))
        });
        markers.collect()
    }

    /// Reads a JSON schema for answers of this model.
    ///
    /// # Errors
    /// `InvalidArgument` if it is damaged, or needs an unsupported feature.
    pub(super) fn schema_constraint(&self, schema: &str) -> Result<Constraint> {
        Constraint::new(self.words()?, schema)
    }

    /// Reads a grammar for answers of this model.
    ///
    /// # Errors
    /// `InvalidArgument` if it needs an unsupported feature.
    pub(super) fn grammar_constraint(&self, grammar: &str) -> Result<Constraint> {
        Constraint::of_grammar(self.words()?, grammar)
    }

    /// The vocabulary for schemas and grammars.
    fn words(&self) -> Result<&Vocabulary> {
        if let Some(vocabulary) = self.trie.get() {
            return Ok(vocabulary);
        }
        let vocabulary = self.vocabulary()?;
        Ok(self.trie.get_or_init(|| vocabulary))
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
