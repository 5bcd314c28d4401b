//! Adapters on their way to a file.

use super::{gguf, safetensors};
use crate::error::Result;
use crate::llm::model::{LowRank, Model};

/// An adapter as files have it: B does not include the scale.
#[derive(Debug)]
pub(in crate::llm) struct AdapterFile {
    pub(in crate::llm) alpha: f32,
    pub(in crate::llm) rank: usize,
    pub(in crate::llm) matrices: Vec<LowRank>,
}

impl AdapterFile {
    /// Returns the adapter as a GGUF file.
    ///
    /// # Errors
    /// `InvalidArgument` for names that GGUF cannot have.
    pub(in crate::llm) fn gguf(&self, model: &Model) -> Result<Vec<u8>> {
        gguf::write(self, model)
    }

    /// Returns the adapter as a safetensors file with PEFT's names.
    ///
    /// # Errors
    /// `InvalidModel` for a linear layer that PEFT has no name for, `OutOfMemory`.
    pub(in crate::llm) fn safetensors(&self, model: &Model) -> Result<Vec<u8>> {
        safetensors::write(self, model)
    }

    /// Returns PEFT's `adapter_config.json`.
    pub(in crate::llm) fn config(&self, model: &Model) -> String {
        safetensors::config(self, model)
    }
}
