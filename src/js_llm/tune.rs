//! Adapters that a model learns.

use super::model::{Model, numbers};
use super::{get, integer, set, to_js};
use crate::error::{Error, Result};
use crate::js_shared;
use crate::llm::{Progress, Schedule, TuneExample, TuneOptions, TunedLora};
use js_sys::{Array, Float32Array, Function, Object, Uint8Array};
use std::ops::ControlFlow;
use wasm_bindgen::JsCast;
use wasm_bindgen::prelude::*;

/// The names of options in Rust and in JavaScript, where they differ.
const NAMES: [(&str, &str); 5] = [
    ("learning_rate", "learningRate"),
    ("weight_decay", "weightDecay"),
    ("max_norm", "maxNorm"),
    ("max_tokens", "maxTokens"),
    ("held_back", "heldBack"),
];

#[wasm_bindgen]
impl Model {
    /// Learns an adapter from examples, each of which is JSON. `on_step` gets the progress of each step, and returns true
    /// after the last one. Returns the files of the adapter, its losses, and the state to go on from.
    pub async fn tune(
        &self,
        examples: Vec<String>,
        options: JsValue,
        on_step: Function,
    ) -> Result<Object, JsValue> {
        let examples = examples_of(&examples)?;
        let options = tune_options(&options, on_step);
        let tuned = self.language.tune_async(&examples, options).await;
        let object = tuned.and_then(|tuned| tuned_object(&tuned));
        object.map_err(|error| to_js(&renamed(error)))
    }
}

fn examples_of(texts: &[String]) -> Result<Vec<TuneExample>, JsValue> {
    let examples = texts.iter().enumerate().map(|(index, text)| {
        TuneExample::from_json(text).map_err(|error| {
            let message = format!("`examples[{index}]`: {error}");
            js_shared::error(error.code(), &message, &JsValue::UNDEFINED)
        })
    });
    examples.collect()
}

/// Options whose types the scripts have checked; ranges are checked where they are used.
fn tune_options(object: &JsValue, on_step: Function) -> TuneOptions {
    let mut options = TuneOptions::default();
    let float = |key, value: &mut f32| {
        if let Some(number) = get(object, key).as_f64() {
            *value = number as f32;
        }
    };
    float("alpha", &mut options.alpha);
    float("learningRate", &mut options.learning_rate);
    float("weightDecay", &mut options.weight_decay);
    float("maxNorm", &mut options.max_norm);
    float("heldBack", &mut options.held_back);
    let count = |key, value: &mut usize| *value = integer(object, key).unwrap_or(*value);
    count("rank", &mut options.rank);
    count("epochs", &mut options.epochs);
    count("warmup", &mut options.warmup);
    count("batch", &mut options.batch);
    count("maxTokens", &mut options.max_tokens);
    options.schedule = match get(object, "schedule").as_string().as_deref() {
        Some("constant") => Schedule::Constant,
        Some("linear") => Schedule::Linear,
        _ => Schedule::Cosine,
    };
    if let [start, end] = numbers(object, "layers")[..] {
        options.layers = Some(start as usize..end as usize);
    }
    if let Some(seed) = get(object, "seed").as_f64() {
        options.seed = seed as u64;
    }
    if let Ok(targets) = get(object, "targets").dyn_into::<Array>() {
        let targets = targets.iter().filter_map(|name| name.as_string());
        options = options.with_targets(targets);
    }
    if let Ok(bytes) = get(object, "resume").dyn_into::<Uint8Array>() {
        options = options.with_resume(bytes.to_vec());
    }
    options.on_step = Some(Box::new(move |progress: &Progress| {
        let is_last = on_step.call1(&JsValue::NULL, &progress_object(progress));
        if is_last.is_ok_and(|is_last| is_last.is_truthy()) {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }));
    options
}

/// Returns the properties of JavaScript's `TuneProgress`.
fn progress_object(progress: &Progress) -> Object {
    let object = Object::new();
    set(&object, "step", progress.step as f64);
    set(&object, "steps", progress.steps as f64);
    set(&object, "loss", progress.loss);
    set(&object, "learningRate", progress.learning_rate);
    set(&object, "tokensPerSecond", progress.tokens_per_second);
    set(&object, "secondsLeft", progress.seconds_left);
    if let Some(loss) = progress.held_back_loss {
        set(&object, "heldBackLoss", loss);
    }
    object
}

fn tuned_object(tuned: &TunedLora) -> Result<Object> {
    let object = Object::new();
    let bytes = |key, bytes: &[u8]| set(&object, key, Uint8Array::from(bytes));
    bytes("gguf", &tuned.to_gguf()?);
    bytes("safetensors", &tuned.to_safetensors()?);
    bytes("state", tuned.state());
    set(&object, "config", tuned.adapter_config());
    let losses = |key, losses: &[f32]| set(&object, key, Float32Array::from(losses));
    losses("losses", tuned.losses());
    losses("heldBackLosses", tuned.held_back_losses());
    Ok(object)
}

/// Gives the option in an error the name that JavaScript has for it.
fn renamed(error: Error) -> Error {
    match error {
        Error::InvalidArgument {
            what,
            value,
            requirement,
        } => {
            let own = NAMES.iter().find(|(name, _)| *name == what);
            Error::invalid(own.map_or(what, |(_, own)| *own), value, requirement)
        }
        other => other,
    }
}
