//! Answers by a JSON schema, whose allowed tokens the crate `llguidance` finds.

use super::{formats, schema_keywords, schema_limits};
use crate::error::{Error, Result};
use llguidance::api::{GrammarInit, ParserLimits, TopLevelGrammar};
use llguidance::toktrie::{ApproximateTokEnv, InferenceCapabilities, TokEnv, TokRxInfo, TokTrie};
use llguidance::{Logger, Matcher, ParserFactory};
use serde_json::{Value, json};
use std::fmt;
use std::sync::Arc;

/// The largest number of bytes of a token in an answer. The limit of the tree is a little higher.
const MAX_TOKEN: usize = 1000;

/// The bytes of all tokens that the tree may have: each is a node at most.
const MAX_TREE: usize = 4 << 20;

/// The number of bytes of the stack of the thread that reads a schema. Each level of nested schemas takes some
/// kilobytes.
#[cfg(not(target_arch = "wasm32"))]
const STACK: usize = 64 << 20;

/// The vocabulary as a tree of bytes, and the data that the parser derives from it: 0.1 s of work for 50,000 tokens.
pub(crate) struct Vocabulary(ParserFactory);

impl Vocabulary {
    /// Builds the tree of the bytes of all tokens. The tokens `ends` end an answer. Tokens without bytes, and tokens
    /// that end answers, get a byte that is not in UTF-8, so that no schema allows them inside the JSON. A token beyond
    /// the vocabulary stands for an end that the model lacks: the parser needs one.
    ///
    /// # Errors
    /// `InvalidArgument` if the parser has no room for the vocabulary.
    pub(crate) fn new(words: impl Iterator<Item = Vec<u8>>, ends: &[u32]) -> Result<Self> {
        let mut words: Vec<Vec<u8>> = words.collect();
        let count = words.len() as u32;
        let mut ends: Vec<u32> = ends.iter().copied().filter(|&end| end < count).collect();
        if ends.is_empty() {
            ends.push(count);
            words.push(Vec::new());
        }
        for (word, token) in words.iter_mut().zip(0..) {
            if !(1..=MAX_TOKEN).contains(&word.len()) || ends.contains(&token) {
                *word = special(token);
            }
        }
        let factory = apart(|| {
            let bytes: usize = words.iter().map(Vec::len).sum();
            if bytes >= MAX_TREE {
                return Err(format!("{bytes} bytes of tokens are more than {MAX_TREE}"));
            }
            let info = TokRxInfo::new(words.len() as u32, ends[0]);
            let tree = TokTrie::from(&info, &words).with_eos_tokens(&ends);
            factory(&(Arc::new(ApproximateTokEnv::new(tree)) as TokEnv))
        });
        let refused = |reason| {
            let requirement = format!("left out: the model's vocabulary is too large: {reason}");
            Error::invalid("json_schema", "a schema", requirement)
        };
        factory.map(Self).map_err(refused)
    }
}

/// Returns the factory of parsers for a vocabulary.
fn factory(vocabulary: &TokEnv) -> Reason<ParserFactory> {
    let factory = ParserFactory::new_simple(vocabulary);
    factory.map_err(|error| error.to_string())
}

/// The bytes of a token that is not text.
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

/// Returns a schema, checked and in the words of the parser.
///
/// # Errors
/// `InvalidArgument` if it is damaged, has a keyword that does not exist, or takes too much work.
pub(super) fn prepared(schema: &str) -> Result<Value> {
    schema_limits::check_length(schema)?;
    let parsed = serde_json::from_str(schema);
    prepared_value(parsed.map_err(|error| fault(schema, &error.to_string()))?)
}

/// Returns a schema that has been parsed, checked and in the words of the parser.
///
/// # Errors
/// `InvalidArgument` if it has a keyword that does not exist, or takes too much work.
pub(super) fn prepared_value(mut schema: Value) -> Result<Value> {
    schema_keywords::check(&schema)?;
    schema_limits::check(&schema)?;
    formats::replace(&mut schema);
    if let Some(object) = schema.as_object_mut() {
        let options = object.entry("x-guidance").or_insert_with(|| json!({}));
        set_white_space(options);
    }
    Ok(schema)
}

/// The error of a schema that the parser refuses.
fn fault(schema: &str, error: &str) -> Error {
    let requirement = format!("valid: {}", hinted(error));
    Error::invalid("json_schema", schema.to_owned(), requirement)
}

/// The parser's message, with the way to an option that it names.
fn hinted(error: &str) -> String {
    let hint = if error.contains("coerce_one_of") {
        " (`\"x-guidance\": { \"coerce_one_of\": true }` in the schema)"
    } else {
        ""
    };
    format!("{error}{hint}")
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
    /// `InvalidArgument` if it is damaged, has a keyword that does not exist, or needs an unsupported feature.
    pub(crate) fn new(vocabulary: &Vocabulary, schema: &str) -> Result<Self> {
        Self::within(&vocabulary.0, schema, &ParserLimits::default())
    }

    /// Reads a JSON schema whose work and memory have these limits.
    fn within(factory: &ParserFactory, schema: &str, limits: &ParserLimits) -> Result<Self> {
        let grammar = TopLevelGrammar::from_json_schema(prepared(schema)?);
        Self::of_parser(factory, grammar, limits).map_err(|error| fault(schema, &error))
    }

    /// Reads a grammar in the language of `llguidance`.
    ///
    /// # Errors
    /// `InvalidArgument` if it needs an unsupported feature.
    pub(crate) fn of_grammar(vocabulary: &Vocabulary, grammar: &str) -> Result<Self> {
        let top = TopLevelGrammar::from_lark(grammar.to_owned());
        let made = Self::of_parser(&vocabulary.0, top, &ParserLimits::default());
        made.map_err(|error| {
            let requirement = format!("described by valid schemas: {}", hinted(&error));
            Error::invalid("tools", "a list", requirement)
        })
    }

    fn of_parser(
        factory: &ParserFactory,
        grammar: TopLevelGrammar,
        limits: &ParserLimits,
    ) -> Reason<Self> {
        let limits = ParserLimits {
            // The parser's state is no part of an error's message.
            verbose_errors: false,
            ..limits.clone()
        };
        let matcher = apart(|| {
            let init = GrammarInit::Serialized(grammar);
            let (log, abilities) = (Logger::new(0, 0), InferenceCapabilities::default());
            let parser = factory.create_parser_from_init_ext(init, log, abilities, limits);
            let parser = parser.map_err(|error| error.to_string())?;
            Ok(Matcher::new(Ok(parser)))
        });
        matcher.map(Self)
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

/// A result, or the reason why there is none.
type Reason<T> = std::result::Result<T, String>;

/// Calls the parser on a thread of its own. The stack of that thread is deep enough for every schema within the limits,
/// and a panic of that thread becomes an error.
#[cfg(not(target_arch = "wasm32"))]
fn apart<T: Send>(work: impl FnOnce() -> Reason<T> + Send) -> Reason<T> {
    std::thread::scope(|scope| {
        let builder = std::thread::Builder::new().stack_size(STACK);
        let thread = builder.spawn_scoped(scope, work);
        let thread = thread.map_err(|error| format!("there is no memory to read it: {error}"))?;
        let ended = |_| Err("the parser fails".to_owned());
        thread.join().unwrap_or_else(ended)
    })
}

/// Calls the parser. In WebAssembly a panic, or a schema that takes too much stack, ends its module, which scripts replace.
#[cfg(target_arch = "wasm32")]
fn apart<T>(work: impl FnOnce() -> Reason<T>) -> Reason<T> {
    work()
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
    use super::{ApproximateTokEnv, Constraint, ParserLimits, Vocabulary, factory};

    #[test]
    fn schemas_that_take_too_much_work_are_refused_with_the_reason() {
        let factory = factory(&ApproximateTokEnv::single_byte_env()).unwrap();
        let limits = ParserLimits {
            step_lexer_fuel: 1,
            ..ParserLimits::default()
        };
        let schema = r#"{ "type": "string", "pattern": "^(a|b)*a(a|b){9}$" }"#;
        let mut constraint = Constraint::within(&factory, schema, &limits).unwrap();
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

    /// Vocabularies that would end the parser by a panic.
    #[test]
    fn odd_vocabularies_make_answers_or_errors() {
        let bytes = || (0..=255u8).map(|byte| vec![byte]);
        let long = (0..8000u32).map(|i| format!("{i:0990}").into_bytes());
        let cases: [(&str, Vec<Vec<u8>>); 8] = [
            ("none", Vec::new()),
            ("empty tokens", vec![Vec::new(); 100]),
            ("255 tokens", bytes().take(255).collect()),
            ("twice", bytes().chain(bytes()).collect()),
            ("3,000 bytes", bytes().chain([vec![b' '; 3000]]).collect()),
            ("1,024 bytes", bytes().chain([vec![b' '; 1024]]).collect()),
            ("marked", bytes().chain([b"\xff<[3]>".to_vec()]).collect()),
            ("8 MB", bytes().chain(long).collect()),
        ];
        for (name, words) in cases {
            for ends in [&[][..], &[5], &[u32::MAX], &[1 << 20, 3]] {
                let vocabulary = Vocabulary::new(words.iter().cloned(), ends);
                let Ok(vocabulary) = vocabulary else {
                    assert_eq!(name, "8 MB");
                    continue;
                };
                let mut answer = Constraint::new(&vocabulary, r#"{ "enum": [12] }"#).unwrap();
                if words.len() < 255 {
                    let error = answer.allowed().unwrap_err();
                    assert_eq!(error.code(), "INVALID_ARGUMENT", "{name}");
                    continue;
                }
                answer.allowed().unwrap();
                assert!(!answer.accept(u32::from(b'1')).unwrap(), "{name}");
                answer.allowed().unwrap();
                assert!(answer.accept(u32::from(b'2')).unwrap(), "{name}, {ends:?}");
            }
        }
    }
}
