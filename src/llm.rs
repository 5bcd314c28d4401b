//! Language models from GGUF files.
//!
//! [`LanguageModel`] loads a file, tokenizes, and answers on SIMD; its weights stay quantised.
//! [`Gguf`] reads files of any content.

mod conversation;
mod generate;
#[cfg(not(target_arch = "wasm32"))]
mod generation;
mod gguf;
mod language_model;
mod model;
mod quantized_matrix;
mod sampling;
mod sequence;
mod session;
mod template;
mod tokenizer;

pub use crate::tensor::ggml::WeightType;
pub use conversation::Message;
#[cfg(all(target_arch = "wasm32", feature = "js-llm"))]
pub(crate) use generate::Generator;
pub use generate::{FinishReason, GenerateOptions};
#[cfg(not(target_arch = "wasm32"))]
pub use generation::Generation;
pub use gguf::{Array, Gguf, TensorInfo, Value};
pub use language_model::{LanguageModel, LoadOptions, ModelInfo};
pub use quantized_matrix::QuantizedMatrix;
pub use sampling::Sampling;
#[cfg(all(target_arch = "wasm32", feature = "js-llm"))]
pub(crate) use sequence::Sequence;
pub use session::Session;
