//! The choice of several tokens before the host learns of the first.

use super::super::forward::foreign;
use super::super::steps::Slot;
use super::super::{Block, BlockRequest, Model, Output, SequenceRows};
use super::slots::Slots;
use super::{BackendModel, ModelBackend, Pass};
use crate::error::Result;
use crate::graph::choice::{AHEAD, Change, Changes, Choices, Draw};
use crate::graph::steps::StepPass;

impl<B: ModelBackend> BackendModel<B> {
    /// Returns the most tokens that [`BackendModel::choose`] chooses: one where the GPU does not have the embedding.
    pub(in super::super) fn ahead(&self, model: &Model) -> usize {
        match self.matrices[model.weights.embedding] {
            Some(_) => AHEAD,
            None => 1,
        }
    }

    /// Reads a token and chooses the next one, reads that, and so on; returns the chosen tokens, and −1 if the host
    /// must choose from all logits. The input is one token.
    pub(in super::super) async fn choose(
        &self,
        model: &Model,
        request: &BlockRequest<'_>,
        choices: &Choices,
    ) -> Result<Vec<f32>> {
        let slots = self.take_slots(model)?;
        let chosen = self.choose_by(&slots, model, request, choices).await;
        self.free_slots().push(slots);
        chosen
    }

    async fn choose_by(
        &self,
        slots: &Slots<B>,
        model: &Model,
        request: &BlockRequest<'_>,
        choices: &Choices,
    ) -> Result<Vec<f32>> {
        let sequence = *request.sequences.first().ok_or_else(foreign)?;
        let sequences = (0..choices.draws.len()).map(|index| SequenceRows {
            first: sequence.first + index,
            ..sequence
        });
        let sequences: Vec<_> = sequences.collect();
        let residual = slots.own(Slot::Residual);
        let mut embedded = crate::alloc::try_zeros(model.config.width)?;
        model.first_input(request, &mut embedded)?;
        let mut changes = None;
        let mut submitted = Vec::with_capacity(choices.draws.len());
        for (index, &draw) in choices.draws.iter().enumerate() {
            let block = Block {
                tokens: 1,
                skipped: 0,
            };
            let request = BlockRequest {
                sequences: &sequences[index..=index],
                ..request.clone()
            };
            let mut pass = Pass::new(self, slots, model, &request, block)?;
            match &self.matrices[model.weights.embedding] {
                Some(embedding) if index > 0 => {
                    let scale = model.config.multipliers.embedding;
                    let token = (&slots.chosen, index - 1);
                    pass.recorder.take_row(embedding, token, scale, residual)?;
                }
                _ => pass.recorder.write(&embedded, residual)?,
            }
            if index == 0 && !choices.changes.is_empty() {
                changes = Some(Changes {
                    list: pass.recorder.upload(&Change::list(&choices.changes))?,
                    len: choices.changes.len(),
                    penalties: choices.penalties,
                });
            }
            for layer in &self.layers {
                pass.run(layer)?;
            }
            pass.end(block, Output::Largest)?;
            if let Some(allowed) = &choices.allowed {
                pass.forbid(allowed)?;
            }
            let chosen = pass.choose(changes.as_ref(), draw, index)?;
            let is_last = index + 1 == choices.draws.len();
            submitted.push(pass.recorder.submit(is_last.then_some(chosen))?);
        }
        let mut chosen = Vec::new();
        for submitted in submitted {
            chosen = submitted.await?;
        }
        Ok(chosen)
    }
}

impl<'a, B: ModelBackend> Pass<'a, B> {
    /// Records the indices of the largest logits of each of the block's rows; returns their place, and their number.
    pub(super) fn choose_each(&mut self) -> Result<(&'a B::Buffer, usize)> {
        let (logits, len) = self.rows(Slot::Logits);
        let row = self.slots.len(Slot::Logits);
        let chosen = &self.slots.chosen;
        for index in 0..len / row {
            self.recorder
                .largest((logits, index * row), row, (chosen, index))?;
        }
        Ok((chosen, len / row))
    }

    /// Excludes tokens that are not allowed from the choice.
    fn forbid(&mut self, allowed: &[u32]) -> Result<()> {
        let words: Vec<f32> = allowed.iter().map(|&word| f32::from_bits(word)).collect();
        let allowed = self.recorder.upload(&words)?;
        let (logits, len) = self.rows(Slot::Logits);
        self.recorder.forbid(&allowed, logits, len)
    }

    /// Records the choice of a token from the logits of the block's only one; returns the place of the tokens chosen so
    /// far, and their number.
    pub(super) fn choose(
        &mut self,
        changes: Option<&Changes<B::Buffer>>,
        draw: Option<Draw>,
        index: usize,
    ) -> Result<(&'a B::Buffer, usize)> {
        let (logits, len) = self.rows(Slot::Logits);
        let chosen = (&self.slots.chosen, index);
        if let Some(changes) = changes {
            self.recorder.change(changes, chosen, logits, len)?;
        }
        match draw {
            Some(draw) => self.recorder.draw(logits, len, draw, chosen)?,
            None => self.recorder.largest((logits, 0), len, chosen)?,
        }
        Ok((chosen.0, index + 1))
    }
}
