//! Keys and values of a sequence on a GPU, and their way from and to the host.

use super::super::forward::foreign;
use super::super::{Config, KeptPositions, State};
use super::{GpuModel, ModelBackend};
use crate::alloc::try_zeros;
use crate::error::Result;
use crate::graph::steps::{StepBackend, StepPass};

/// The keys and then the values of a sequence, for each layer.
pub(in crate::llm) struct GpuSequence<B: StepBackend>(pub(super) Vec<B::Buffer>);

impl<B: StepBackend> std::fmt::Debug for GpuSequence<B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "GpuSequence({} layers)", self.0.len())
    }
}

impl<B: ModelBackend> GpuModel<B> {
    /// Returns the keys and values of some positions of a sequence.
    pub(in super::super) async fn export(
        &self,
        config: &Config,
        state: &State,
        kept: KeptPositions,
    ) -> Result<Vec<f32>> {
        let sequence = B::sequence(state).ok_or_else(foreign)?;
        let mut values = try_zeros(config.kept_words(kept))?;
        let mut rest = &mut values[..];
        for (index, layer) in sequence.0.iter().enumerate() {
            let reading = self.gpu.pass()?.submit(Some((layer, B::len(layer))))?;
            let words = reading.await?;
            for range in config.ranges(index, kept) {
                let to = rest.split_off_mut(..range.len()).unwrap_or_default();
                to.copy_from_slice(&words[range]);
            }
        }
        Ok(values)
    }

    /// Replaces the keys and values of some positions of a sequence.
    pub(in super::super) async fn import(
        &self,
        config: &Config,
        state: &State,
        kept: KeptPositions,
        values: &[f32],
    ) -> Result<()> {
        let sequence = B::sequence(state).ok_or_else(foreign)?;
        let mut rest = values;
        for (index, layer) in sequence.0.iter().enumerate() {
            let mut words = try_zeros(B::len(layer))?;
            for range in config.ranges(index, kept) {
                let from = rest.split_off(..range.len()).unwrap_or_default();
                words[range].copy_from_slice(from);
            }
            let writing = {
                let mut pass = self.gpu.pass()?;
                pass.write(&words, layer)?;
                pass.submit(None)?
            };
            writing.await?;
        }
        Ok(())
    }
}
