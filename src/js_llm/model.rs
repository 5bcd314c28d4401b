//! A model that answers.

use super::generation::Generation;
use super::{get, integer, set, to_js};
use crate::device::Backend;
use crate::instruction_set::InstructionSet;
use crate::llm::{GenerateOptions, Generator, LanguageModel, Message, Sequence};
use js_sys::{Array, Object};
use std::cell::RefCell;
use std::rc::Rc;
use wasm_bindgen::prelude::*;

/// A model, and the sequence of the last answer, whose beginning the next one may share.
#[wasm_bindgen]
#[derive(Debug)]
pub struct Model {
    language: Rc<LanguageModel>,
    last: Rc<RefCell<Option<Sequence>>>,
    /// Why it runs on its back-end.
    reason: String,
}

impl Model {
    pub(super) fn new(model: LanguageModel, reason: String) -> Self {
        Self {
            language: Rc::new(model),
            last: Rc::default(),
            reason,
        }
    }

    fn generation(&self, prompt: Vec<u32>, options: &JsValue) -> crate::error::Result<Generation> {
        let last = self.last.borrow_mut().take();
        let sequence = last.map_or_else(|| Sequence::new(&self.language), Ok)?;
        let generator = Generator::new(&self.language, sequence, prompt, options_of(options))?;
        let (model, last) = (Rc::clone(&self.language), Rc::clone(&self.last));
        Ok(Generation::new(model, generator, last))
    }
}

#[wasm_bindgen]
impl Model {
    /// Returns the properties of JavaScript's `LanguageModel.info`, except `worker`.
    pub fn info(&self) -> Object {
        let (info, object) = (self.language.info(), Object::new());
        set(&object, "architecture", info.architecture);
        set(&object, "name", info.name);
        for (key, value) in [
            ("parameters", info.parameters),
            ("vocabulary", info.vocabulary),
            ("maxContextLength", info.max_context_length),
            ("contextLength", self.language.context_length()),
            ("fileBytes", info.file_bytes),
            ("sessionBytes", info.session_bytes),
        ] {
            set(&object, key, value as f64);
        }
        let backend = match info.backend {
            Backend::Gpu => "gpu",
            _ => "simd",
        };
        set(&object, "backend", backend);
        set(&object, "reason", self.reason.as_str());
        set(&object, "instructionSet", InstructionSet::best().name());
        object
    }

    /// The tokens of a text.
    pub fn tokenize(&self, text: &str, special: bool) -> Result<Vec<u32>, JsValue> {
        let tokens = self.language.tokenize(text, special);
        tokens.map_err(|error| to_js(&error))
    }

    /// The text of tokens.
    pub fn detokenize(&self, tokens: Vec<u32>) -> String {
        self.language.detokenize(&tokens)
    }

    /// Answers a conversation: the role and the content of each message, one after the other.
    pub fn chat(&self, messages: Vec<String>, options: JsValue) -> Result<Generation, JsValue> {
        let (messages, _) = messages.as_chunks::<2>();
        let messages: Vec<Message> = messages
            .iter()
            .map(|[role, content]| Message::new(role.as_str(), content.as_str()))
            .collect();
        let prompt = self.language.conversation(&messages);
        let generation = prompt.and_then(|prompt| self.generation(prompt, &options));
        generation.map_err(|error| to_js(&error))
    }

    /// Continues a text.
    pub fn complete(&self, prompt: &str, options: JsValue) -> Result<Generation, JsValue> {
        let prompt = self.language.continuation(prompt);
        let generation = prompt.and_then(|prompt| self.generation(prompt, &options));
        generation.map_err(|error| to_js(&error))
    }
}

/// Options whose types the scripts have checked; ranges are checked where they are used.
fn options_of(object: &JsValue) -> GenerateOptions {
    let mut options = GenerateOptions::default();
    if let Some(tokens) = integer(object, "max_tokens") {
        options.max_tokens = tokens;
    }
    let stop = get(object, "stop");
    if Array::is_array(&stop) {
        let stop = Array::from(&stop);
        options.stop = stop.iter().filter_map(|text| text.as_string()).collect();
    }
    let sampling = &mut options.sampling;
    let float = |key, value: &mut f32| {
        if let Some(number) = get(object, key).as_f64() {
            *value = number as f32;
        }
    };
    float("temperature", &mut sampling.temperature);
    float("top_p", &mut sampling.top_p);
    float("min_p", &mut sampling.min_p);
    float("repetition_penalty", &mut sampling.repetition_penalty);
    if let Some(tokens) = integer(object, "top_k") {
        sampling.top_k = tokens;
    }
    if let Some(seed) = get(object, "seed").as_f64() {
        sampling.seed = seed as u64;
    }
    options
}
