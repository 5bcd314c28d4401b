//! Errors as JavaScript sees them, and promises that are rejected with them.

use std::pin::Pin;

use js_sys::Promise;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::future_to_promise;

use super::convert::{get, invalid};
use super::types::AbortOptions;
use crate::error::{Error, Result};
use crate::js_shared;

/// The JavaScript error for one of ours.
pub(super) fn to_js(error: &Error) -> JsValue {
    with_cause(error, &JsValue::UNDEFINED)
}

fn with_cause(error: &Error, cause: &JsValue) -> JsValue {
    js_shared::error(error.code(), &error.to_string(), cause)
}

/// An operation's `AbortSignal`, of any realm, if it was given one.
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

    /// `Aborted`, with the signal's reason as the cause, if it was.
    fn check(&self) -> Result<(), JsValue> {
        match &self.0 {
            Some(signal) if aborted(signal) == Some(true) => {
                Err(with_cause(&Error::Aborted, &get(signal, "reason")))
            }
            _ => Ok(()),
        }
    }
}

/// Whether a signal was aborted; nothing of what is no signal.
fn aborted(signal: &JsValue) -> Option<bool> {
    get(signal, "aborted").as_bool()
}

/// Work whose type is forgotten, so that what surrounds it is compiled once.
pub(super) type Work = Pin<Box<dyn Future<Output = Result<JsValue>>>>;

/// A promise of what comes of work that begins now, unless it was aborted before: its arguments
/// are read before anyone can change them.
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

/// A promise of what `work` comes to. The signal is looked at before anything is submitted and
/// again when the result is there: work that a GPU has begun cannot be taken back.
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
