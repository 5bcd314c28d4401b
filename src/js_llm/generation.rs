//! An answer in the making, a step at a time, so that scripts may cancel it in between.

use super::lent::Lent;
use super::to_js;
use crate::error::Result;
use crate::llm::chat::AnswerReader;
use crate::llm::{GenerateOptions, Generator, LanguageModel, Prompt};
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
    reader: Option<AnswerReader>,
}

impl Generation {
    pub(super) fn new(
        model: &LanguageModel,
        sequence: Lent,
        mut prompt: Prompt,
        options: GenerateOptions,
    ) -> Result<Self> {
        let mut reader = prompt.reader.take();
        let generator = Generator::new(model, sequence, prompt, options)?;
        // The text of tokens that exist is that before the answer.
        if let Some(reader) = &mut reader {
            reader.push_json(generator.existing_text())?;
        }
        Ok(Self {
            model: model.clone(),
            generator,
            reader,
        })
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

    /// Divides a piece of the answer's text into deltas: JSON arrays. Returns none for an answer that has neither reasoning
    /// nor calls. `has_ended` says that no other piece follows.
    pub fn divide(&mut self, text: &str, has_ended: bool) -> Result<Vec<String>, JsValue> {
        let Some(reader) = &mut self.reader else {
            return Ok(Vec::new());
        };
        let mut deltas = vec![reader.push_json(text).map_err(|error| to_js(&error))?];
        if has_ended {
            deltas.push(reader.finish_json().map_err(|error| to_js(&error))?);
        }
        Ok(deltas)
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
        let has_calls = self.reader.as_ref().is_some_and(AnswerReader::has_calls);
        let reason = self.generator.finished()?.with_calls(has_calls);
        Some(reason.to_string())
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
