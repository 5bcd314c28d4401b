//! Conversion of errors to JavaScript, and promises that reject with them.

use std::pin::Pin;

use js_sys::Promise;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::future_to_promise;

use super::convert::{get, invalid};
use super::types::AbortOptions;
use crate::error::{Error, Result};
use crate::js_shared::converted;

/// Converts an error of this crate to a JavaScript error.
pub(super) fn to_js(error: &Error) -> JsValue {
    converted(error, &JsValue::UNDEFINED)
}

/// An operation's `AbortSignal`, from any realm; `None` if none was given.
struct Signal(Option<JsValue>);

impl Signal {
    fn of(options: Option<&AbortOptions>) -> Result<Self> {
        let signal = options.map_or(JsValue::UNDEFINED, |options| get(options, "signal"));
        if signal.is_undefined() || signal.is_null() {
            return Ok(Self(None));
        }
        match aborted(&signal) {
            Some(_) => Ok(Self(Some(signal))),
            None => Err(invalid("signal", &signal, "an AbortSignal")),
        }
    }

    /// Returns `Aborted`, with the signal's reason as the cause, if the signal was aborted.
    fn check(&self) -> Result<(), JsValue> {
        match &self.0 {
            Some(signal) if aborted(signal) == Some(true) => {
                Err(converted(&Error::Aborted, &get(signal, "reason")))
            }
            _ => Ok(()),
        }
    }
}

/// Returns whether a signal was aborted; `None` if the value is not a signal.
fn aborted(signal: &JsValue) -> Option<bool> {
    get(signal, "aborted").as_bool()
}

/// A type-erased future, so that the code around it is compiled once.
pub(super) type Work = Pin<Box<dyn Future<Output = Result<JsValue>>>>;

/// Starts work and returns a promise of its result, unless the signal is aborted already. The work
/// reads its arguments before this function returns.
pub(super) fn begun(
    options: Option<&AbortOptions>,
    begin: &mut dyn FnMut() -> Result<Work>,
) -> Promise {
    // What is wrong with a signal, the promise tells.
    let work = match Signal::of(options) {
        Ok(signal) if signal.check().is_ok() => begin(),
        _ => Err(Error::Aborted),
    };
    promise(options, Box::pin(async move { work?.await }))
}

/// Returns a promise of the result of `work`. The signal is checked before anything is submitted
/// and again when the result is ready: work that a GPU has begun cannot be cancelled.
pub(super) fn promise(options: Option<&AbortOptions>, work: Work) -> Promise {
    let signal = Signal::of(options);
    future_to_promise(async move {
        let signal = signal.map_err(|error| to_js(&error))?;
        signal.check()?;
        let value = work.await.map_err(|error| to_js(&error))?;
        signal.check()?;
        Ok(value)
    })
}
