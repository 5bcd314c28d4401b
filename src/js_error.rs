//! `RelampagoError`, the one class of errors that JavaScript gets.

use wasm_bindgen::prelude::*;

#[wasm_bindgen(raw_module = "./error.js")]
extern "C" {
    type RelampagoError;

    #[wasm_bindgen(constructor)]
    fn new(code: &str, message: &str, cause: &JsValue) -> RelampagoError;
}

/// An error with one of the stable codes, and what it was caused by, or undefined.
pub(crate) fn error(code: &str, message: &str, cause: &JsValue) -> JsValue {
    RelampagoError::new(code, message, cause).into()
}
