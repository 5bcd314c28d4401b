//! `LoRA`: adapters from files, applied beside a model's quantised weights.

mod file;
mod gguf;
mod qkv;
mod safetensors;

use super::LanguageModel;
use super::model::{Adapter, LowRank, Model, Scaled};
use crate::error::Result;
use std::sync::Arc;

pub(super) use file::AdapterFile;
pub use qkv::QkvLora;
pub(super) use qkv::low_ranks;
pub(super) use safetensors::{LAYERS, is_joined};

/// Options for loading an adapter.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct LoraOptions {
    /// The numerator of the scale `alpha / rank`, in place of the file's. Safetensors files have none; `lora_alpha` of their
    /// `adapter_config.json` has it. A GGUF file without one, or with 0, has the scale 1.
    pub alpha: Option<f32>,
}

impl LoraOptions {
    /// Returns the options with this numerator of the scale.
    #[must_use]
    pub fn with_alpha(self, alpha: f32) -> Self {
        Self {
            alpha: Some(alpha),
            ..self
        }
    }
}

/// A low-rank adapter of linear layers (`LoRA`), bound to the model that loaded it. Clones share its
/// weights.
///
/// It is applied as the model runs, so that requests may differ in their adapters:
///
/// ```no_run
/// use relampago::llm::{GenerateOptions, LanguageModel, LoraOptions};
///
/// let model = LanguageModel::load("smollm2-135m.gguf", Default::default())?;
/// let pirate = model.load_lora("pirate.gguf", LoraOptions::default())?;
/// let options = GenerateOptions::default().with_lora([pirate.scaled(0.8)]);
/// let text = model.complete("Good morning, ", options)?.text()?;
/// # Ok::<(), relampago::Error>(())
/// ```
#[doc(alias = "adapter")]
#[derive(Clone, Debug)]
pub struct Lora {
    adapter: Arc<Adapter>,
    /// A hash of the file.
    fingerprint: u64,
    layers: usize,
}

/// An adapter with the factor by which its effect is multiplied.
#[derive(Clone, Debug, PartialEq)]
pub struct ScaledLora {
    lora: Lora,
    scale: f32,
}

/// Adapters are equal if they are clones of each other.
impl PartialEq for Lora {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.adapter, &other.adapter)
    }
}

impl Lora {
    /// The adapter with a factor; 1 is the strength that it was trained for.
    pub fn scaled(&self, scale: f32) -> ScaledLora {
        let lora = self.clone();
        ScaledLora { lora, scale }
    }

    /// The number of linear layers that it changes.
    pub fn layers(&self) -> usize {
        self.layers
    }
}

impl From<Lora> for ScaledLora {
    fn from(lora: Lora) -> Self {
        Self { lora, scale: 1.0 }
    }
}

impl ScaledLora {
    /// A hash of the file and the factor, the same in every process.
    pub(super) fn fingerprint(&self) -> u64 {
        super::fingerprint::of([
            &self.lora.fingerprint.to_le_bytes()[..],
            &self.scale.to_le_bytes(),
        ])
    }
}

/// Returns adapters in the form that the forward pass takes.
pub(super) fn scaled(all: &[ScaledLora]) -> Vec<Scaled> {
    let each = all.iter();
    each.map(|one| (one.lora.adapter.clone(), one.scale))
        .collect()
}

/// Reads the matrices of an adapter's file for a model. B includes the scale.
pub(super) fn low_ranks_of_file(
    bytes: Vec<u8>,
    model: &Model,
    options: &LoraOptions,
) -> Result<Vec<LowRank>> {
    if bytes.starts_with(b"GGUF") {
        return gguf::read(bytes, model, options);
    }
    safetensors::read(&bytes, model, options)
}

impl LanguageModel {
    /// Makes an adapter of a file's bytes: a GGUF file with `general.type` `adapter`, or a safetensors
    /// file with PEFT's names.
    ///
    /// # Errors
    /// `InvalidModel` if the file is damaged, or adapts a tensor that the model does not have or that is not a linear
    /// layer; `InvalidArgument` if a safetensors file is given without `alpha`, or `alpha` is not finite;
    /// `OutOfMemory`; on a GPU `LimitExceeded` and `DeviceLost`.
    pub async fn lora_from_bytes_async(
        &self,
        bytes: Vec<u8>,
        options: LoraOptions,
    ) -> Result<Lora> {
        let fingerprint = super::fingerprint::of([&bytes[..]]);
        let matrices = low_ranks_of_file(bytes, &self.model, &options)?;
        self.lora(&matrices, fingerprint).await
    }

    async fn lora(&self, matrices: &[LowRank], fingerprint: u64) -> Result<Lora> {
        let adapter = self.model.adapter(matrices).await?;
        Ok(Lora {
            adapter: Arc::new(adapter),
            fingerprint,
            layers: matrices.len(),
        })
    }
}

/// Files, and blocking versions.
#[cfg(not(target_arch = "wasm32"))]
impl LanguageModel {
    /// Makes an adapter of a file. An `adapter_config.json` beside a safetensors file has `alpha`.
    ///
    /// # Errors
    /// The errors of [`LanguageModel::lora_from_bytes_async`], and `File` if a file cannot be read.
    pub async fn load_lora_async(
        &self,
        path: impl AsRef<std::path::Path>,
        mut options: LoraOptions,
    ) -> Result<Lora> {
        let path = path.as_ref();
        let read = |path: &std::path::Path| {
            std::fs::read(path).map_err(|error| crate::error::Error::file(path, &error))
        };
        let bytes = read(path)?;
        let config = path.with_file_name("adapter_config.json");
        if options.alpha.is_none() && !bytes.starts_with(b"GGUF") && config.is_file() {
            options.alpha = Some(safetensors::alpha(&read(&config)?)?);
        }
        self.lora_from_bytes_async(bytes, options).await
    }

    /// Blocking version of [`LanguageModel::load_lora_async`].
    pub fn load_lora(
        &self,
        path: impl AsRef<std::path::Path>,
        options: LoraOptions,
    ) -> Result<Lora> {
        crate::runtime::block_on(self.load_lora_async(path, options))
    }

    /// Blocking version of [`LanguageModel::lora_from_bytes_async`].
    pub fn lora_from_bytes(&self, bytes: Vec<u8>, options: LoraOptions) -> Result<Lora> {
        crate::runtime::block_on(self.lora_from_bytes_async(bytes, options))
    }
}
