//! Reports about a model by its file's metadata, before the weights are loaded.

use super::gguf::Gguf;
use super::language_model::{chat_template, parameters, tokens};
use super::{CacheType, LanguageModel, Value, WeightType};
use crate::error::Result;
use crate::tensor::ggml::Words;
use std::sync::Arc;

/// The properties of a model according to its file, and the memory that it needs: [`LanguageModel::inspect`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Inspection {
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
    /// The largest number of tokens of a session.
    pub context_length: usize,
    /// Whether the file has a chat template.
    pub has_chat_template: bool,
    /// The types of the weights with the bytes that each has in the file, the largest first.
    pub weight_types: Vec<(WeightType, u64)>,
    /// The size of the file in bytes, or of all its parts.
    pub file_bytes: u64,
    /// The size of the cache of a session that fills the context, in bytes.
    pub session_bytes: u64,
    /// The bytes that the model and one session need on SIMD: the file's and the session's.
    pub simd_bytes: u64,
    /// The bytes of a GPU's memory that the model and one session need, without the values of a pass.
    pub gpu_bytes: u64,
    /// The bytes that a session has with a cache of each type.
    bytes_by_type: [u64; 3],
}

impl Inspection {
    fn new(file: &Gguf, context_length: Option<usize>) -> Result<Self> {
        let (mut config, rows, on_host) = super::model::inspect(file, context_length)?;
        let (tokenizer, _) = tokens(file, rows)?;
        let text = |key: &str| file.get(key).and_then(Value::as_str);
        let text = |key: &str| text(key).unwrap_or_default().to_owned();
        let file_bytes = file_bytes(file);
        let types = [CacheType::F32, CacheType::F16, CacheType::Q8_0];
        let bytes_by_type = types.map(|cache_type| {
            config.cache_type = cache_type;
            config.session_bytes() as u64
        });
        let session_bytes = bytes_by_type[0];
        Ok(Self {
            architecture: text("general.architecture"),
            name: text("general.name"),
            parameters: parameters(file),
            vocabulary: tokenizer.len(),
            max_context_length: config.context,
            context_length: config.capacity,
            has_chat_template: chat_template(file).is_some(),
            weight_types: weight_types(file),
            file_bytes,
            session_bytes,
            simd_bytes: file_bytes.saturating_add(session_bytes),
            gpu_bytes: gpu_bytes(file, &on_host).saturating_add(session_bytes),
            bytes_by_type,
        })
    }

    /// Returns the same with the memory of sessions whose keys and values have a type,
    /// [`LoadOptions::cache_type`](super::LoadOptions::cache_type); before, it is that of `F32`.
    #[must_use]
    pub fn with_cache_type(mut self, cache_type: CacheType) -> Self {
        let bytes = self.bytes_by_type[cache_type as usize];
        for sum in [&mut self.simd_bytes, &mut self.gpu_bytes] {
            *sum = (*sum - self.session_bytes).saturating_add(bytes);
        }
        self.session_bytes = bytes;
        self
    }
}

/// The size of the file, or the end of the last tensor if the size is not known.
fn file_bytes(file: &Gguf) -> u64 {
    let ends = file.tensors().iter().map(|tensor| tensor.range().end);
    match file.bytes() {
        u64::MAX => ends.max().unwrap_or_default(),
        bytes => bytes,
    }
}

fn weight_types(file: &Gguf) -> Vec<(WeightType, u64)> {
    let mut types: Vec<(WeightType, u64)> = Vec::new();
    for tensor in file.tensors() {
        let (kind, bytes) = (tensor.weight_type(), tensor.bytes());
        match types.iter_mut().find(|(other, _)| *other == kind) {
            Some((_, sum)) => *sum += bytes,
            None => types.push((kind, bytes)),
        }
    }
    types.sort_by_key(|&(_, bytes)| std::cmp::Reverse(bytes));
    types
}

/// The size of all weights on a GPU, which does not have those of the host.
fn gpu_bytes(file: &Gguf, on_host: &[Arc<str>]) -> u64 {
    let is_on_host = |name: &str| on_host.iter().any(|other| **other == *name);
    let tensors = file.tensors().iter();
    let tensors = tensors.filter(|tensor| !is_on_host(tensor.name()));
    let sizes = tensors.map(|tensor| match tensor.shape() {
        [_] => tensor.len().saturating_mul(size_of::<f32>() as u64),
        _ => Words::bytes_of(tensor.weight_type(), tensor.len()),
    });
    sizes.fold(0, u64::saturating_add)
}

impl LanguageModel {
    /// Returns the description of a model in its files, and the memory that it needs in sessions of at most
    /// `context_length` tokens: by default 2048, or the model's own limit if that is smaller. Takes the first bytes of
    /// each file, and the file's size (`u64::MAX` if that is not known); 16 MB are enough for most.
    ///
    /// # Errors
    /// `LimitExceeded` with the number of bytes that are needed, if there are more; `InvalidModel` for a file that is
    /// damaged or needs an unsupported feature, as for [`LanguageModel::load`]; `InvalidArgument` for a context out of
    /// range.
    pub fn inspect_heads(
        heads: Vec<(Vec<u8>, u64)>,
        context_length: Option<usize>,
    ) -> Result<Inspection> {
        Inspection::new(&Gguf::from_heads(heads)?, context_length)
    }

    /// Returns the description of a model in its file, and the memory that it needs, without reading the weights. The
    /// arguments are those of [`LanguageModel::load`] and
    /// [`LoadOptions::context_length`](super::LoadOptions::context_length).
    ///
    /// ```no_run
    /// use relampago::llm::LanguageModel;
    ///
    /// let model = LanguageModel::inspect("smollm2-135m.gguf", None)?;
    /// println!("{} needs {} bytes", model.name, model.simd_bytes);
    /// # Ok::<(), relampago::Error>(())
    /// ```
    ///
    /// # Errors
    /// `File` if the file cannot be read; `InvalidModel` if it is damaged or needs an unsupported feature, as for
    /// [`LanguageModel::load`]; `InvalidArgument` for a context out of range.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn inspect(
        path: impl AsRef<std::path::Path>,
        context_length: Option<usize>,
    ) -> Result<Inspection> {
        Inspection::new(&Gguf::open(path)?, context_length)
    }
}
