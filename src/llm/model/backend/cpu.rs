//! Models on SIMD, which have their weights in the file and read a block in one pass.

use super::super::weights::FileBlocks;
use super::super::{BlockRequest, Model, ModelParts, State};
use super::BackendModel;
use crate::cpu::CpuWeights;
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

    /// [`read`](Self::read), whose other submissions a pass on SIMD does not have.
    pub(in super::super) async fn read_at_once(
        &self,
        model: &Model,
        state: &State,
        request: &BlockRequest<'_>,
    ) -> Result<Vec<f32>> {
        let slots = self.take_slots(model)?;
        let results = match self.record(&slots, model, state, request) {
            Ok((_, submitted, _)) => submitted.await,
            Err(error) => Err(error),
        };
        self.free_slots().push(slots);
        results
    }
}
