//! Memory for the values of a pass.

use super::super::steps::Slot;
use crate::error::Result;
use crate::graph::choice::AHEAD;
use crate::graph::steps::{Attention, Columns, StepBackend, StepPass};

/// The memory of slots. The rows of some lie beside each other, so that one matrix may give them.
pub(super) struct Slots<B: StepBackend> {
    buffers: Vec<B::Buffer>,
    lens: [usize; Slot::COUNT],
    /// The tokens that were chosen one after the other.
    pub(super) chosen: B::Buffer,
    /// The sums of each split of attention, with their largest scores.
    pub(super) parts: B::Buffer,
    /// The first row and the end of each row's text, where texts go through the steps together.
    pub(super) bounds: B::Buffer,
    /// The cosines and sines of each rotation, for all positions or for those of the pass.
    pub(super) angles: [B::Buffer; 2],
}

/// Slots that lie beside each other.
pub(super) const BESIDE: [&[Slot]; 11] = [
    &[Slot::Residual],
    &[Slot::Normed],
    &[Slot::Branch],
    &[Slot::Queries, Slot::Keys, Slot::Values],
    &[Slot::Rotated],
    &[Slot::Mixed],
    &[Slot::Gate, Slot::Up],
    &[Slot::Gated],
    &[Slot::Router],
    &[Slot::Routes],
    &[Slot::Logits],
];

impl<B: StepBackend> Slots<B> {
    /// Allocates the slots of a block, whose number of tokens is given, and with the length of a head memory for attention
    /// and, unless the model has those of all positions, for angles.
    pub(super) fn new(
        lens: [usize; Slot::COUNT],
        [block, head_len]: [usize; 2],
        angles: Option<&[B::Buffer; 2]>,
        pass: &mut B::Pass<'_>,
    ) -> Result<Self> {
        let buffers = BESIDE.iter().map(|slots| {
            let rows = match slots {
                [Slot::Logits] => B::LOGIT_ROWS,
                _ => block,
            };
            let len: usize = slots.iter().map(|&slot| lens[slot as usize]).sum();
            pass.allocate(rows * len)
        });
        Ok(Self {
            buffers: buffers.collect::<Result<_>>()?,
            lens,
            angles: match angles {
                Some(angles) => angles.clone(),
                None => [
                    pass.allocate(block * head_len)?,
                    pass.allocate(block * head_len)?,
                ],
            },
            bounds: pass.allocate(2 * block)?,
            chosen: pass.allocate(AHEAD)?,
            parts: pass.allocate(Attention::parts_len(head_len))?,
        })
    }

    pub(super) fn len(&self, slot: Slot) -> usize {
        self.lens[slot as usize]
    }

    /// Returns a slot's buffer, its first column there, and the number of columns.
    pub(super) fn get(&self, slot: Slot) -> Columns<'_, B::Buffer> {
        let index = BESIDE.iter().position(|slots| slots.contains(&slot));
        let index = index.unwrap_or_default();
        let len = |slots: &[Slot]| slots.iter().map(|&slot| self.len(slot)).sum();
        let before = BESIDE[index].split(|&other| other == slot).next();
        let column = before.map_or(0, len);
        (&self.buffers[index], column, len(BESIDE[index]))
    }

    /// Returns the buffer of a slot that has a separate buffer.
    pub(super) fn own(&self, slot: Slot) -> &B::Buffer {
        self.get(slot).0
    }
}
