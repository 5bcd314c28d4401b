//! A model whose matrices go to a GPU as they arrive.

use super::device::Device;
use super::model::Model;
use super::model_bytes::{ModelBytes, file_size, load_options, renamed};
use super::to_js;
use crate::llm::{IncomingModel, chat_template};
use wasm_bindgen::prelude::*;

/// A model whose matrices go to a GPU as they arrive.
#[wasm_bindgen]
#[derive(Debug)]
pub struct ArrivingModel {
    model: IncomingModel,
    /// Why it is on this back-end.
    reason: String,
}

#[wasm_bindgen]
impl Device {
    /// Returns a model on this GPU that begins with these bytes of a file of this size, which have all that stands before
    /// the weights.
    ///
    /// # Errors
    /// The errors of `IncomingModel::new` and `write`.
    pub async fn begin(
        &self,
        bytes: ModelBytes,
        size: f64,
        options: JsValue,
    ) -> Result<ArrivingModel, JsValue> {
        let mut load = load_options(&options);
        load.device = Some(self.device.clone());
        let reason = self.device.info().reason;
        let bytes = bytes.bytes;
        let model = IncomingModel::new(bytes.clone(), file_size(size), load);
        let model = model.map_err(|error| to_js(&renamed(error)))?;
        let mut arriving = ArrivingModel { model, reason };
        arriving.write(bytes).await?;
        Ok(arriving)
    }
}

#[wasm_bindgen]
impl ArrivingModel {
    /// Takes the next bytes of the file. The errors are those of `IncomingModel::write`.
    pub async fn write(&mut self, piece: Vec<u8>) -> Result<(), JsValue> {
        let taken = self.model.write_async(&piece).await;
        taken.map_err(|error| to_js(&error))
    }

    /// Returns whether the file has a chat template.
    #[wasm_bindgen(js_name = hasChatTemplate)]
    pub fn has_chat_template(&self) -> bool {
        chat_template(self.model.file()).is_some()
    }

    /// Returns the model, all of whose bytes have arrived. The errors are those of `IncomingModel::finish`.
    pub async fn finish(self) -> Result<Model, JsValue> {
        let model = self.model.finish_async().await;
        let model = model.map_err(|error| to_js(&error))?;
        Ok(Model::new(model, self.reason))
    }
}
