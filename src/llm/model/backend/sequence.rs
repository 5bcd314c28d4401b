//! Keys and values of a sequence on a back-end, and their way from and to the host.

use super::super::forward::foreign;
use super::super::{Config, KeptPositions, State};
use super::{BackendModel, ModelBackend};
use crate::alloc::try_zeros;
use crate::error::Result;
use crate::graph::steps::{BufferCache, StepBackend};
use std::sync::atomic::{AtomicU64, Ordering};

/// The keys and values of a sequence.
pub(in crate::llm) struct BackendSequence<B: StepBackend> {
    /// Tells sequences apart whose passes may run at the same time.
    pub(in crate::llm) number: u64,
    pub(super) layers: Vec<B::Cache>,
}

impl<B: StepBackend> std::fmt::Debug for BackendSequence<B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "BackendSequence({} layers)", self.layers.len())
    }
}

impl<B: StepBackend> BackendSequence<B> {
    pub(super) fn new(layers: Vec<B::Cache>) -> Self {
        Self {
            number: next_number(),
            layers,
        }
    }
}

/// Returns a number that no sequence has.
pub(in crate::llm) fn next_number() -> u64 {
    static NUMBERS: AtomicU64 = AtomicU64::new(0);
    NUMBERS.fetch_add(1, Ordering::Relaxed)
}

impl<B: ModelBackend<Cache = BufferCache<<B as StepBackend>::Buffer>>> BackendModel<B> {
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
        for (index, layer) in sequence.layers.iter().enumerate() {
            let (positions, words) = config.layer_words(index, kept);
            let rows = rest.split_off_mut(..words).unwrap_or_default();
            layer.read(&self.backend, positions, rows).await?;
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
        for (index, layer) in sequence.layers.iter().enumerate() {
            let (positions, words) = config.layer_words(index, kept);
            let rows = rest.split_off(..words).unwrap_or_default();
            layer.write(&self.backend, positions, rows).await?;
        }
        Ok(())
    }
}
