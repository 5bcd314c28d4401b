//! The module `relampago/llm`: language models of [`crate::llm`] for the scripts in `js/llm/`, which check
//! what users pass and run the module in a worker.
//!
//! This WebAssembly module is separate from the one that computes.
//!
//! The files:
//!
//! - `arriving_model` sends matrices to a GPU as they arrive, `lent` gives a model's and sessions' tokens to an answer
//!   and back. `tune` is in the module that tunes, which has all of this module as well.
//! - Its scripts are in `/js/llm/`: `language_model` is the public class, `engine` runs the module in this thread or in
//!   `llm_worker`, `chat_module` replaces an instance of the second module that a trap ended, `arrival` finds the end
//!   of a file's metadata and gives the rest to a GPU, `worker_engine` is the proxy of a module in a worker, `source`
//!   opens files, `inspection` reads the metadata at their beginnings, `remote_file` is a file on a server,
//!   `remote_range` a part of one, `cached_model` the copy in the browser, `remote_model` joins parts from the server
//!   and the copy, `tuning` starts the module that tunes, in a worker of its own.

// wasm-bindgen exports public items, and passes handles by value.
#![allow(unreachable_pub, clippy::needless_pass_by_value)]

mod arriving_model;
mod device;
mod explain;
mod generation;
mod lent;
mod model;
mod model_bytes;
mod quantized_matrix;
mod session;
#[cfg(feature = "js-tune")]
mod tune;

use wasm_bindgen::prelude::*;

use crate::device::Backend;
use crate::error::Error;
use crate::js_shared;
use js_sys::Reflect;

/// Converts an error of this crate to a JavaScript error.
fn to_js(error: &Error) -> JsValue {
    let message = match error {
        // Users have no other device.
        Error::DeviceLost { reason } => format!("the model was lost, reload it: {reason}"),
        other => other.to_string(),
    };
    js_shared::error(error.code(), &message, &JsValue::UNDEFINED)
}

/// Returns a property, or undefined.
fn get(object: &JsValue, key: &str) -> JsValue {
    Reflect::get(object, &key.into()).unwrap_or_default()
}

/// Returns a property that the scripts have found to be a whole number below 2³² or absent.
fn integer(object: &JsValue, key: &str) -> Option<usize> {
    js_shared::whole(&get(object, key)).map(|value| value as usize)
}

/// Sets a property of an object that this module made.
fn set(object: &js_sys::Object, key: &str, value: impl Into<JsValue>) {
    // Fails on frozen objects only.
    let _ = Reflect::set(object, &key.into(), &value.into());
}

/// Returns the name that JavaScript has for a back-end of models.
fn backend_name(backend: Backend) -> &'static str {
    match backend {
        Backend::Gpu => "gpu",
        _ => "simd",
    }
}
