//! Devices of models and matrices.

use super::{backend_name, to_js};
use crate::device::{Backend, GpuDevice};
use wasm_bindgen::prelude::*;

/// A device for a model, or for matrices that share it.
#[wasm_bindgen]
#[derive(Debug)]
pub struct Device {
    pub(super) device: GpuDevice,
}

#[wasm_bindgen]
impl Device {
    /// Opens a device: `simd`, `gpu`, or `auto`, which is a hardware GPU if there is one and SIMD otherwise. `gpu`
    /// fails with `NO_GPU` if there is none.
    pub async fn open(device: String) -> Result<Self, JsValue> {
        let backend = match device.as_str() {
            "simd" => Backend::Simd,
            "gpu" => Backend::Gpu,
            _ => Backend::Auto,
        };
        let device = GpuDevice::builder().backend(backend).build_async().await;
        let device = device.map_err(|error| to_js(&error))?;
        Ok(Self { device })
    }

    /// The name of its back-end.
    #[wasm_bindgen(getter)]
    pub fn backend(&self) -> String {
        backend_name(self.device.info().backend).to_owned()
    }
}
