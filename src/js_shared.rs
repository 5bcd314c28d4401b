//! What the npm package's entries for computing and for PTX share: `RelampagoError`, the one class of
//! errors that JavaScript gets, and whole numbers.

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

/// A whole number below 2³², if that is what a value is.
pub(crate) fn whole(value: &JsValue) -> Option<u32> {
    let valid =
        |number: &f64| number.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(number);
    value.as_f64().filter(valid).map(|number| number as u32)
}
