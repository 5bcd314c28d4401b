//! Shared parts of the npm package's compute and PTX entries: `RelampagoError`, the only class of
//! errors, and conversion of whole numbers.
//!
//! The files:
//!
//! - `/src/js` has the classes of the module that computes, and conversion and checks of JavaScript's values.
//! - `/src/js/module` is the crate that links the library as WebAssembly and counts its bytes.
//! - Rust imports scripts of `js/` by their paths from the repository's root, so wasm-bindgen copies them beside its
//!   own script.

use wasm_bindgen::prelude::*;

#[wasm_bindgen(module = "/js/common/error.js")]
extern "C" {
    type RelampagoError;

    #[wasm_bindgen(constructor)]
    fn new(code: &str, message: &str, cause: &JsValue) -> RelampagoError;
}

/// Creates an error with a stable code and its cause, or undefined.
pub(crate) fn error(code: &str, message: &str, cause: &JsValue) -> JsValue {
    RelampagoError::new(code, message, cause).into()
}

/// Converts an error of this crate, with its cause or undefined.
#[cfg(any(feature = "js", feature = "js-train"))]
pub(crate) fn converted(failure: &crate::error::Error, cause: &JsValue) -> JsValue {
    error(failure.code(), &failure.to_string(), cause)
}

/// Converts a value that is a whole number below 2³².
#[cfg(any(feature = "js", feature = "js-llm", feature = "js-ptx"))]
pub(crate) fn whole(value: &JsValue) -> Option<u32> {
    let valid =
        |number: &f64| number.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(number);
    value.as_f64().filter(valid).map(|number| number as u32)
}
