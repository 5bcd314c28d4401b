//! Measurements and checks of a GPU. `tuning.js` persists the choices of kernels.

use js_sys::{Array, Object, Promise};
use wasm_bindgen::prelude::*;

use super::convert::{Parameter, set};
use super::device::JsDevice;
use super::error::promise;
use super::ops;
use super::types::*;
use crate::device::{OnFault, TurnedOff};

#[wasm_bindgen(js_class = GpuDevice)]
impl JsDevice {
    /// Measures the kernels for the operation at an index in the op table; each input of
    /// `arguments` is a length. Returns names and seconds in turn, the fastest first; empty if
    /// there is no choice.
    #[wasm_bindgen(skip_typescript, js_name = tuneOne)]
    pub fn tune_one(&self, index: usize, arguments: Array, abort: Option<AbortOptions>) -> Promise {
        let device = self.handle();
        let call = ops::build(index, &arguments).and_then(|op| {
            let inputs = op.inputs().iter().zip(0..);
            let lens = inputs.map(|(what, place)| usize::from_js(&arguments.get(place), what));
            Ok((lens.collect::<Result<Vec<_>, _>>()?, op))
        });
        let work = async move {
            let (lens, op) = call?;
            let times = Array::new();
            for (kernel, seconds) in device?.tune_one(&op, &lens).await? {
                times.push(&kernel.into());
                times.push(&seconds.into());
            }
            Ok(times.into())
        };
        promise(abort.as_ref(), Box::pin(work))
    }

    /// Checks the GPU's results. A fault is an error if `fails`, and turned off otherwise.
    #[wasm_bindgen(skip_typescript, js_name = verifyNow)]
    pub fn verify_now(&self, fails: bool, abort: Option<AbortOptions>) -> Promise {
        let device = self.handle();
        let on_fault = if fails {
            OnFault::Fail
        } else {
            OnFault::TurnOff
        };
        let work = async move {
            let verification = device?.verify_async(on_fault).await?;
            let cases = Array::new();
            for case in verification.cases {
                let object = Object::new();
                set(&object, "operation", case.op);
                set(&object, "class", case.class.name());
                set(&object, "kernels", case.kernels.join(" "));
                set(&object, "error", case.error);
                set(&object, "bound", case.bound);
                cases.push(&object);
            }
            let object = Object::new();
            set(&object, "cases", cases);
            set(&object, "turnedOff", turned_off(&verification.turned_off));
            Ok(object.into())
        };
        promise(abort.as_ref(), Box::pin(work))
    }

    /// Serialises all choices.
    #[wasm_bindgen(skip_typescript)]
    pub fn choices(&self) -> Result<Vec<u8>, JsValue> {
        Ok(self.get()?.executor().choices())
    }

    /// Loads serialised choices, unless they are damaged.
    #[wasm_bindgen(skip_typescript, js_name = adoptChoices)]
    pub fn adopt_choices(&self, choices: &[u8]) -> Result<(), JsValue> {
        self.get()?.executor().adopt_choices(choices);
        Ok(())
    }
}

/// Returns an array of objects that say what is off, and why.
pub(super) fn turned_off(all: &[TurnedOff]) -> Array {
    let array = Array::new();
    for TurnedOff { what, reason } in all {
        let object = Object::new();
        set(&object, "what", *what);
        set(&object, "reason", reason.as_str());
        array.push(&object);
    }
    array
}
