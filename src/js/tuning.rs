//! Measuring which kernels are the fastest; `full/page.js` keeps what came of it.

use js_sys::{Array, Promise};
use wasm_bindgen::prelude::*;

use super::convert::Parameter;
use super::device::JsDevice;
use super::error::promise;
use super::ops;
use super::types::*;

#[wasm_bindgen(js_class = GpuDevice)]
impl JsDevice {
    /// Measures the kernels for the operation at a place in the op table, whose inputs' lengths
    /// stand in their places; names and seconds in turn, the fastest first, or none without a
    /// choice.
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

    /// All choices, to be kept.
    #[wasm_bindgen(skip_typescript)]
    pub fn choices(&self) -> Result<Vec<u8>, JsValue> {
        let device = self.get()?;
        Ok(device.gpu().map(|gpu| gpu.choices()).unwrap_or_default())
    }

    /// Takes choices that were kept, unless something happened to them.
    #[wasm_bindgen(skip_typescript, js_name = adoptChoices)]
    pub fn adopt_choices(&self, choices: &[u8]) -> Result<(), JsValue> {
        let device = self.get()?;
        if let Some(gpu) = device.gpu() {
            gpu.adopt_choices(choices);
        }
        Ok(())
    }
}
