//! Matrices of quantised weights, for matmuls without a model.

use super::device::Device;
use super::to_js;
use crate::error::Error;
use crate::llm::{self, WeightType};
use std::rc::Rc;
use wasm_bindgen::prelude::*;

/// A matrix on a device.
#[wasm_bindgen]
#[derive(Debug)]
pub struct QuantizedMatrix {
    matrix: Rc<llm::QuantizedMatrix>,
}

#[wasm_bindgen]
impl Device {
    /// Places a matrix on the device.
    pub async fn add(
        &self,
        kind: String,
        blocks: Vec<u8>,
        rows: usize,
        cols: usize,
    ) -> Result<QuantizedMatrix, JsValue> {
        let unknown = || Error::invalid("type", &kind, "a type of weights");
        let kind = WeightType::named(&kind).ok_or_else(|| to_js(&unknown()))?;
        let matrix = llm::QuantizedMatrix::new_async(&self.device, kind, blocks, rows, cols).await;
        let matrix = Rc::new(matrix.map_err(|error| to_js(&error))?);
        Ok(QuantizedMatrix { matrix })
    }
}

#[wasm_bindgen]
impl QuantizedMatrix {
    /// The products of `m` rows with the weights' rows.
    pub async fn matmul(&self, x: Vec<f32>, m: usize) -> Result<Vec<f32>, JsValue> {
        let matrix = Rc::clone(&self.matrix);
        let product = async {
            let [rows, _] = matrix.shape();
            let len = crate::ops::shape::product("y", m, rows)?;
            let mut y = crate::alloc::try_zeros(len)?;
            matrix.matmul_async(&x, &mut y, m).await?;
            Ok(y)
        };
        product.await.map_err(|error: Error| to_js(&error))
    }
}
