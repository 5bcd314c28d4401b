//! Optimizers: rules that move parameters along their gradients.
//!
//! [`Update`] adds the nodes of a step to a graph of leaves, for tensors of Rust (`tensor`) and of JavaScript, so that a rule is
//! written once, in `rules`.

mod rules;
mod tensor;

pub use tensor::{Optimizer, OptimizerState, clip_by_global_norm};

use crate::error::Result;
use crate::lazy::structure::Described;
use crate::lazy::value::{Tape, Value};
use crate::ops::shape::check_len;

/// A rule of steps with its numbers, which belong to the structure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Update {
    Sgd {
        momentum: f32,
        is_nesterov: bool,
        decay: f32,
    },
    /// Adam, with the weight decay of `AdamW`.
    Adam {
        b1: f32,
        b2: f32,
        epsilon: f32,
        decay: f32,
    },
    Lion {
        b1: f32,
        b2: f32,
        decay: f32,
    },
    /// Scales gradients such that their common norm has a bound.
    Clip,
}

/// A graph of leaves, and the nodes that were added to it.
pub(crate) struct Updated {
    pub(crate) nodes: Vec<Described>,
    /// The indices of the new parameters and moments, in the order of the leaves, and of the new number of steps.
    pub(crate) results: Vec<usize>,
}

impl Update {
    /// Returns the number of tensors beside each parameter and its gradient.
    pub(crate) fn moments(self) -> usize {
        match self {
            Self::Sgd { momentum, .. } => usize::from(momentum != 0.0),
            Self::Adam { .. } => 2,
            Self::Lion { .. } => 1,
            Self::Clip => 0,
        }
    }

    /// Adds the nodes of a step to leaves of these shapes: each parameter with its gradient and its moments, the number of
    /// steps so far, and the learning rate. A clip has gradients alone, and the bound of their norm.
    ///
    /// # Errors
    /// `LengthMismatch` for another number of leaves.
    pub(crate) fn record(self, shapes: Vec<Vec<usize>>) -> Result<Updated> {
        let count = shapes.len();
        let leaves = shapes.into_iter().map(|shape| Described {
            shape,
            operation: None,
        });
        let tape = Tape::new(leaves.collect());
        let values: Vec<Value<'_>> = (0..count).map(|leaf| tape.value(leaf)).collect();
        let results = self.results(&values)?;
        let results = results.into_iter().map(|value| value.node).collect();
        let nodes = tape.finish()?;
        Ok(Updated { nodes, results })
    }

    fn results<'t>(self, leaves: &[Value<'t>]) -> Result<Vec<Value<'t>>> {
        if let (Self::Clip, Some((&bound, gradients))) = (self, leaves.split_last()) {
            return Ok(rules::clip(gradients, bound));
        }
        let group = 2 + self.moments();
        let rest = leaves.len().saturating_sub(2);
        check_len("leaves", rest.next_multiple_of(group) + 2, leaves.len())?;
        let (steps, rate) = (leaves[rest] + 1.0, leaves[rest + 1]);
        let mut results = Vec::new();
        for own in leaves[..rest].chunks(group) {
            let moved = match self {
                Self::Sgd {
                    momentum,
                    is_nesterov,
                    decay,
                } => rules::sgd(own, rate, momentum, is_nesterov, decay),
                Self::Adam {
                    b1,
                    b2,
                    epsilon,
                    decay,
                } => rules::adam(own, [rate, steps], [b1, b2], [epsilon, decay]),
                Self::Lion { b1, b2, decay } => rules::lion(own, rate, [b1, b2], decay),
                Self::Clip => Vec::new(),
            };
            results.extend(moved);
        }
        results.push(steps);
        Ok(results)
    }
}
