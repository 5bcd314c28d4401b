//! The module of `relampago/llm` for chat templates and JSON schemas: classes that `llm/chat/imported.rs` imports, which
//! says when they are used. Each error is thrown as a list of its texts, for an error with the same ones there.
//!
//! This WebAssembly module is separate from the one that runs models.

// wasm-bindgen exports public items, and passes handles by value.
#![allow(unreachable_pub, clippy::needless_pass_by_value)]

use crate::error::Error;
use crate::llm::chat;
use js_sys::Array;
use wasm_bindgen::prelude::*;

/// A compiled chat template.
#[wasm_bindgen]
pub struct ChatTemplate(chat::ChatTemplate);

#[wasm_bindgen]
impl ChatTemplate {
    /// Compiles a template.
    #[wasm_bindgen(constructor)]
    pub fn new(source: &str) -> Result<Self, JsValue> {
        chat::ChatTemplate::new(source).map(Self).map_err(to_js)
    }

    /// Renders a request, an object as JSON. `markers` are the vocabulary's control tokens that formats of calls use, and
    /// `ids` their ids.
    pub fn render(
        &self,
        request: String,
        bos: &str,
        eos: &str,
        markers: Vec<String>,
        ids: Vec<u32>,
    ) -> Result<Rendered, JsValue> {
        let markers: Vec<_> = markers.into_iter().zip(ids).collect();
        let request = chat::ChatRequest::from_json(request).map_err(to_js)?;
        let rendered = self.0.render(&request, bos, eos, &markers);
        rendered.map(Rendered).map_err(to_js)
    }
}

/// A conversation as text, and how its answer is held and read.
#[wasm_bindgen]
pub struct Rendered(chat::Rendered);

#[wasm_bindgen]
impl Rendered {
    /// Returns the text. The first, third and fifth part come from the template, the others from messages.
    pub fn parts(&self) -> Vec<String> {
        self.0.text.alternating()
    }

    /// The grammar of the answer, if it has calls.
    pub fn grammar(&self) -> Option<String> {
        self.0.grammar.clone()
    }

    /// Takes the reader of the answer, if it may have calls or reasoning.
    pub fn reader(&mut self) -> Option<AnswerReader> {
        self.0.reader.take().map(AnswerReader)
    }
}

/// Divides the text of an answer into reasoning, text and calls.
#[wasm_bindgen]
pub struct AnswerReader(chat::AnswerReader);

#[wasm_bindgen]
impl AnswerReader {
    /// Adds text, and returns what is certain by now: a JSON array of deltas as in `OpenAI`'s API.
    pub fn push(&mut self, text: &str) -> Result<String, JsValue> {
        self.0.push_json(text).map_err(to_js)
    }

    /// Whether the answer has calls, all of which are complete.
    #[wasm_bindgen(js_name = hasCalls)]
    pub fn has_calls(&self) -> bool {
        self.0.has_calls()
    }

    /// Returns the rest at the end of the answer.
    pub fn finish(&mut self) -> Result<String, JsValue> {
        self.0.finish_json().map_err(to_js)
    }
}

/// The vocabulary of a model as a tree of bytes.
#[wasm_bindgen]
pub struct Vocabulary(chat::Vocabulary);

#[wasm_bindgen]
impl Vocabulary {
    /// Builds the tree of the bytes of all tokens, which are given one after the other. The tokens `ends` end an
    /// answer.
    #[wasm_bindgen(constructor)]
    pub fn new(bytes: &[u8], lengths: &[u32], ends: &[u32]) -> Result<Self, JsValue> {
        let mut rest = bytes;
        let words = lengths.iter().map(|&length| {
            let word;
            (word, rest) = rest.split_at(length as usize);
            word.to_vec()
        });
        let vocabulary = chat::Vocabulary::new(words, ends);
        vocabulary.map(Self).map_err(to_js)
    }
}

/// The JSON schema of an answer.
#[wasm_bindgen]
pub struct Constraint(chat::Constraint);

#[wasm_bindgen]
impl Constraint {
    /// Reads a JSON schema.
    #[wasm_bindgen(constructor)]
    pub fn new(vocabulary: &Vocabulary, schema: &str) -> Result<Self, JsValue> {
        let constraint = chat::Constraint::new(&vocabulary.0, schema);
        constraint.map(Self).map_err(to_js)
    }

    /// Reads a grammar.
    #[wasm_bindgen(js_name = ofGrammar)]
    pub fn of_grammar(vocabulary: &Vocabulary, grammar: &str) -> Result<Self, JsValue> {
        let constraint = chat::Constraint::of_grammar(&vocabulary.0, grammar);
        constraint.map(Self).map_err(to_js)
    }

    /// Returns the tokens that the schema allows here, as bits.
    pub fn allowed(&mut self) -> Result<Vec<u32>, JsValue> {
        self.0.allowed().map_err(to_js)
    }

    /// Adds a token to the answer. Returns whether the JSON is complete.
    pub fn accept(&mut self, token: u32) -> Result<bool, JsValue> {
        self.0.accept(token).map_err(to_js)
    }
}

fn to_js(error: Error) -> JsValue {
    let texts = match error {
        Error::InvalidModel { what, place } => vec![what, place],
        Error::InvalidArgument {
            what,
            value,
            requirement,
        } => vec![what.to_owned(), value, requirement.into_owned()],
        other => vec![other.to_string()],
    };
    let texts = texts.iter().map(|text| JsValue::from(text.as_str()));
    texts.collect::<Array>().into()
}
