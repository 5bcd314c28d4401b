//! The module of `relampago/llm` for chat templates and JSON schemas: classes that `llm/chat/imported.rs` imports, which
//! says when they are used. Each error is thrown as a list of its texts, for an error with the same ones there.
//!
//! This WebAssembly module is separate from the one that runs models.

// wasm-bindgen exports public items, and passes handles by value.
#![allow(unreachable_pub, clippy::needless_pass_by_value)]

use crate::error::Error;
use crate::llm::{Message, chat};
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

    /// Returns the text of a conversation. `messages` has the role and the content of each message, one after the
    /// other. The first, third and fifth part of the text come from the template, the others from messages.
    pub fn render(
        &self,
        messages: Vec<String>,
        bos: &str,
        eos: &str,
    ) -> Result<Vec<String>, JsValue> {
        let messages = Message::from_texts(&messages);
        let text = self.0.render(&messages, bos, eos).map_err(to_js)?;
        Ok(text.alternating())
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
