//! Chat templates and JSON schemas by the classes of `js_chat`, a WebAssembly module that the scripts load before a model
//! or a request needs it.

use crate::error::{Error, Result};
use crate::llm::Message;
use crate::llm::chat::Text;
use crate::llm::gguf::invalid;
use js_sys::Array;
use wasm_bindgen::JsCast;
use wasm_bindgen::prelude::*;

#[wasm_bindgen(raw_module = "./relampago_chat.js")]
extern "C" {
    #[derive(Debug)]
    #[wasm_bindgen(js_name = ChatTemplate)]
    type Template;

    #[wasm_bindgen(constructor, js_class = "ChatTemplate", catch)]
    fn new(source: &str) -> Result<Template, JsValue>;

    #[wasm_bindgen(method, js_class = "ChatTemplate", catch)]
    fn render(
        this: &Template,
        messages: Vec<String>,
        bos: &str,
        eos: &str,
    ) -> Result<Vec<String>, JsValue>;

    #[wasm_bindgen(method, js_class = "ChatTemplate", catch)]
    fn free(this: &Template) -> Result<(), JsValue>;

    #[wasm_bindgen(js_name = Vocabulary)]
    type Words;

    #[wasm_bindgen(constructor, js_class = "Vocabulary")]
    fn new(bytes: &[u8], lengths: &[u32], ends: &[u32]) -> Words;

    #[wasm_bindgen(method, js_class = "Vocabulary", catch)]
    fn free(this: &Words) -> Result<(), JsValue>;

    #[derive(Debug)]
    #[wasm_bindgen(js_name = Constraint)]
    type Schema;

    #[wasm_bindgen(constructor, js_class = "Constraint", catch)]
    fn new(vocabulary: &Words, schema: &str) -> Result<Schema, JsValue>;

    #[wasm_bindgen(method, js_class = "Constraint", catch)]
    fn allowed(this: &Schema) -> Result<Vec<u32>, JsValue>;

    #[wasm_bindgen(method, js_class = "Constraint", catch)]
    fn accept(this: &Schema, token: u32) -> Result<bool, JsValue>;

    #[wasm_bindgen(method, js_class = "Constraint", catch)]
    fn free(this: &Schema) -> Result<(), JsValue>;
}

/// A compiled template.
pub(crate) struct ChatTemplate(Template);

impl ChatTemplate {
    pub(crate) fn new(source: &str) -> Result<Self> {
        Template::new(source).map(Self).map_err(error)
    }

    /// The text of a conversation, which ends where the assistant's answer begins, with the origin of each character.
    pub(crate) fn render(&self, messages: &[Message], bos: &str, eos: &str) -> Result<Text> {
        let messages = messages.iter();
        let messages = messages.flat_map(|message| [message.role.clone(), message.content.clone()]);
        let parts = self.0.render(messages.collect(), bos, eos);
        let parts = parts.map_err(error)?;
        Ok(Text::from_alternating(parts.iter().map(String::as_str)))
    }
}

impl Drop for ChatTemplate {
    fn drop(&mut self) {
        let _ = self.0.free(); // It fails where its module has ended.
    }
}

/// The vocabulary as a tree of bytes.
pub(crate) struct Vocabulary(Words);

impl Vocabulary {
    /// Builds the tree of the bytes of all tokens, of which `ends` end an answer.
    pub(crate) fn new(words: impl Iterator<Item = Vec<u8>>, ends: &[u32]) -> Self {
        let (mut bytes, mut lengths) = (Vec::new(), Vec::new());
        for word in words {
            lengths.push(word.len() as u32);
            bytes.extend(word);
        }
        Self(Words::new(&bytes, &lengths, ends))
    }
}

impl Drop for Vocabulary {
    fn drop(&mut self) {
        let _ = self.0.free(); // It fails where its module has ended.
    }
}

/// The schema of an answer in the making.
#[derive(Debug)]
pub(crate) struct Constraint(Schema);

impl Constraint {
    /// Reads a JSON schema.
    pub(crate) fn new(vocabulary: &Vocabulary, schema: &str) -> Result<Self> {
        let schema = Schema::new(&vocabulary.0, schema);
        schema.map(Self).map_err(error)
    }

    /// Returns the tokens that the schema allows here, as bits.
    pub(crate) fn allowed(&mut self) -> Result<Vec<u32>> {
        self.0.allowed().map_err(error)
    }

    /// Adds a token to the answer. Returns whether the JSON is complete.
    pub(crate) fn accept(&mut self, token: u32) -> Result<bool> {
        self.0.accept(token).map_err(error)
    }
}

impl Drop for Constraint {
    fn drop(&mut self) {
        let _ = self.0.free(); // It fails where its module has ended.
    }
}

/// The error in the texts that `js_chat` throws. Anything else ended that module.
#[allow(clippy::needless_pass_by_value)] // for `map_err`
fn error(thrown: JsValue) -> Error {
    let texts = thrown.dyn_ref::<Array>().map(|texts| {
        let texts = texts.iter();
        texts.filter_map(|text| text.as_string()).collect()
    });
    let texts: Vec<String> = texts.unwrap_or_default();
    match texts.as_slice() {
        [what, place] => invalid(what, place),
        [what, value, requirement] => {
            let known = ["messages", "json_schema", "after"];
            let what = known.into_iter().find(|known| known == what);
            Error::invalid(what.unwrap_or("text"), value, requirement.clone())
        }
        _ => Error::DeviceLost {
            reason: format!("its chat template or JSON schema ended a module: {thrown:?}"),
        },
    }
}
