//! Chat templates and JSON schemas by the classes of `js_chat`, a WebAssembly module that the scripts load before a model
//! or a request needs it.

use crate::error::{Error, Result};
use crate::llm::Message;
use crate::llm::chat::{Rendered, Text};
use crate::llm::gguf::invalid;
use js_sys::Array;
use std::cell::RefCell;
use wasm_bindgen::JsCast;
use wasm_bindgen::prelude::*;

#[wasm_bindgen(module = "/js/llm/chat_module.js")]
extern "C" {
    /// The number of instances before the module's present one.
    fn generation() -> u32;

    /// Replaces an instance of the module that a trap ended by a new one.
    #[wasm_bindgen(catch, js_name = replaceInstance)]
    fn replace_instance() -> Result<(), JsValue>;
}

#[wasm_bindgen(raw_module = "#chat")]
extern "C" {
    #[derive(Debug)]
    #[wasm_bindgen(js_name = ChatTemplate)]
    type Template;

    #[wasm_bindgen(constructor, js_class = "ChatTemplate", catch)]
    fn new(source: &str) -> Result<Template, JsValue>;

    #[wasm_bindgen(method, js_class = "ChatTemplate", catch)]
    fn render(
        this: &Template,
        request: &str,
        bos: &str,
        eos: &str,
        markers: Vec<String>,
        ids: Vec<u32>,
    ) -> Result<RenderedParts, JsValue>;

    #[wasm_bindgen(js_name = Rendered)]
    type RenderedParts;

    #[wasm_bindgen(method, js_class = "Rendered")]
    fn parts(this: &RenderedParts) -> Vec<String>;

    #[wasm_bindgen(method, js_class = "Rendered")]
    fn grammar(this: &RenderedParts) -> Option<String>;

    #[wasm_bindgen(method, js_class = "Rendered")]
    fn reader(this: &RenderedParts) -> Option<Reader>;

    #[derive(Debug)]
    #[wasm_bindgen(js_name = AnswerReader)]
    type Reader;

    #[wasm_bindgen(method, js_class = "AnswerReader", catch)]
    fn push(this: &Reader, text: &str) -> Result<String, JsValue>;

    #[wasm_bindgen(method, js_class = "AnswerReader", catch)]
    fn finish(this: &Reader) -> Result<String, JsValue>;

    #[wasm_bindgen(method, js_class = "AnswerReader", js_name = hasCalls, catch)]
    fn has_calls(this: &Reader) -> Result<bool, JsValue>;

    #[wasm_bindgen(js_name = Vocabulary)]
    type Words;

    #[wasm_bindgen(constructor, js_class = "Vocabulary", catch)]
    fn new(bytes: &[u8], lengths: &[u32], ends: &[u32]) -> Result<Words, JsValue>;

    #[derive(Debug)]
    #[wasm_bindgen(js_name = Constraint)]
    type Schema;

    #[wasm_bindgen(constructor, js_class = "Constraint", catch)]
    fn new(vocabulary: &Words, schema: &str) -> Result<Schema, JsValue>;

    #[wasm_bindgen(static_method_of = Schema, js_class = "Constraint", js_name = ofGrammar, catch)]
    fn of_grammar(vocabulary: &Words, grammar: &str) -> Result<Schema, JsValue>;

    #[wasm_bindgen(method, js_class = "Constraint", catch)]
    fn allowed(this: &Schema) -> Result<Vec<u32>, JsValue>;

    #[wasm_bindgen(method, js_class = "Constraint", catch)]
    fn accept(this: &Schema, token: u32) -> Result<bool, JsValue>;
}

#[wasm_bindgen]
extern "C" {
    /// An object of any of these classes.
    type Handle;

    #[wasm_bindgen(method, structural, catch)]
    fn free(this: &Handle) -> Result<(), JsValue>;

    /// Leaves the object's memory as it is, also when it is collected.
    #[wasm_bindgen(method, structural, js_name = __destroy_into_raw)]
    fn forget(this: &Handle) -> u32;
}

/// An object of an instance of the module.
#[derive(Debug)]
struct Made<T: JsCast> {
    object: T,
    generation: u32,
}

impl<T: JsCast> Made<T> {
    fn new(object: T) -> Self {
        Self {
            object,
            generation: generation(),
        }
    }

    /// Whether its instance is the present one.
    fn is_current(&self) -> bool {
        self.generation == generation()
    }
}

impl<T: JsCast> Drop for Made<T> {
    fn drop(&mut self) {
        let object: &Handle = self.object.unchecked_ref();
        if self.is_current() {
            let _ = object.free(); // It fails where its instance has ended.
        } else {
            // At its place the present instance has something else.
            object.forget();
        }
    }
}

/// A compiled template.
pub(crate) struct ChatTemplate {
    source: String,
    made: RefCell<Made<Template>>,
}

impl ChatTemplate {
    pub(crate) fn new(source: &str) -> Result<Self> {
        Ok(Self {
            source: source.to_owned(),
            made: RefCell::new(compiled(source)?),
        })
    }

    /// The text of a conversation, which ends where the assistant's answer begins, with the origin of each character; and
    /// the grammar and the reader of the answer.
    pub(crate) fn render(
        &self,
        request: &ChatRequest,
        bos: &str,
        eos: &str,
        markers: &[(String, u32)],
    ) -> Result<Rendered> {
        let mut made = self.made.borrow_mut();
        if !made.is_current() {
            *made = compiled(&self.source)?;
        }
        let (texts, ids) = markers.iter().cloned().unzip();
        let rendered = made.object.render(&request.0, bos, eos, texts, ids);
        let rendered = Made::new(rendered.map_err(|thrown| error("messages", thrown))?);
        let parts = rendered.object.parts();
        Ok(Rendered {
            text: Text::from_alternating(parts.iter().map(String::as_str)),
            grammar: rendered.object.grammar(),
            reader: rendered.object.reader().map(Made::new).map(AnswerReader),
        })
    }
}

/// A request for an answer as JSON: an object of the messages and of options.
pub(crate) struct ChatRequest(String);

impl ChatRequest {
    /// Asks for an answer to messages, without functions and options.
    pub(crate) fn of_messages(messages: &[Message]) -> Result<Self> {
        let messages: Vec<_> = messages.iter().map(Message::to_value).collect();
        Self::from_json(serde_json::json!({ "messages": messages }).to_string())
    }

    /// Takes a request, which `js_chat` reads.
    #[allow(clippy::unnecessary_wraps)] // where it is read here, it may be refused
    pub(crate) fn from_json(text: String) -> Result<Self> {
        Ok(Self(text))
    }
}

/// Divides the text of an answer into reasoning, text and calls.
#[derive(Debug)]
pub(crate) struct AnswerReader(Made<Reader>);

impl AnswerReader {
    fn reader(&self) -> Result<&Reader> {
        let reader = self.0.is_current().then_some(&self.0.object);
        reader.ok_or_else(|| ended("messages"))
    }

    /// Adds text, and returns what is certain by now, as JSON.
    pub(crate) fn push_json(&mut self, text: &str) -> Result<String> {
        let deltas = self.reader()?.push(text);
        deltas.map_err(|thrown| error("messages", thrown))
    }

    /// Whether the answer has calls, all of which are complete.
    pub(crate) fn has_calls(&self) -> bool {
        let has_calls = self.reader().map(Reader::has_calls);
        matches!(has_calls, Ok(Ok(true)))
    }

    /// Returns the rest at the end of the answer, as JSON.
    pub(crate) fn finish_json(&mut self) -> Result<String> {
        let deltas = self.reader()?.finish();
        deltas.map_err(|thrown| error("messages", thrown))
    }
}

fn compiled(source: &str) -> Result<Made<Template>> {
    let template = Template::new(source);
    let template = template.map_err(|thrown| error("messages", thrown))?;
    Ok(Made::new(template))
}

/// The vocabulary as a tree of bytes.
pub(crate) struct Vocabulary {
    /// The bytes of all tokens, one after the other.
    bytes: Vec<u8>,
    lengths: Vec<u32>,
    ends: Vec<u32>,
    made: RefCell<Made<Words>>,
}

impl Vocabulary {
    /// Builds the tree of the bytes of all tokens. The tokens `ends` end an answer.
    pub(crate) fn new(words: impl Iterator<Item = Vec<u8>>, ends: &[u32]) -> Result<Self> {
        let (mut bytes, mut lengths) = (Vec::new(), Vec::new());
        for word in words {
            lengths.push(word.len() as u32);
            bytes.extend(word);
        }
        Ok(Self {
            made: RefCell::new(tree(&bytes, &lengths, ends)?),
            bytes,
            lengths,
            ends: ends.to_vec(),
        })
    }
}

fn tree(bytes: &[u8], lengths: &[u32], ends: &[u32]) -> Result<Made<Words>> {
    let words = Words::new(bytes, lengths, ends);
    let words = words.map_err(|thrown| error("json_schema", thrown))?;
    Ok(Made::new(words))
}

/// The schema of an answer in the making.
#[derive(Debug)]
pub(crate) struct Constraint(Made<Schema>);

impl Constraint {
    /// Reads a JSON schema.
    pub(crate) fn new(vocabulary: &Vocabulary, schema: &str) -> Result<Self> {
        Self::of(vocabulary, |words| Schema::new(words, schema))
    }

    /// Reads a grammar.
    pub(crate) fn of_grammar(vocabulary: &Vocabulary, grammar: &str) -> Result<Self> {
        Self::of(vocabulary, |words| Schema::of_grammar(words, grammar))
    }

    fn of(
        vocabulary: &Vocabulary,
        read: impl FnOnce(&Words) -> Result<Schema, JsValue>,
    ) -> Result<Self> {
        let mut words = vocabulary.made.borrow_mut();
        if !words.is_current() {
            *words = tree(&vocabulary.bytes, &vocabulary.lengths, &vocabulary.ends)?;
        }
        let schema = read(&words.object);
        let schema = schema.map_err(|thrown| error("json_schema", thrown))?;
        Ok(Self(Made::new(schema)))
    }

    /// Returns the schema, unless another answer's ended its instance.
    fn schema(&self) -> Result<&Schema> {
        let schema = self.0.is_current().then_some(&self.0.object);
        schema.ok_or_else(|| ended("json_schema"))
    }

    /// Returns the tokens that the schema allows here, as bits.
    pub(crate) fn allowed(&mut self) -> Result<Vec<u32>> {
        let allowed = self.schema()?.allowed();
        allowed.map_err(|thrown| error("json_schema", thrown))
    }

    /// Adds a token to the answer. Returns whether the JSON is complete.
    pub(crate) fn accept(&mut self, token: u32) -> Result<bool> {
        let accepted = self.schema()?.accept(token);
        accepted.map_err(|thrown| error("json_schema", thrown))
    }
}

/// The error in the texts that `js_chat` throws. After any other error its instance has ended, and a new instance takes
/// its place.
#[allow(clippy::needless_pass_by_value)] // for `map_err`
fn error(argument: &'static str, thrown: JsValue) -> Error {
    let texts = thrown.dyn_ref::<Array>().map(|texts| {
        let texts = texts.iter();
        texts.filter_map(|text| text.as_string()).collect()
    });
    let texts: Vec<String> = texts.unwrap_or_default();
    match texts.as_slice() {
        [what, place] => invalid(what, place),
        [what, value, requirement] => {
            let known = [
                "messages",
                "role",
                "json_schema",
                "after",
                "tools",
                "tool_choice",
                "tool_calls",
                "tool_format",
                "chat_template_kwargs",
            ];
            let what = known.into_iter().find(|known| known == what);
            Error::invalid(what.unwrap_or("text"), value, requirement.clone())
        }
        _ => match replace_instance() {
            Ok(()) => ended(argument),
            Err(error) => Error::DeviceLost {
                reason: format!(
                    "its chat template or JSON schema ended a module: {thrown:?}, {error:?}"
                ),
            },
        },
    }
}

/// The error of an argument that ended an instance of the module: its reader failed, or took too much stack or memory.
fn ended(argument: &'static str) -> Error {
    let requirement = "simpler: its reader fails, or takes too much memory";
    Error::invalid(argument, "too complex", requirement)
}
