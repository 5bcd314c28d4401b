//! Language models from GGUF files.
//!
//! [`LanguageModel`] loads a file, tokenizes, and answers on SIMD; its weights stay quantised.
//! [`Gguf`] reads files of any content.

// The files:
//
// - `gguf` reads a model from one file or several, without copying strings and weights: its `head` reads all that
//   stands before the weights, from a whole file or as the bytes arrive.
// - `inspect` reports the metadata at the beginning of files.
// - `incoming_model` is a model whose file arrives in pieces, and `model/backend/upload` its matrices on their way to a
//   GPU.
// - `tokenizer` merges byte pairs or pieces, takes the longest tokens (`wordpiece`) or those of the highest scores
//   (`unigram`), and splits texts into words by
//   the crate `regex`, in WebAssembly by JavaScript's regular expressions.
// - `model` has the table of architectures (`architecture`), that of metadata keys which are used or refused
//   (`known_keys`), the forward pass as a list of steps (`steps`) and the weights' places in the file (`weights`):
//   `backend` runs the steps on SIMD, wgpu and CUDA, `explain` lists them, `encode` passes whole texts through an
//   encoder.
// - `embedding` makes one vector of a text's tokens, `rerank` a score of a pair of texts.
// - `lora` reads adapters from safetensors files (crate `safetensors`) and GGUF files, `model/adapter` binds adapters
//   to a model's matrices, `forward_pass` runs single layers.
// - `sequence` has tokens with their keys and values, `session` is the public type for a sequence, `saved` turns a
//   sequence into bytes.
// - `generate` generates token by token, `answer_text` holds back what may begin a stop string, `generation` is the
//   blocking iterator of text. `answers` generates several at once, whose passes `round` shares.
// - `prompt` has the tokens before an answer, and how that is held and read.
// - `sampling` chooses tokens, `ahead` lets a GPU choose several tokens in advance, `ranking` orders tokens by
//   probability.
// - `chat/template` parses and renders templates as jinja2 does, with the origin of each character of `chat/text`.
// - `chat/json_schema` finds the tokens that a schema allows by `llguidance`, `chat/schema_limits` refuses schemas that
//   take too much work, `chat/formats` has patterns of dates and addresses.
// - `tools` has functions and their calls, `chat/request` what an answer is asked for, `chat/call_format` the forms in which
//   families write calls and reasoning, `chat/grammar` the grammar of an answer, and `chat/reader` divides one.
// - In the npm package `chat/imported` calls templates and schemas in `js_chat`.
// - `tune` teaches a model by examples, `model/tensors` records its layers as tensors with gradients.
// - `quantized_matrix` multiplies by weights in blocks without a model.
// - `conversation` keeps control tokens out of users' texts.
// - Block formats are in `src/tensor/ggml.rs`, their matmuls in `src/simd/matmul/ggml.rs`.

mod ahead;
mod answer_text;
#[cfg(feature = "llm")]
mod answers;
pub(crate) mod chat;
#[cfg_attr(not(feature = "llm"), allow(dead_code))]
// The npm package's module for templates has it.
mod conversation;
mod embedding;
mod explain;
mod fingerprint;
mod forward_pass;
mod generate;
#[cfg(feature = "llm")]
mod generation;
mod gguf;
mod guesses;
mod incoming_model;
mod inspect;
mod language_model;
mod logprobs;
mod lora;
mod model;
mod prompt;
mod quantized_matrix;
mod ranking;
mod rerank;
#[cfg_attr(not(feature = "llm"), allow(dead_code))]
// Only programs in Rust have several answers at once.
mod round;
mod sampling;
mod saved;
mod sequence;
mod session;
mod tokenizer;
#[cfg_attr(not(feature = "llm"), allow(dead_code))]
// The npm package's module for templates has it.
mod tools;
mod tune;

pub use crate::tensor::cache_type::CacheType;
pub use crate::tensor::ggml::WeightType;
#[cfg(feature = "llm")]
pub use answers::{AnswerEvent, AnswerId, Answers};
pub use conversation::Message;
pub use embedding::{EmbedOptions, Pooling};
pub use explain::{ModelExplanation, ModelStep};
pub use forward_pass::ForwardPass;
pub use generate::{FinishReason, GenerateOptions};
#[cfg(feature = "llm")]
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
pub use rerank::RankOptions;
pub use sampling::Sampling;
pub use session::Session;
pub use tools::{Delta, Tool, ToolCall, ToolChoice, ToolFormat};
pub use tune::{Progress, Schedule, TuneExample, TuneOptions, TunedLora};
#[cfg(all(target_arch = "wasm32", feature = "js-llm"))]
pub(crate) use {
    generate::Generator, language_model::chat_template, model::Wanted, prompt::Prompt,
    sequence::Sequence,
};
