//! A model's file on its way into this module's memory.

use super::model::Model;
use super::{get, integer, to_js};
use crate::device::{Backend, GpuDevice};
use crate::error::Error;
use crate::llm::{LanguageModel, LoadOptions};
use js_sys::Uint8Array;
use wasm_bindgen::prelude::*;

/// By how many bytes a file's memory grows if its size was not known.
const STEP: usize = 16 << 20;

/// The bytes of a file, which arrive piece by piece and are never copied again.
#[wasm_bindgen]
#[derive(Debug)]
pub struct ModelBytes {
    bytes: Vec<u8>,
}

#[wasm_bindgen]
impl ModelBytes {
    /// Allocates memory for a file of about `length` bytes.
    #[wasm_bindgen(constructor)]
    pub fn new(length: f64) -> Result<Self, JsValue> {
        let mut file = Self { bytes: Vec::new() };
        file.reserve(length as usize)?;
        Ok(file)
    }

    fn reserve(&mut self, more: usize) -> Result<(), JsValue> {
        let reserved = self.bytes.try_reserve_exact(more);
        let bytes = (self.bytes.len() + more) as u64;
        reserved.map_err(|_| to_js(&Error::OutOfMemory { bytes }))
    }

    /// Appends a piece of the file.
    pub fn write(&mut self, piece: &Uint8Array) -> Result<(), JsValue> {
        let len = piece.length() as usize;
        if len > self.bytes.capacity() - self.bytes.len() {
            self.reserve(len.max(STEP))?;
        }
        piece.copy_to_uninit(&mut self.bytes.spare_capacity_mut()[..len]);
        // SAFETY: the piece has filled as many bytes of the capacity.
        unsafe { self.bytes.set_len(self.bytes.len() + len) };
        Ok(())
    }

    /// Makes a model of the whole file. `device` is `simd`, `gpu`, or `auto`: a hardware GPU that can hold
    /// the weights if there is one, else SIMD.
    pub async fn load(self, options: JsValue) -> Result<Model, JsValue> {
        let load = LoadOptions {
            context_length: integer(&options, "contextLength"),
            ..LoadOptions::default()
        };
        let model = LanguageModel::from_bytes_async(self.bytes, load).await;
        let mut model = model.map_err(|error| to_js(&renamed(error)))?;
        let device = get(&options, "device").as_string();
        let reason = match device.as_deref() {
            Some("simd") => Ok("SIMD was asked for".to_owned()),
            Some("gpu") => move_to_gpu(&mut model, Backend::Gpu).await,
            _ => {
                let moved = move_to_gpu(&mut model, Backend::Auto).await;
                moved.or_else(|error| Ok(format!("the GPU cannot run this model: {error}")))
            }
        };
        let reason = reason.map_err(|error| to_js(&error))?;
        Ok(Model::new(model, reason))
    }
}

/// Moves a model to the GPU that the browser offers; returns why it is on the back-end that it is on.
async fn move_to_gpu(model: &mut LanguageModel, backend: Backend) -> Result<String, Error> {
    let device = GpuDevice::builder().backend(backend).build_async().await?;
    model.move_to_async(&device).await?;
    Ok(device.info().reason)
}

/// Gives the option in an error the name that JavaScript has for it.
fn renamed(error: Error) -> Error {
    match error {
        Error::InvalidArgument {
            what: "context_length",
            value,
            requirement,
        } => Error::invalid("contextLength", value, requirement),
        other => other,
    }
}
