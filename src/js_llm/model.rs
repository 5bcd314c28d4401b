//! A model that answers.

use super::generation::{Generation, unless};
use super::lent::{Home, Lent};
use super::session::{Loras, Session};
use super::{backend_name, get, integer, set, to_js};
use crate::instruction_set::InstructionSet;
use crate::llm::chat::ChatRequest;
use crate::llm::{
    EmbedOptions, GenerateOptions, LanguageModel, LoraOptions, Pooling, Prompt, RankOptions,
    Sequence,
};
use js_sys::{Array, Function, Object, Uint32Array};
use std::cell::RefCell;
use wasm_bindgen::prelude::*;

/// A model, and the sequence of the last answer, whose beginning the next one may share.
#[wasm_bindgen]
#[derive(Debug)]
pub struct Model {
    pub(super) language: LanguageModel,
    last: Home,
    loras: RefCell<Loras>,
    /// Why it runs on its back-end.
    reason: String,
}

impl Model {
    pub(super) fn new(model: LanguageModel, reason: String) -> Self {
        Self {
            language: model,
            last: Home::default(),
            loras: RefCell::default(),
            reason,
        }
    }

    fn generation(&self, prompt: Prompt, options: &JsValue) -> crate::error::Result<Generation> {
        let mut sequence = match Lent::of(&self.last) {
            Some(sequence) => sequence,
            None => Lent::new(Sequence::new(&self.language)?, &self.last),
        };
        if get(options, "fresh").is_truthy() {
            sequence.rewind(0)?;
        }
        let mut generate = options_of(options);
        generate.lora = self.loras.borrow().scaled(&numbers(options, "lora"))?;
        Generation::new(&self.language, sequence, prompt, generate)
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
            ("vocabulary", info.vocabulary),
            ("maxContextLength", info.max_context_length),
            ("contextLength", self.language.context_length()),
            ("sessionBytes", info.session_bytes),
        ] {
            set(&object, key, value as f64);
        }
        set(&object, "parameters", info.parameters as f64);
        set(&object, "fileBytes", info.file_bytes as f64);
        set(&object, "hasChatTemplate", info.has_chat_template);
        set(&object, "backend", backend_name(info.backend));
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

    /// Makes an adapter of a file; returns its number and the number of layers that it changes.
    #[wasm_bindgen(js_name = addLora)]
    pub async fn add_lora(
        &self,
        bytes: Vec<u8>,
        alpha: Option<f32>,
    ) -> Result<Vec<usize>, JsValue> {
        let options = LoraOptions { alpha };
        let lora = self.language.lora_from_bytes_async(bytes, options).await;
        let lora = lora.map_err(|error| to_js(&error))?;
        let layers = lora.layers();
        Ok(vec![self.loras.borrow_mut().add(lora), layers])
    }

    /// Releases an adapter.
    #[wasm_bindgen(js_name = removeLora)]
    pub fn remove_lora(&self, number: usize) {
        self.loras.borrow_mut().remove(number);
    }

    /// The tokens of a text that `embed` reads.
    #[wasm_bindgen(js_name = tokensToEmbed)]
    pub fn tokens_to_embed(&self, text: &str, options: &JsValue) -> Result<Vec<u32>, JsValue> {
        let tokens = self.language.tokens_to_embed(text, &embed_options(options));
        tokens.map_err(|error| to_js(&error))
    }

    /// The vectors of texts, whose tokens are arrays, one after the other. None where `is_cancelled` returns true before.
    pub async fn embed(
        &self,
        texts: Array,
        options: JsValue,
        is_cancelled: Function,
    ) -> Result<Vec<f32>, JsValue> {
        let (texts, options) = (tokens_of(&texts), embed_options(&options));
        let embedding = self.language.embed_tokens(&texts, &options);
        let vectors = unless(&is_cancelled, embedding).await;
        vectors
            .unwrap_or_else(|| Ok(Vec::new()))
            .map(|vectors| vectors.concat())
            .map_err(|error| to_js(&error))
    }

    /// The tokens of a pair of texts that `rank` reads.
    #[wasm_bindgen(js_name = tokensToRank)]
    pub fn tokens_to_rank(
        &self,
        query: &str,
        text: &str,
        options: &JsValue,
    ) -> Result<Vec<u32>, JsValue> {
        let options = RankOptions {
            truncate: get(options, "truncate").is_truthy(),
        };
        let tokens = self.language.tokens_to_rank(query, text, &options);
        tokens.map_err(|error| to_js(&error))
    }

    /// The scores of pairs, whose tokens are arrays. None where `is_cancelled` returns true before.
    pub async fn rank(&self, pairs: Array, is_cancelled: Function) -> Result<Vec<f32>, JsValue> {
        let pairs = tokens_of(&pairs);
        let scores = unless(&is_cancelled, self.language.rank_tokens(&pairs)).await;
        let scores = scores.unwrap_or_else(|| Ok(Vec::new()));
        scores.map_err(|error| to_js(&error))
    }

    /// A new sequence, or one that was saved, with adapters: pairs of a number and a factor.
    pub async fn session(
        &self,
        saved: Option<Vec<u8>>,
        lora: Vec<f64>,
    ) -> Result<Session, JsValue> {
        let (model, lora) = (&self.language, self.loras.borrow().scaled(&lora));
        let lora = lora.map_err(|error| to_js(&error))?;
        let sequence = match saved {
            Some(bytes) => Sequence::load(model, &bytes, &lora).await,
            None => Sequence::new(model).and_then(|mut sequence| {
                sequence.set_lora(model, &lora)?;
                Ok(sequence)
            }),
        };
        let sequence = sequence.map_err(|error| to_js(&error))?;
        Ok(Session::new(self.language.clone(), sequence))
    }

    /// Answers a conversation: a request with its messages and options, as JSON.
    pub fn chat(&self, request: String, options: JsValue) -> Result<Generation, JsValue> {
        let request = ChatRequest::from_json(request);
        let prompt = request.and_then(|request| Prompt::of_conversation(&self.language, &request));
        let generation = prompt.and_then(|prompt| self.generation(prompt, &options));
        generation.map_err(|error| to_js(&error))
    }

    /// Continues a text.
    pub fn complete(&self, prompt: &str, options: JsValue) -> Result<Generation, JsValue> {
        let prompt = Prompt::of_text(&self.language, prompt);
        let generation = prompt.and_then(|prompt| self.generation(prompt, &options));
        generation.map_err(|error| to_js(&error))
    }
}

/// Returns an array of numbers that the scripts made; an absent one is empty.
pub(super) fn numbers(object: &JsValue, key: &str) -> Vec<f64> {
    let numbers = get(object, key);
    if !Array::is_array(&numbers) {
        return Vec::new();
    }
    let numbers = Array::from(&numbers);
    numbers
        .iter()
        .filter_map(|number| number.as_f64())
        .collect()
}

/// The tokens of texts, an array each.
fn tokens_of(texts: &Array) -> Vec<Vec<u32>> {
    let texts = texts.iter();
    texts
        .map(|tokens| Uint32Array::from(tokens).to_vec())
        .collect()
}

/// Options of `embed` whose types the scripts have checked.
fn embed_options(object: &JsValue) -> EmbedOptions {
    let pooling = get(object, "pooling").as_string();
    EmbedOptions {
        pooling: pooling.map(|name| match &*name {
            "cls" => Pooling::Cls,
            "last" => Pooling::Last,
            _ => Pooling::Mean,
        }),
        normalize: get(object, "normalize").as_bool().unwrap_or(true),
        prompt: get(object, "prompt").as_string(),
        dimensions: integer(object, "dimensions"),
        truncate: get(object, "truncate").is_truthy(),
    }
}

/// Options whose types the scripts have checked; ranges are checked where they are used.
pub(super) fn options_of(object: &JsValue) -> GenerateOptions {
    let mut options = GenerateOptions::default();
    if let Some(tokens) = integer(object, "max_tokens") {
        options.max_tokens = tokens;
    }
    let stop = get(object, "stop");
    if Array::is_array(&stop) {
        let stop = Array::from(&stop);
        options.stop = stop.iter().filter_map(|text| text.as_string()).collect();
    }
    options.json_schema = get(object, "json_schema").as_string();
    options.after = numbers(object, "after")
        .into_iter()
        .map(|token| token as u32)
        .collect();
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
    float("presence_penalty", &mut sampling.presence_penalty);
    float("frequency_penalty", &mut sampling.frequency_penalty);
    let biases = numbers(object, "logit_bias");
    let (biases, _) = biases.as_chunks::<2>();
    let biases = biases.iter();
    sampling.logit_bias = biases
        .map(|&[token, bias]| (token as u32, bias as f32))
        .collect();
    if let Some(tokens) = integer(object, "top_k") {
        sampling.top_k = tokens;
    }
    if let Some(seed) = get(object, "seed").as_f64() {
        sampling.seed = seed as u64;
    }
    options.logprobs = integer(object, "top_logprobs");
    options.guess = get(object, "guess") != JsValue::FALSE;
    options
}
