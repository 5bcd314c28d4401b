//! A sequence of tokens that a script reads, continues and rewinds.

use super::to_js;
use crate::llm::{LanguageModel, Lora, ScaledLora, Sequence, Wanted};
use wasm_bindgen::prelude::*;

/// A sequence, and the model that reads it.
#[wasm_bindgen]
#[derive(Debug)]
pub struct Session {
    model: LanguageModel,
    sequence: Sequence,
}

impl Session {
    pub(super) fn new(model: LanguageModel, sequence: Sequence) -> Self {
        Self { model, sequence }
    }

    async fn read(&mut self, tokens: &[u32], wanted: Wanted) -> Result<Vec<f32>, JsValue> {
        let logits = self.sequence.read(&self.model, tokens, wanted).await;
        logits.map_err(|error| to_js(&error))
    }
}

#[wasm_bindgen]
impl Session {
    /// Reads tokens and returns the logits after the last one.
    pub async fn prefill(&mut self, tokens: Vec<u32>) -> Result<Vec<f32>, JsValue> {
        self.read(&tokens, Wanted::Last).await
    }

    /// Reads tokens and returns the logits after each of them.
    pub async fn logits(&mut self, tokens: Vec<u32>) -> Result<Vec<f32>, JsValue> {
        self.read(&tokens, Wanted::All).await
    }

    /// Forgets all tokens but the first `length`.
    pub fn rewind(&mut self, length: usize) -> Result<(), JsValue> {
        self.sequence.rewind(length).map_err(|error| to_js(&error))
    }

    /// Copies the session.
    pub async fn fork(&self) -> Result<Session, JsValue> {
        let fork = self.sequence.fork(&self.model).await;
        let fork = fork.map_err(|error| to_js(&error))?;
        Ok(Self::new(self.model.clone(), fork))
    }

    /// Returns the session as bytes.
    pub async fn save(&self) -> Result<Vec<u8>, JsValue> {
        let saved = self.sequence.save(&self.model).await;
        saved.map_err(|error| to_js(&error))
    }

    /// The tokens so far.
    pub fn tokens(&self) -> Vec<u32> {
        self.sequence.tokens().to_vec()
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

    /// The adapters of pairs of a number and a factor; those that were released are left out, which
    /// scripts check.
    pub(super) fn scaled(&self, pairs: &[f64]) -> Vec<ScaledLora> {
        let (pairs, _) = pairs.as_chunks::<2>();
        let scaled = pairs.iter().filter_map(|&[number, scale]| {
            let lora = self.0.get(number as usize)?.as_ref()?;
            Some(lora.scaled(scale as f32))
        });
        scaled.collect()
    }
}
