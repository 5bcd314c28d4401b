//! Answers by a JSON schema. Before each choice the crate `llguidance` masks the tokens that the schema does not
//! allow.

use super::LanguageModel;
use crate::error::{Error, Result};
use llguidance::api::{ParserLimits, TopLevelGrammar};
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
        Self::within(model.token_trie(), schema, &ParserLimits::default())
    }

    /// Reads a JSON schema whose work and memory have these limits.
    fn within(vocabulary: &TokEnv, schema: &str, limits: &ParserLimits) -> Result<Self> {
        let fault = |error: String| {
            Error::invalid("json_schema", schema.to_owned(), format!("valid: {error}"))
        };
        let parsed = serde_json::from_str(schema).map_err(|error| fault(error.to_string()))?;
        let grammar = TopLevelGrammar::from_json_schema(parsed);
        let parser = ParserFactory::new_simple(vocabulary).and_then(|mut factory| {
            *factory.limits_mut() = ParserLimits {
                // The parser's state is no part of an error's message.
                verbose_errors: false,
                ..limits.clone()
            };
            factory.quiet().create_parser(grammar)
        });
        let parser = parser.map_err(|error| fault(error.to_string()))?;
        Ok(Self(Matcher::new(Ok(parser))))
    }

    /// Makes the logits of tokens that the schema does not allow here minus infinity.
    ///
    /// # Errors
    /// `InvalidArgument` with the reason if the schema takes too much work or memory here.
    pub(super) fn mask(&mut self, logits: &mut [f32]) -> Result<()> {
        let mask = self.0.compute_mask_or_eos();
        let mask = mask.map_err(|error| too_complex(&error.to_string()))?;
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

/// The error of a schema that is valid, but takes too much work for one token.
fn too_complex(reason: &str) -> Error {
    // The parser marks messages without its state.
    let reason = reason.trim_end_matches("<non-verbose/>").trim_end();
    let requirement = format!("a schema that takes less work for one token: {reason}");
    Error::invalid("json_schema", "too complex", requirement)
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

#[cfg(test)]
mod tests {
    use super::{ApproximateTokEnv, Constraint, ParserLimits};

    #[test]
    fn schemas_that_take_too_much_work_are_refused_with_the_reason() {
        let vocabulary = ApproximateTokEnv::single_byte_env();
        let limits = ParserLimits {
            step_lexer_fuel: 1,
            ..ParserLimits::default()
        };
        let schema = r#"{ "type": "string", "pattern": "^(a|b)*a(a|b){9}$" }"#;
        let mut logits = [0.0; 256];
        let mut constraint = Constraint::within(&vocabulary, schema, &limits).unwrap();
        let mut step = |token: u8| {
            constraint.mask(&mut logits)?;
            constraint.accept(u32::from(token))
        };
        let error = b"\"aaaaaaaaa".iter().find_map(|&token| step(token).err());
        let error = error.unwrap();
        let message = error.to_string();
        assert_eq!(error.code(), "INVALID_ARGUMENT", "{message}");
        assert!(
            message.starts_with("`json_schema` is too complex"),
            "{message}"
        );
        assert!(!message.contains('<'), "{message}");
        let (_, reason) = message.rsplit_once("token: ").unwrap_or_default();
        assert!(!reason.is_empty(), "{message}");
    }
}
