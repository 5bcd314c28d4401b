//! The nodes of a graph.

use std::sync::Arc;

use crate::ops::{Op, OpClass};

/// One buffer and the origin of its values.
#[derive(Clone)]
pub(crate) struct Node {
    pub(crate) source: Source,
    pub(crate) len: usize,
}

#[derive(Clone)]
pub(crate) enum Source {
    /// Values that the batch copied when they were recorded.
    Upload(Arc<Vec<f32>>),
    /// Values on the device, by their index among the buffers that were recorded with the graph.
    Input(usize),
    /// An argument of each run of a program, by its index.
    Placeholder(usize),
    /// The result of an operation on earlier nodes.
    Op { op: Op, inputs: Vec<usize> },
}

impl Node {
    /// The operation and its inputs, if it is one.
    pub(crate) fn operation(&self) -> Option<(&Op, &[usize])> {
        match &self.source {
            Source::Op { op, inputs } => Some((op, inputs)),
            _ => None,
        }
    }

    /// Returns the class of the operation, if it is one.
    pub(crate) fn class(&self) -> Option<OpClass> {
        self.operation().map(|(op, _)| op.class())
    }

    /// The nodes that it is computed from.
    pub(crate) fn inputs(&self) -> &[usize] {
        self.operation().map_or(&[], |(_, inputs)| inputs)
    }
}

/// Returns for each node whether any of `outputs` depends on it.
pub(crate) fn live(nodes: &[Node], outputs: &[usize]) -> Vec<bool> {
    live_by(nodes.len(), outputs, |node| {
        nodes[node].inputs().iter().copied()
    })
}

/// Returns for each of `count` nodes whether any of `outputs` depends on it, by the nodes that each one reads.
pub(crate) fn live_by<I: Iterator<Item = usize>>(
    count: usize,
    outputs: &[usize],
    reads: impl Fn(usize) -> I,
) -> Vec<bool> {
    let mut live = vec![false; count];
    for &output in outputs {
        live[output] = true;
    }
    for node in (0..count).rev() {
        if live[node] {
            for input in reads(node) {
                live[input] = true;
            }
        }
    }
    live
}
