//! The public model.

use super::chat::{ChatRequest, ChatTemplate, Rendered, Vocabulary};
use super::gguf::{Gguf, invalid};
use super::model::Model;
use super::tokenizer::{Tokenizer, token_id};
use super::{CacheType, Session, Value};
#[cfg(feature = "llm")]
use super::{GenerateOptions, Message};
use crate::device::{Backend, GpuDevice};
use crate::error::{Error, Result};
use crate::instruction_set::InstructionSet;
use crate::ops::HalfPrecision;
use crate::simd::Cpu;
use std::sync::{Arc, OnceLock};

/// Options for loading a model.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct LoadOptions {
    /// The largest number of tokens of a session, by default 2048, or the model's own limit if that is smaller.
    pub context_length: Option<usize>,
    /// The type of keys and values, `F32` by default.
    pub cache_type: CacheType,
    /// The largest number of threads of a sequence, by default those of rayon's pool. Sequences that run at the same
    /// time share the pool's threads evenly.
    pub threads: Option<usize>,
    /// The instruction set, the best by default.
    pub instruction_set: Option<InstructionSet>,
    /// The device that runs the model: a device on a GPU has a copy of the weights there. Without
    /// one the model runs on SIMD.
    pub device: Option<GpuDevice>,
}

impl LoadOptions {
    /// Returns the options with this largest number of tokens of a session.
    #[must_use]
    pub fn with_context_length(self, context_length: usize) -> Self {
        Self {
            context_length: Some(context_length),
            ..self
        }
    }

    /// Returns the options with this type of keys and values.
    #[must_use]
    pub fn with_cache_type(self, cache_type: CacheType) -> Self {
        Self { cache_type, ..self }
    }

    /// Returns the options with this largest number of threads.
    #[must_use]
    pub fn with_threads(self, threads: usize) -> Self {
        Self {
            threads: Some(threads),
            ..self
        }
    }

    /// Returns the options with this instruction set.
    #[must_use]
    pub fn with_instruction_set(self, instruction_set: InstructionSet) -> Self {
        Self {
            instruction_set: Some(instruction_set),
            ..self
        }
    }

    /// Returns the options with this device to run the model.
    #[must_use]
    pub fn with_device(self, device: GpuDevice) -> Self {
        Self {
            device: Some(device),
            ..self
        }
    }

    /// Returns the instruction set and the threads that these options choose.
    pub(super) fn cpu(&self) -> Cpu {
        let set = self.instruction_set.unwrap_or(InstructionSet::best());
        Cpu::new(set, self.threads)
    }
}

/// The description of a model in its file.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct ModelInfo {
    /// The architecture, such as `llama`.
    pub architecture: String,
    /// The model's name.
    pub name: String,
    /// The number of parameters.
    pub parameters: u64,
    /// The number of tokens in the vocabulary.
    pub vocabulary: usize,
    /// The largest number of tokens that the model was trained for.
    pub max_context_length: usize,
    /// Whether the file has a chat template: a model without one continues texts, and cannot `chat`.
    pub has_chat_template: bool,
    /// The size of the file in bytes.
    pub file_bytes: u64,
    /// The back-end that runs the model.
    pub backend: Backend,
    /// Whether the GPU multiplies prompts in f16, or the reason why not. A load checks the products of 16 rows by each matrix
    /// of the first layer, and multiplies in `f32` if they are wrong.
    pub half_precision: HalfPrecision,
    /// The size of the cache of a session that fills the context, in bytes. On SIMD the cache grows up to that.
    pub session_bytes: usize,
}

/// A language model from a GGUF file. Clones are cheap and share its weights, so every task of a server can have one.
///
/// ```no_run
/// use relampago::llm::{LanguageModel, Message};
///
/// let model = LanguageModel::load("smollm2-135m.gguf", Default::default())?;
/// let messages = [Message::user("Name three primary colors.")];
/// for text in model.chat(&messages, Default::default())? {
///     print!("{}", text?);
/// }
/// # Ok::<(), relampago::Error>(())
/// ```
#[derive(Clone)]
pub struct LanguageModel {
    pub(super) model: Arc<Model>,
    pub(super) tokenizer: Arc<Tokenizer>,
    /// The chat template, or the error of one that cannot be used: the model continues texts nevertheless.
    template: Option<Arc<Result<ChatTemplate>>>,
    pub(super) ends: Arc<[u32]>,
    /// The vocabulary for JSON schemas, once one is used.
    pub(super) trie: Arc<OnceLock<Vocabulary>>,
}

impl std::fmt::Debug for LanguageModel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "LanguageModel({:?})", self.info())
    }
}

impl LanguageModel {
    /// Loads a model from a file that is in memory.
    ///
    /// # Errors
    /// The errors of `load_async`.
    pub async fn from_bytes_async(bytes: Vec<u8>, options: LoadOptions) -> Result<Self> {
        Self::from_file_async(Gguf::from_bytes(bytes)?, options).await
    }

    /// Loads a model that is split into several files, which are in memory in their order.
    ///
    /// # Errors
    /// The errors of `load_async`; `InvalidModel` for parts that are missing, in another order or of another model.
    pub async fn from_parts_async(parts: Vec<Vec<u8>>, options: LoadOptions) -> Result<Self> {
        Self::from_file_async(Gguf::from_parts(parts)?, options).await
    }

    pub(crate) async fn from_file_async(file: Gguf, options: LoadOptions) -> Result<Self> {
        let mut model = Self::of_model(Model::new(file, &options)?)?;
        if let Some(device) = &options.device {
            model.move_to_async(device).await?;
        }
        Ok(model)
    }

    /// Adds the tokenizer and the chat template of a model's file.
    pub(super) fn of_model(model: Model) -> Result<Self> {
        let (tokenizer, ends) = tokens(&model.file, model.vocabulary())?;
        let source = chat_template(&model.file);
        let template = source.map(ChatTemplate::new);
        Ok(Self {
            model: Arc::new(model),
            tokenizer: Arc::new(tokenizer),
            template: template.map(Arc::new),
            ends: ends.into(),
            trie: Arc::default(),
        })
    }

    /// Moves the model to a device: another one, or a new one in place of a lost one. The model stays where it
    /// is if there is an error. Clones, sessions and answers that it made before stay where they are; adapters have to be
    /// made anew.
    ///
    /// An answer that a lost device cut off goes on with [`GenerateOptions::after`](super::GenerateOptions::after).
    ///
    /// # Errors
    /// `OutOfMemory`, `LimitExceeded` or `DeviceLost` if a GPU cannot hold the weights; `InvalidArgument` for a model of
    /// [`IncomingModel`](super::IncomingModel), whose weights are nowhere but on its GPU.
    pub async fn move_to_async(&mut self, device: &GpuDevice) -> Result<()> {
        Arc::make_mut(&mut self.model).move_to(device).await
    }

    /// The description of the model in its file.
    pub fn info(&self) -> ModelInfo {
        let (file, config) = (&self.model.file, &self.model.config);
        let text = |key: &str| {
            file.get(key)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        ModelInfo {
            architecture: text("general.architecture"),
            name: text("general.name"),
            parameters: parameters(file),
            vocabulary: self.tokenizer.len(),
            max_context_length: config.context,
            has_chat_template: self.template.is_some(),
            file_bytes: file.bytes(),
            backend: self.model.backend(),
            half_precision: self.model.half_precision(),
            session_bytes: config.session_bytes(),
        }
    }

    /// The tokens of a text. Control tokens such as `<|im_end|>` are recognised in it only if
    /// `special` is true.
    ///
    /// # Errors
    /// `InvalidArgument` if the text cannot be split.
    pub fn tokenize(&self, text: &str, special: bool) -> Result<Vec<u32>> {
        self.tokenizer.encode(text, special)
    }

    /// The text of tokens, that of control tokens included; bytes that are not UTF-8 become U+FFFD. A space that the
    /// tokenizer puts before every text is left out.
    pub fn detokenize(&self, tokens: &[u32]) -> String {
        String::from_utf8_lossy(&self.tokenizer.decode_all(tokens)).into_owned()
    }

    /// A new sequence of tokens. It has a clone of the model.
    ///
    /// # Errors
    /// `OutOfMemory`; on a GPU `LimitExceeded` if no buffer can hold its keys and values, and `DeviceLost`.
    pub fn session(&self) -> Result<Session> {
        Session::new(self)
    }

    /// The text of a conversation by the file's template, without protection against control tokens in messages.
    ///
    /// The text does not show which characters come from messages, so `tokenize(&text, true)` also makes control tokens
    /// of a user's text. [`LanguageModel::conversation`] returns tokens in which that is text.
    ///
    /// # Errors
    /// `InvalidArgument` if the file has no template, if it refuses the messages, or for a role that is not made of letters,
    /// digits, `_` and `-`; `InvalidModel` for a template with an error, with something that is not supported, or that
    /// takes too much work or memory.
    #[cfg(feature = "llm")]
    pub fn render(&self, messages: &[Message]) -> Result<String> {
        self.render_with(messages, &GenerateOptions::default())
    }

    /// The text of a conversation with the functions and the variables of the template that options have: see
    /// [`LanguageModel::render`].
    ///
    /// # Errors
    /// The errors of [`LanguageModel::render`]; `InvalidArgument` for functions that are not supported.
    #[cfg(feature = "llm")]
    pub fn render_with(&self, messages: &[Message], options: &GenerateOptions) -> Result<String> {
        let rendered = self.rendered(&ChatRequest::new(messages, options)?)?;
        Ok(rendered.text.as_str().to_owned())
    }

    /// The text of a conversation with the origin of each character, and the grammar and reader of the answer.
    pub(crate) fn rendered(&self, request: &ChatRequest) -> Result<Rendered> {
        self.model.check_decoder()?;
        let missing = || {
            Error::invalid(
                "messages",
                "a conversation",
                "left out: the model has no chat template",
            )
        };
        let template = self.template.as_deref().ok_or_else(missing)?;
        let template = template.as_ref().map_err(Error::clone)?;
        let token = |id: Option<u32>| id.map_or(String::new(), |id| self.detokenize(&[id]));
        let (bos, eos) = (self.tokenizer.bos(), self.tokenizer.eos());
        template.render(request, &token(bos), &token(eos), &self.markers())
    }

    /// The tokens of a text to continue.
    pub(crate) fn continuation(&self, prompt: &str) -> Result<Vec<u32>> {
        let mut tokens: Vec<u32> = self.tokenizer.begin().into_iter().collect();
        tokens.extend(self.tokenizer.encode(prompt, false)?);
        Ok(tokens)
    }

    /// The largest number of tokens of a session.
    pub fn context_length(&self) -> usize {
        self.model.config.capacity
    }

    /// Whether a token ends generation.
    pub fn is_end(&self, token: u32) -> bool {
        self.ends.contains(&token)
    }
}

/// Files, and blocking versions.
#[cfg(not(target_arch = "wasm32"))]
impl LanguageModel {
    /// Loads a model from a file, which is mapped into memory and must not change while the model
    /// is there. Of a model that is split into files, such as `model-00001-of-00003.gguf`, this is the first one;
    /// the others lie beside it.
    ///
    /// # Errors
    /// `File` if the file cannot be read; `InvalidModel` if it is damaged or needs an unsupported feature;
    /// `InvalidArgument` for options out of range; `OutOfMemory`, `LimitExceeded` or `DeviceLost` if a GPU cannot hold
    /// the weights.
    pub async fn load_async(
        path: impl AsRef<std::path::Path>,
        options: LoadOptions,
    ) -> Result<Self> {
        Self::from_file_async(Gguf::open(path)?, options).await
    }

    /// Blocking version of [`LanguageModel::load_async`].
    pub fn load(path: impl AsRef<std::path::Path>, options: LoadOptions) -> Result<Self> {
        crate::runtime::block_on(Self::load_async(path, options))
    }

    /// Blocking version of [`LanguageModel::move_to_async`].
    pub fn move_to(&mut self, device: &GpuDevice) -> Result<()> {
        crate::runtime::block_on(self.move_to_async(device))
    }

    /// Blocking version of [`LanguageModel::from_bytes_async`].
    pub fn from_bytes(bytes: Vec<u8>, options: LoadOptions) -> Result<Self> {
        crate::runtime::block_on(Self::from_bytes_async(bytes, options))
    }

    /// Blocking version of [`LanguageModel::from_parts_async`].
    pub fn from_parts(parts: Vec<Vec<u8>>, options: LoadOptions) -> Result<Self> {
        crate::runtime::block_on(Self::from_parts_async(parts, options))
    }
}

/// The source of the file's chat template, if it has one.
pub(crate) fn chat_template(file: &Gguf) -> Option<&str> {
    file.get("tokenizer.chat_template").and_then(Value::as_str)
}

/// The number of all tensors' weights.
pub(super) fn parameters(file: &Gguf) -> u64 {
    let lens = file.tensors().iter().map(super::TensorInfo::len);
    lens.fold(0, u64::saturating_add)
}

/// Reads the tokenizer of a file whose embedding has `rows` rows, and the tokens that end answers.
///
/// # Errors
/// `InvalidModel` if the tokenizer is damaged or not supported, or has tokens that the embedding does not have.
pub(super) fn tokens(file: &Gguf, rows: usize) -> Result<(Tokenizer, Vec<u32>)> {
    let tokenizer = Tokenizer::new(file)?;
    let len = tokenizer.len();
    if len > rows {
        let what = format!("{len} tokens, but the embedding has rows for {rows}");
        return Err(invalid(what, "metadata `tokenizer.ggml.tokens`"));
    }
    let ends = ends(file, &tokenizer)?;
    Ok((tokenizer, ends))
}

/// The tokens that end generation: those that the file names, and the usual ones of chat templates. A token that the
/// vocabulary does not have ends nothing.
fn ends(file: &Gguf, tokenizer: &Tokenizer) -> Result<Vec<u32>> {
    let named = [token_id(file, "eot")?, token_id(file, "eom")?];
    let named = named.into_iter().flatten();
    let usual = [
        "<|im_end|>",
        "<|endoftext|>",
        "<|eot_id|>",
        "<|eom_id|>",
        "<|end_of_text|>",
        "<|end|>",
        "<end_of_turn>",
    ];
    let usual = usual.into_iter().filter_map(|text| tokenizer.id(text));
    let all = named.chain(tokenizer.eos()).chain(usual);
    Ok(all.filter(|&id| tokenizer.has(id)).collect())
}
