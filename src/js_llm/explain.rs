//! The steps of a token as plain objects.

use super::model::Model;
use super::{backend_name, set};
use crate::llm::ModelStep;
use js_sys::{Array, Object};
use wasm_bindgen::prelude::*;

#[wasm_bindgen]
impl Model {
    /// Returns the result of JavaScript's `LanguageModel.explain`.
    pub fn explain(&self) -> Object {
        let (explanation, object) = (self.language.explain(), Object::new());
        set(&object, "backend", backend_name(explanation.backend));
        set(&object, "weightBytes", explanation.weight_bytes as f64);
        let steps: Array = explanation.steps.iter().map(step_object).collect();
        set(&object, "steps", steps);
        object
    }
}

fn step_object(step: &ModelStep) -> Object {
    let object = Object::new();
    let layer = step.layer.map(|layer| layer as f64);
    set(&object, "layer", layer.map_or(JsValue::NULL, JsValue::from));
    set(
        &object,
        "operations",
        strings(step.operations.iter().copied()),
    );
    set(&object, "kernel", step.kernel);
    set(&object, "backend", backend_name(step.backend));
    let shape: Array = step
        .shape
        .iter()
        .map(|&len| JsValue::from(len as f64))
        .collect();
    set(&object, "shape", shape);
    set(
        &object,
        "tensors",
        strings(step.tensors.iter().map(String::as_str)),
    );
    let kind = step
        .weight_type
        .map(|kind| JsValue::from(format!("{kind:?}")));
    set(&object, "weightType", kind.unwrap_or(JsValue::NULL));
    set(&object, "weightBytes", step.weight_bytes as f64);
    object
}

fn strings<'a>(texts: impl Iterator<Item = &'a str>) -> Array {
    texts.map(JsValue::from).collect()
}
