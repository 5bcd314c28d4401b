//! The order of a pass's steps.

use crate::llm::model::Block;
use crate::llm::model::steps::Step;
use std::slice;

/// The steps of a pass with their blocks.
pub(super) struct Tasks<'a> {
    layers: slice::Iter<'a, Vec<Step>>,
    layer: slice::Iter<'a, Step>,
    /// Steps after the layers.
    end: slice::Iter<'a, Step>,
    /// The block of the layers, and that of the steps after them.
    blocks: [Block; 2],
}

impl<'a> Tasks<'a> {
    /// The steps of layers, and those after them.
    pub(super) fn new(
        (layers, block): (&'a [Vec<Step>], Block),
        (end, last): (&'a [Step], Block),
    ) -> Self {
        Self {
            layers: layers.iter(),
            layer: [].iter(),
            end: end.iter(),
            blocks: [block, last],
        }
    }
}

impl Iterator for Tasks<'_> {
    type Item = (Step, Block);

    fn next(&mut self) -> Option<(Step, Block)> {
        loop {
            if let Some(&step) = self.layer.next() {
                return Some((step, self.blocks[0]));
            }
            let Some(layer) = self.layers.next() else {
                return self.end.next().map(|&step| (step, self.blocks[1]));
            };
            self.layer = layer.iter();
        }
    }
}
