//! Measurement of the fastest kernels. `full/page.js` persists the choices.

use js_sys::{Array, Promise};
use wasm_bindgen::prelude::*;

use super::convert::Parameter;
use super::device::JsDevice;
use super::error::promise;
use super::ops;
use super::types::*;

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
