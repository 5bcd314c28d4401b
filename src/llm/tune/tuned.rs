//! The result of tuning.

use super::learner::Learner;
use super::options::TuneOptions;
use super::{Losses, state};
use crate::error::Result;
use crate::llm::lora::{self, AdapterFile};
use crate::llm::model::LowRank;
use crate::llm::{LanguageModel, Lora};

/// An adapter that a model learned: [`lora`](Self::lora) works at once, and the adapter is saved as a file for this
/// library and llama.cpp, or as one for Hugging Face's PEFT.
#[derive(Debug)]
pub struct TunedLora {
    model: LanguageModel,
    lora: Lora,
    file: AdapterFile,
    state: Vec<u8>,
    losses: Losses,
}

impl TunedLora {
    /// Returns the adapter, for sessions and answers of the model that learned it.
    pub fn lora(&self) -> &Lora {
        &self.lora
    }

    /// Returns the loss of each step.
    pub fn losses(&self) -> &[f32] {
        &self.losses.steps
    }

    /// Returns the loss of the held-back examples after each epoch.
    pub fn held_back_losses(&self) -> &[f32] {
        &self.losses.held_back
    }

    /// Returns the adapter as a GGUF file, as llama.cpp reads it.
    ///
    /// # Errors
    /// `InvalidModel` for a model whose metadata is damaged.
    pub fn to_gguf(&self) -> Result<Vec<u8>> {
        self.file.gguf(&self.model.model)
    }

    /// Returns the adapter as Hugging Face's PEFT reads it: the bytes of `adapter_model.safetensors`.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn to_safetensors(&self) -> Result<Vec<u8>> {
        self.file.safetensors(&self.model.model)
    }

    /// Returns the text of `adapter_config.json`, which PEFT reads beside
    /// [`to_safetensors`](Self::to_safetensors).
    pub fn adapter_config(&self) -> String {
        self.file.config(&self.model.model)
    }

    /// Returns the bytes from which [`TuneOptions::with_resume`] goes on.
    pub fn state(&self) -> &[u8] {
        &self.state
    }
}

impl LanguageModel {
    /// Makes an adapter of what was learned in a number of steps.
    pub(super) async fn tuned(
        &self,
        learner: &Learner<'_>,
        options: &TuneOptions,
        (steps, losses): (usize, Losses),
    ) -> Result<TunedLora> {
        let mut matrices = Vec::new();
        for matrix in learner.layers.iter().flat_map(|layer| &layer.matrices) {
            matrices.push(LowRank {
                tensor: matrix.tensor.to_string(),
                rank: options.rank,
                a: matrix.a.read_async().await?,
                b: matrix.b.read_async().await?,
            });
        }
        let file = AdapterFile {
            alpha: options.alpha,
            rank: options.rank,
            matrices,
        };
        let bytes = file.gguf(&self.model)?;
        let lora = self.lora_from_bytes_async(bytes, lora::LoraOptions::default());
        Ok(TunedLora {
            model: self.clone(),
            lora: lora.await?,
            state: state::write(&learner.layers, steps).await?,
            file,
            losses,
        })
    }
}
