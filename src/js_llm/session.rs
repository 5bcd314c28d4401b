//! A sequence of tokens that a script reads, continues and rewinds.

use super::generation::Generation;
use super::lent::{Home, Lent};
use super::model::options_of;
use super::to_js;
use crate::error::{Error, Result};
use crate::llm::chat::ChatRequest;
use crate::llm::{LanguageModel, Lora, Prompt, ScaledLora, Sequence, Wanted};
use std::ops::Range;
use wasm_bindgen::prelude::*;

/// A sequence, and the model that reads it.
#[wasm_bindgen]
#[derive(Debug)]
pub struct Session {
    model: LanguageModel,
    sequence: Home,
}

impl Session {
    pub(super) fn new(model: LanguageModel, sequence: Sequence) -> Self {
        let sequence = Home::new(Some(sequence).into());
        Self { model, sequence }
    }

    /// # Errors
    /// `DeviceLost` if a trap ended the sequence's last use.
    fn lend(&self) -> Result<Lent> {
        let lent = Lent::of(&self.sequence);
        lent.ok_or_else(|| Error::DeviceLost {
            reason: "the module failed, and the session's tokens with it".to_owned(),
        })
    }

    async fn read(&self, tokens: &[u32], wanted: Wanted) -> Result<Vec<f32>> {
        self.lend()?.read(&self.model, tokens, wanted).await
    }

    async fn without(&self, range: Range<usize>) -> Result<Vec<f32>> {
        self.lend()?.remove(&self.model, range).await
    }

    async fn forked(&self) -> Result<Session> {
        let fork = self.lend()?.fork(&self.model).await?;
        Ok(Self::new(self.model.clone(), fork))
    }

    async fn saved(&self) -> Result<Vec<u8>> {
        self.lend()?.save(&self.model).await
    }

    fn generation(&self, prompt: Prompt, options: &JsValue) -> Result<Generation> {
        let sequence = self.lend()?;
        let mut generate = options_of(options);
        generate.lora = sequence.lora().to_vec();
        Generation::new(&self.model, sequence, prompt, generate)
    }
}

#[wasm_bindgen]
impl Session {
    /// Reads tokens and returns the logits after the last one.
    pub async fn prefill(&self, tokens: Vec<u32>) -> Result<Vec<f32>, JsValue> {
        let logits = self.read(&tokens, Wanted::Last).await;
        logits.map_err(|error| to_js(&error))
    }

    /// Reads tokens and returns the logits after each of them.
    pub async fn logits(&self, tokens: Vec<u32>) -> Result<Vec<f32>, JsValue> {
        let logits = self.read(&tokens, Wanted::All).await;
        logits.map_err(|error| to_js(&error))
    }

    /// Answers a conversation, whose beginning the session may have: a request with its messages and options, as JSON.
    pub fn chat(&self, request: String, options: JsValue) -> Result<Generation, JsValue> {
        let request = ChatRequest::from_json(request);
        let prompt = request.and_then(|request| Prompt::of_conversation(&self.model, &request));
        let generation = prompt.and_then(|prompt| self.generation(prompt, &options));
        generation.map_err(|error| to_js(&error))
    }

    /// Continues a text. The session may have read its beginning.
    pub fn complete(&self, prompt: &str, options: JsValue) -> Result<Generation, JsValue> {
        let prompt = Prompt::of_text(&self.model, prompt);
        let generation = prompt.and_then(|prompt| self.generation(prompt, &options));
        generation.map_err(|error| to_js(&error))
    }

    /// Forgets all tokens but the first `length`.
    pub fn rewind(&self, length: usize) -> Result<(), JsValue> {
        let rewound = self.lend().and_then(|mut sequence| sequence.rewind(length));
        rewound.map_err(|error| to_js(&error))
    }

    /// Forgets the tokens from `start` to before `end`; returns the logits after the last one.
    pub async fn remove(&self, start: usize, end: usize) -> Result<Vec<f32>, JsValue> {
        let logits = self.without(start..end).await;
        logits.map_err(|error| to_js(&error))
    }

    /// Copies the session.
    pub async fn fork(&self) -> Result<Session, JsValue> {
        self.forked().await.map_err(|error| to_js(&error))
    }

    /// Returns the session as bytes.
    pub async fn save(&self) -> Result<Vec<u8>, JsValue> {
        self.saved().await.map_err(|error| to_js(&error))
    }

    /// The tokens so far.
    pub fn tokens(&self) -> Result<Vec<u32>, JsValue> {
        let tokens = self.lend().map(|sequence| sequence.tokens().to_vec());
        tokens.map_err(|error| to_js(&error))
    }
}

/// Adapters by the numbers that scripts have for them.
#[derive(Debug, Default)]
pub(super) struct Loras(Vec<Option<Lora>>);

impl Loras {
    /// Adds an adapter; returns its number.
    pub(super) fn add(&mut self, lora: Lora) -> usize {
        self.0.push(Some(lora));
        self.0.len() - 1
    }

    /// Releases an adapter.
    pub(super) fn remove(&mut self, number: usize) {
        if let Some(lora) = self.0.get_mut(number) {
            *lora = None;
        }
    }

    /// The adapters of pairs of a number and a factor.
    ///
    /// # Errors
    /// `Disposed` for one that was released.
    pub(super) fn scaled(&self, pairs: &[f64]) -> Result<Vec<ScaledLora>> {
        let (pairs, _) = pairs.as_chunks::<2>();
        let scaled = pairs.iter().map(|&[number, scale]| {
            let lora = self.0.get(number as usize).and_then(Option::as_ref);
            let lora = lora.ok_or(Error::Disposed { what: "Lora" })?;
            Ok(lora.scaled(scale as f32))
        });
        scaled.collect()
    }
}
