//! An answer in the making, a step at a time, so that scripts may cancel it in between.

use super::lent::Lent;
use super::to_js;
use crate::llm::{FinishReason, Generator, LanguageModel};
use js_sys::Function;
use std::pin::pin;
use std::task::Poll;
use wasm_bindgen::prelude::*;

/// An answer; its sequence goes back to the model or the session when it is freed.
#[wasm_bindgen]
#[derive(Debug)]
pub struct Generation {
    model: LanguageModel,
    generator: Generator<Lent>,
}

impl Generation {
    pub(super) fn new(model: LanguageModel, generator: Generator<Lent>) -> Self {
        Self { model, generator }
    }
}

#[wasm_bindgen]
impl Generation {
    /// Reads a block of the prompt, or generates a token once all of it was read. Returns the text
    /// that is certain by now, or nothing where generation has ended. Stops early, without an error, where
    /// `is_cancelled` returns true.
    pub async fn step(&mut self, is_cancelled: Function) -> Result<Option<String>, JsValue> {
        let (generator, model) = (&mut self.generator, &self.model);
        if generator.finished().is_some() {
            return Ok(None);
        }
        let step = async {
            match generator.read_prompt(model).await {
                Ok(false) => generator.step(model).await,
                read => read.map(|_| String::new()),
            }
        };
        let text = unless(&is_cancelled, step).await;
        let text = text.unwrap_or_else(|| Ok(String::new()));
        text.map(Some).map_err(|error| to_js(&error))
    }

    /// Returns the text that is held back, after an error.
    pub fn rest(&mut self) -> String {
        self.generator.flush()
    }

    /// The number of tokens of the prompt.
    #[wasm_bindgen(getter, js_name = promptTokens)]
    pub fn prompt_tokens(&self) -> usize {
        self.generator.prompt_tokens()
    }

    /// The tokens that were generated after the first `known` ones.
    #[wasm_bindgen(js_name = tokensAfter)]
    pub fn tokens_after(&self, known: usize) -> Vec<u32> {
        self.generator
            .tokens()
            .get(known..)
            .unwrap_or_default()
            .to_vec()
    }

    /// The probabilities of the tokens after the first `known` ones: for each the number of candidates beside
    /// it, and then the token and its logarithm for it and for each of these.
    #[wasm_bindgen(js_name = logprobsAfter)]
    pub fn logprobs_after(&self, known: usize) -> Vec<f64> {
        let all = self.generator.logprobs();
        // Tokens that existed before have none.
        let tokens = self.generator.tokens().len();
        let known = known.saturating_sub(tokens - all.len().min(tokens));
        let all = all.get(known..).unwrap_or_default().iter();
        let numbers = all.flat_map(|one| {
            let candidates = [one.chosen].into_iter().chain(one.top.iter().copied());
            let numbers = candidates.flat_map(|one| [f64::from(one.token), f64::from(one.logprob)]);
            [one.top.len() as f64].into_iter().chain(numbers)
        });
        numbers.collect()
    }

    /// Why generation ended, in `OpenAI`'s words.
    #[wasm_bindgen(getter, js_name = finishReason)]
    pub fn finish_reason(&self) -> Option<String> {
        let reason = match self.generator.finished()? {
            FinishReason::Stop => "stop",
            FinishReason::Length => "length",
        };
        Some(reason.to_owned())
    }
}

/// Runs a future, which pauses between slices of its work, until a script cancels it; returns nothing then.
pub(super) async fn unless<T>(is_cancelled: &Function, work: impl Future<Output = T>) -> Option<T> {
    let mut work = pin!(work);
    std::future::poll_fn(|context| {
        let cancelled = is_cancelled.call0(&JsValue::NULL);
        if cancelled.is_ok_and(|cancelled| cancelled.is_truthy()) {
            return Poll::Ready(None);
        }
        work.as_mut().poll(context).map(Some)
    })
    .await
}
