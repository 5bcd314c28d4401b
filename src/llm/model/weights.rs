//! Where a model's weights are in the file, with their shapes checked once.

use super::Config;
use crate::error::Result;
use crate::llm::WeightType;
use crate::llm::gguf::{Gguf, invalid};
use crate::simd::BlockMatrix;
use std::ops::Range;

/// A matrix in the file.
#[derive(Clone, Debug)]
pub(super) struct Weight {
    kind: WeightType,
    range: Range<usize>,
    pub(super) rows: usize,
    pub(super) cols: usize,
}

impl Weight {
    fn new(file: &Gguf, name: &str, rows: usize, cols: usize) -> Result<Self> {
        let fault = |what: String| invalid(what, format!("tensor `{name}`"));
        let tensor = file
            .tensor(name)
            .ok_or_else(|| fault("missing".to_owned()))?;
        if tensor.shape() != [cols, rows] {
            let what = format!(
                "its shape is {:?}, but must be [{cols}, {rows}]",
                tensor.shape()
            );
            return Err(fault(what));
        }
        Ok(Self {
            kind: tensor.weight_type(),
            range: tensor.range(),
            rows,
            cols,
        })
    }

    /// The matrix in the file that it was found in.
    pub(super) fn matrix<'a>(&self, file: &'a Gguf) -> Result<BlockMatrix<'a>> {
        let data = file.slice(self.range.clone());
        let matrix = BlockMatrix::new(self.kind, data, self.rows, self.cols);
        matrix.ok_or_else(|| {
            invalid(
                "weights of another size",
                format!("byte {}", self.range.start),
            )
        })
    }
}

/// The weights of a layer.
#[derive(Debug)]
pub(super) struct Layer {
    pub(super) attention_norm: Vec<f32>,
    pub(super) query: Weight,
    pub(super) key: Weight,
    pub(super) value: Weight,
    pub(super) output: Weight,
    pub(super) feed_norm: Vec<f32>,
    pub(super) gate: Weight,
    pub(super) up: Weight,
    pub(super) down: Weight,
}

/// The weights of a model.
#[derive(Debug)]
pub(super) struct Layout {
    pub(super) embedding: Weight,
    pub(super) layers: Vec<Layer>,
    pub(super) norm: Vec<f32>,
    pub(super) head: Weight,
}

impl Layout {
    pub(super) fn new(file: &Gguf, config: &Config) -> Result<Self> {
        let embedding = file.tensor("token_embd.weight");
        let vocabulary = embedding.and_then(|tensor| tensor.shape().get(1).copied());
        let vocabulary = vocabulary.unwrap_or_default();
        let embedding = Weight::new(file, "token_embd.weight", vocabulary, config.width)?;
        let head = match file.tensor("output.weight") {
            Some(_) => Weight::new(file, "output.weight", vocabulary, config.width)?,
            None => embedding.clone(),
        };
        let mut layers = Vec::new();
        for index in 0..config.layers {
            layers.push(layer(file, config, index)?);
        }
        Ok(Self {
            embedding,
            layers,
            norm: vector(file, "output_norm.weight", config.width)?,
            head,
        })
    }
}

fn layer(file: &Gguf, config: &Config, index: usize) -> Result<Layer> {
    let name = |part: &str| format!("blk.{index}.{part}.weight");
    let weight = |part: &str, rows, cols| Weight::new(file, &name(part), rows, cols);
    for part in ["attn_q", "attn_k", "attn_v", "attn_output"] {
        let bias = format!("blk.{index}.{part}.bias");
        if file.tensor(&bias).is_some() {
            return Err(invalid(
                "biases are not supported",
                format!("tensor `{bias}`"),
            ));
        }
    }
    let (width, hidden) = (config.width, config.hidden);
    let (queries, keys) = (
        config.heads * config.head_len,
        config.kv_heads * config.head_len,
    );
    Ok(Layer {
        attention_norm: vector(file, &name("attn_norm"), width)?,
        query: weight("attn_q", queries, width)?,
        key: weight("attn_k", keys, width)?,
        value: weight("attn_v", keys, width)?,
        output: weight("attn_output", width, queries)?,
        feed_norm: vector(file, &name("ffn_norm"), width)?,
        gate: weight("ffn_gate", hidden, width)?,
        up: weight("ffn_up", hidden, width)?,
        down: weight("ffn_down", width, hidden)?,
    })
}

/// A vector of weights, dequantised.
fn vector(file: &Gguf, name: &str, len: usize) -> Result<Vec<f32>> {
    let tensor = file.tensor(name).filter(|tensor| tensor.shape() == [len]);
    let fault = || {
        invalid(
            format!("missing, or no vector of {len}"),
            format!("tensor `{name}`"),
        )
    };
    let tensor = tensor.ok_or_else(fault)?;
    let mut weights = crate::alloc::try_zeros(len)?;
    tensor
        .weight_type()
        .dequantize(file.data(tensor), &mut weights);
    Ok(weights)
}
