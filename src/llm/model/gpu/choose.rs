//! The choice of several tokens before the host learns of the first.

use super::super::forward::foreign;
use super::super::steps::Slot;
use super::super::{Block, BlockRequest, Model, State};
use super::slots::Slots;
use super::{GpuModel, ModelBackend, Pass};
use crate::error::Result;
use crate::graph::transformer::TransformerPass;

impl<B: ModelBackend> GpuModel<B> {
    /// Returns the most tokens that [`GpuModel::choose`] chooses: one, unless the GPU has the embedding.
    pub(in super::super) fn ahead(&self, model: &Model) -> usize {
        match self.matrices[model.weights.embedding] {
            Some(_) => B::AHEAD,
            None => 1,
        }
    }

    /// Reads a token and chooses the likeliest next one, reads that, and so on; returns the chosen tokens. The input is
    /// one token.
    pub(in super::super) async fn choose(
        &self,
        model: &Model,
        state: &State,
        request: &BlockRequest<'_>,
        count: usize,
    ) -> Result<Vec<f32>> {
        let slots = self.take_slots(model)?;
        let chosen = self.choose_by(&slots, model, state, request, count).await;
        self.free_slots().push(slots);
        chosen
    }

    async fn choose_by(
        &self,
        slots: &Slots<B>,
        model: &Model,
        state: &State,
        request: &BlockRequest<'_>,
        count: usize,
    ) -> Result<Vec<f32>> {
        let sequence = B::sequence(state).ok_or_else(foreign)?;
        let residual = slots.own(Slot::Residual);
        let mut embedded = crate::alloc::try_zeros(model.config.width)?;
        model.embed(request.input, &mut embedded)?;
        let mut submitted = Vec::with_capacity(count);
        for index in 0..count {
            let block = Block {
                first: request.first + index,
                tokens: 1,
                skipped: 0,
            };
            let mut pass = Pass::new(self, slots, model, sequence, request.adapters, block)?;
            match &self.matrices[model.weights.embedding] {
                Some(embedding) if index > 0 => {
                    let scale = model.config.embedding_scale();
                    let token = &slots.largest;
                    pass.recorder.take_row(embedding, token, scale, residual)?;
                }
                _ => pass.recorder.write(&embedded, residual)?,
            }
            for layer in &self.layers {
                pass.run(layer)?;
            }
            pass.logits(block)?;
            let read = pass.largest()?;
            submitted.push(pass.recorder.submit(Some(read))?);
        }
        let mut chosen = Vec::with_capacity(count);
        for submitted in submitted {
            chosen.extend(submitted.await?);
        }
        Ok(chosen)
    }
}
