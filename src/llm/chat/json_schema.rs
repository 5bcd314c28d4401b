//! Answers by a JSON schema, whose allowed tokens the crate `llguidance` finds.

use super::schema_keywords;
use crate::error::{Error, Result};
use llguidance::api::{ParserLimits, TopLevelGrammar};
use llguidance::toktrie::{ApproximateTokEnv, TokEnv, TokRxInfo, TokTrie};
use llguidance::{Matcher, ParserFactory};
use serde_json::{Value, json};
use std::fmt;
use std::sync::Arc;

/// The vocabulary as a tree of bytes.
pub(crate) struct Vocabulary(TokEnv);

impl Vocabulary {
    /// Builds the tree of the bytes of all tokens, of which `ends` end an answer. Tokens without bytes, and those that
    /// end answers, get a byte that is not in UTF-8, so that no schema allows them inside the JSON.
    pub(crate) fn new(words: impl Iterator<Item = Vec<u8>>, ends: &[u32]) -> Self {
        let words = words.zip(0..);
        let words = words.map(|(bytes, token)| match bytes {
            bytes if !bytes.is_empty() && !ends.contains(&token) => bytes,
            _ => special(token),
        });
        let words: Vec<Vec<u8>> = words.collect();
        let end = ends.first().copied().unwrap_or_default();
        let info = TokRxInfo::new(words.len() as u32, end);
        let trie = TokTrie::from(&info, &words).with_eos_tokens(ends);
        Self(Arc::new(ApproximateTokEnv::new(trie)))
    }
}

/// The bytes of a token that is no text.
fn special(token: u32) -> Vec<u8> {
    let mut bytes = vec![TokTrie::SPECIAL_TOKEN_MARKER];
    bytes.extend(format!("<[{token}]>").bytes());
    bytes
}

/// Sets the white space of answers, unless a schema's options do: one space after commas and colons. Small models that may
/// choose write empty lines for ever.
fn set_white_space(options: &mut Value) {
    const FLEXIBLE: &str = "whitespace_flexible";
    let options = options.as_object_mut();
    let Some(options) = options.filter(|options| !options.contains_key(FLEXIBLE)) else {
        return;
    };
    options.insert(FLEXIBLE.to_owned(), false.into());
    for (name, separator) in [("item_separator", ", "), ("key_separator", ": ")] {
        let option = options.entry(name);
        option.or_insert_with(|| separator.into());
    }
}

/// The schema of an answer in the making.
pub(crate) struct Constraint(Matcher);

impl fmt::Debug for Constraint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Constraint")
    }
}

impl Constraint {
    /// Reads a JSON schema.
    ///
    /// # Errors
    /// `InvalidArgument` if it is damaged, has a keyword that does not exist, or needs what is not supported.
    pub(crate) fn new(vocabulary: &Vocabulary, schema: &str) -> Result<Self> {
        Self::within(&vocabulary.0, schema, &ParserLimits::default())
    }

    /// Reads a JSON schema whose work and memory have these limits.
    fn within(vocabulary: &TokEnv, schema: &str, limits: &ParserLimits) -> Result<Self> {
        let fault = |error: String| {
            let hint = if error.contains("coerce_one_of") {
                " (`\"x-guidance\": { \"coerce_one_of\": true }` in the schema)"
            } else {
                ""
            };
            Error::invalid(
                "json_schema",
                schema.to_owned(),
                format!("valid: {error}{hint}"),
            )
        };
        let mut parsed: Value =
            serde_json::from_str(schema).map_err(|error| fault(error.to_string()))?;
        schema_keywords::check(&parsed)?;
        if let Some(object) = parsed.as_object_mut() {
            let options = object.entry("x-guidance").or_insert_with(|| json!({}));
            set_white_space(options);
        }
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

    /// Returns the tokens that the schema allows here, as bits: that of a token is bit `token % 32` of word `token / 32`.
    ///
    /// # Errors
    /// `InvalidArgument` with the reason if the schema takes too much work or memory here.
    pub(crate) fn allowed(&mut self) -> Result<Vec<u32>> {
        let mask = self.0.compute_mask_or_eos();
        let mask = mask.map_err(|error| too_complex(&error.to_string()))?;
        Ok(mask.as_slice().to_vec())
    }

    /// Adds a token to the answer. Returns whether the JSON is complete.
    ///
    /// # Errors
    /// `InvalidArgument` for a token that the schema does not allow.
    pub(crate) fn accept(&mut self, token: u32) -> Result<bool> {
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
        let mut constraint = Constraint::within(&vocabulary, schema, &limits).unwrap();
        let mut step = |token: u8| {
            constraint.allowed()?;
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
