//! Models on SIMD, which have their weights in the file and read a block in one pass.

use super::super::forward::foreign;
use super::super::weights::FileBlocks;
use super::super::{BlockRequest, Config, KeptPositions, Model, ModelParts, State};
use super::{BackendModel, ModelBackend};
use crate::alloc::try_zeros;
use crate::cpu::{CpuWeights, read, write};
use crate::error::Result;
use crate::simd::Cpu;

impl BackendModel<Cpu> {
    /// Copies the vectors of a model.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub(in super::super) fn on_cpu(cpu: &Cpu, model: ModelParts<'_>) -> Result<Self> {
        let matrices = model.weights.matrices.iter().map(|weight| {
            let blocks = FileBlocks::shared(model.file, weight.range.clone());
            Some(CpuWeights::new(weight.kind, blocks, weight.cols))
        });
        // Nothing is recorded.
        let (on_cpu, _) = Self::with_matrices(cpu, model, matrices.collect())?;
        Ok(on_cpu)
    }

    /// Returns the instruction set and the threads.
    pub(in super::super) fn cpu(&self) -> Cpu {
        self.backend
    }

    /// [`read`](Self::read), whose other submissions a pass on SIMD does not have.
    pub(in super::super) async fn read_at_once(
        &self,
        model: &Model,
        request: &BlockRequest<'_>,
    ) -> Result<Vec<f32>> {
        let slots = self.take_slots(model)?;
        let results = match self.record(&slots, model, request) {
            Ok(recorded) => recorded.last.await,
            Err(error) => Err(error),
        };
        self.free_slots().push(slots);
        results
    }

    /// Returns the keys and values of some positions of a sequence.
    pub(in super::super) fn export_at_once(
        config: &Config,
        state: &State,
        kept: KeptPositions,
    ) -> Result<Vec<f32>> {
        let sequence = Cpu::sequence(state).ok_or_else(foreign)?;
        let mut values = try_zeros(config.kept_words(kept))?;
        let mut rest = &mut values[..];
        for (index, layer) in sequence.layers.iter().enumerate() {
            let (positions, words) = config.layer_words(index, kept);
            let rows = rest.split_off_mut(..words).unwrap_or_default();
            read(layer)?.export(positions, rows);
        }
        Ok(values)
    }

    /// Replaces the keys and values of some positions of a sequence.
    pub(in super::super) fn import_at_once(
        config: &Config,
        state: &State,
        kept: KeptPositions,
        mut values: &[f32],
    ) -> Result<()> {
        let sequence = Cpu::sequence(state).ok_or_else(foreign)?;
        for (index, layer) in sequence.layers.iter().enumerate() {
            let (positions, words) = config.layer_words(index, kept);
            let rows = values.split_off(..words).unwrap_or_default();
            write(layer)?.import(positions, rows)?;
        }
        Ok(())
    }
}
