//! Answers by a JSON schema. Before each choice the crate `llguidance` masks the tokens that the schema does not
//! allow.

use super::LanguageModel;
use crate::error::{Error, Result};
use llguidance::api::TopLevelGrammar;
use llguidance::toktrie::{ApproximateTokEnv, TokEnv, TokRxInfo, TokTrie};
use llguidance::{Matcher, ParserFactory};
use std::fmt;
use std::sync::Arc;

/// The schema of an answer in the making.
pub(super) struct Constraint(Matcher);

impl fmt::Debug for Constraint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Constraint")
    }
}

impl Constraint {
    /// Reads a JSON schema.
    ///
    /// # Errors
    /// `InvalidArgument` if it is damaged, or needs what is not supported.
    pub(super) fn new(model: &LanguageModel, schema: &str) -> Result<Self> {
        let fault = |error: String| {
            Error::invalid("json_schema", schema.to_owned(), format!("valid: {error}"))
        };
        let parsed = serde_json::from_str(schema).map_err(|error| fault(error.to_string()))?;
        let grammar = TopLevelGrammar::from_json_schema(parsed);
        let factory = ParserFactory::new_simple(model.token_trie());
        let parser = factory.and_then(|mut factory| factory.quiet().create_parser(grammar));
        let parser = parser.map_err(|error| fault(error.to_string()))?;
        Ok(Self(Matcher::new(Ok(parser))))
    }

    /// Makes the logits of tokens that the schema does not allow here minus infinity.
    ///
    /// # Errors
    /// `LimitExceeded` if the schema takes too much work or memory here.
    pub(super) fn mask(&mut self, logits: &mut [f32]) -> Result<()> {
        let mask = self.0.compute_mask_or_eos().map_err(|_| too_large())?;
        for (token, logit) in logits.iter_mut().enumerate() {
            if !mask.is_allowed(token as u32) {
                *logit = f32::NEG_INFINITY;
            }
        }
        Ok(())
    }

    /// Adds a token to the answer. Returns whether the JSON is complete.
    ///
    /// # Errors
    /// `InvalidArgument` for a token that the schema does not allow.
    pub(super) fn accept(&mut self, token: u32) -> Result<bool> {
        let accepted = self.0.consume_token(token);
        accepted.map_err(|_| {
            Error::invalid("after", token.to_string(), "tokens that the schema allows")
        })?;
        Ok(self.0.is_stopped())
    }
}

fn too_large() -> Error {
    Error::LimitExceeded {
        what: "the work of a schema for one token",
        value: u64::MAX,
        limit: llguidance::api::ParserLimits::default().step_lexer_fuel,
    }
}

impl LanguageModel {
    /// The vocabulary as a tree of bytes, which is built once.
    fn token_trie(&self) -> &TokEnv {
        self.trie.get_or_init(|| {
            let tokens = 0..self.model.vocabulary() as u32;
            let words: Vec<Vec<u8>> = tokens.map(|token| self.word(token)).collect();
            let end = self.ends.first().copied().unwrap_or_default();
            let info = TokRxInfo::new(words.len() as u32, end);
            let trie = TokTrie::from(&info, &words).with_eos_tokens(&self.ends);
            Arc::new(ApproximateTokEnv::new(trie))
        })
    }

    /// The bytes of a token. Those of control tokens begin with a byte that is not in UTF-8, so that no schema
    /// allows them.
    fn word(&self, token: u32) -> Vec<u8> {
        let mut bytes = Vec::new();
        if (token as usize) < self.tokenizer.len() {
            self.tokenizer.decode(token, false, &mut bytes);
        }
        if bytes.is_empty() || self.is_end(token) {
            bytes = vec![TokTrie::SPECIAL_TOKEN_MARKER];
            bytes.extend(format!("<[{token}]>").bytes());
        }
        bytes
    }
}
