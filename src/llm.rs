//! Language models from GGUF files.
//!
//! [`LanguageModel`] loads a file, tokenizes, and answers on SIMD; its weights stay quantised.
//! [`Gguf`] reads files of any content.

mod conversation;
mod generate;
mod gguf;
mod language_model;
mod model;
mod sampling;
mod session;
mod template;
mod tokenizer;

pub use crate::tensor::ggml::WeightType;
pub use conversation::Message;
pub use generate::{GenerateOptions, Generation};
pub use gguf::{Array, Gguf, TensorInfo, Value};
pub use language_model::{LanguageModel, LoadOptions, ModelInfo};
pub use sampling::Sampling;
pub use session::Session;
