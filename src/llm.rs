//! Language models from GGUF files.
//!
//! [`LanguageModel`] loads a file, tokenizes, and answers on SIMD; its weights stay quantised.
//! [`Gguf`] reads files of any content.

mod ahead;
mod answer_text;
pub(crate) mod chat;
mod conversation;
mod embedding;
mod explain;
mod fingerprint;
mod forward_pass;
mod generate;
mod generation;
mod gguf;
mod incoming_model;
mod inspect;
mod language_model;
mod logprobs;
mod lora;
mod model;
mod quantized_matrix;
mod ranking;
mod sampling;
mod saved;
mod sequence;
mod session;
mod tokenizer;

pub use crate::tensor::cache_type::CacheType;
pub use crate::tensor::ggml::WeightType;
pub use conversation::Message;
pub use embedding::{EmbedOptions, Pooling};
pub use explain::{ModelExplanation, ModelStep};
pub use forward_pass::ForwardPass;
pub use generate::{FinishReason, GenerateOptions};
pub use generation::Generation;
pub use gguf::{Array, Gguf, GgufWriter, TensorInfo, Value};
#[cfg(all(target_arch = "wasm32", feature = "js-llm"))]
pub(crate) use gguf::{HeadProgress, HeadReader};
pub use incoming_model::IncomingModel;
pub use inspect::Inspection;
pub use language_model::{LanguageModel, LoadOptions, ModelInfo};
pub use logprobs::{Candidate, TokenLogprobs};
pub use lora::{Lora, LoraOptions, QkvLora, ScaledLora};
pub use quantized_matrix::QuantizedMatrix;
pub use sampling::Sampling;
pub use session::Session;
#[cfg(all(target_arch = "wasm32", feature = "js-llm"))]
pub(crate) use {
    generate::Generator, language_model::chat_template, model::Wanted, sequence::Sequence,
};
