//! The structure of a graph: everything that it computes, without the values of its leaves.

use std::hash::{Hash, Hasher};
use std::mem::discriminant;
use std::sync::Arc;

use crate::lazy::node::{Kind, Node, Rows};
use crate::ops::{Op, Reduction};

/// A node of a structure.
#[derive(Clone)]
pub(crate) struct Described {
    pub(crate) shape: Vec<usize>,
    /// The operation with the indices of its inputs; `None` for a leaf.
    pub(crate) operation: Option<(Arc<Kind>, Vec<usize>)>,
}

impl Described {
    /// Records the operations of a structure that stand after those of `nodes`, and adds their nodes.
    pub(super) fn record(all: Vec<Self>, nodes: &mut Vec<Arc<Node>>) {
        let own = nodes.len();
        for Self { shape, operation } in all.into_iter().skip(own) {
            let Some((kind, inputs)) = operation else {
                continue;
            };
            let inputs: Vec<&Arc<Node>> = inputs.iter().map(|&input| &nodes[input]).collect();
            let added = Node::operation(Arc::unwrap_or_clone(kind), &inputs, &shape);
            nodes.push(added);
        }
    }
}

/// Nodes and results of a graph.
pub(super) struct Structure {
    /// All nodes, each after its inputs.
    pub(super) nodes: Vec<Described>,
    /// The indices of the results.
    pub(super) results: Vec<usize>,
}

/// A hasher that stores the bytes that are written to it, so that it has no collisions.
#[derive(Default)]
struct Bytes(Vec<u8>);

impl Hasher for Bytes {
    fn write(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    fn finish(&self) -> u64 {
        0
    }
}

impl Structure {
    /// Returns bytes that are equal for graphs of one structure, and different for all others. Leaves differ by their
    /// shapes alone.
    pub(super) fn key(&self) -> Vec<u8> {
        let mut key = Bytes::default();
        for node in &self.nodes {
            node.shape.hash(&mut key);
            node.operation.hash(&mut key);
        }
        self.results.hash(&mut key);
        key.0
    }
}

impl Hash for Kind {
    fn hash<H: Hasher>(&self, state: &mut H) {
        discriminant(self).hash(state);
        match self {
            Self::Elementwise(op) => hash_elementwise(op, state),
            Self::Constant(value) => value.to_bits().hash(state),
            Self::Range
            | Self::Reshape
            | Self::Matmul
            | Self::Scatter
            | Self::Take
            | Self::StopGradient => {}
            Self::View(walk) => walk.hash(state),
            Self::Reduce {
                fold,
                axes,
                keep_dims,
            } => (fold, axes, keep_dims).hash(state),
            Self::CustomReduce {
                reduction,
                axes,
                keep_dims,
            } => (reduction, axes, keep_dims).hash(state),
            Self::Rows { axis, rows } => (axis, rows).hash(state),
            Self::Convolve(options) => options.hash(state),
            Self::Concat { axis } | Self::Gather { axis } => axis.hash(state),
            Self::TopK { k } => k.hash(state),
            Self::UnpackBytes { stride } | Self::PackBytes { stride } => stride.hash(state),
        }
    }
}

impl Hash for Rows {
    fn hash<H: Hasher>(&self, state: &mut H) {
        discriminant(self).hash(state);
        match self {
            Self::Softmax
            | Self::LogSoftmax
            | Self::Cumsum
            | Self::Cumprod
            | Self::Sort
            | Self::Argsort
            | Self::Fft => {}
            Self::LayerNorm { epsilon } | Self::RmsNorm { epsilon } => {
                epsilon.to_bits().hash(state);
            }
        }
    }
}

impl Hash for Reduction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}

/// Hashes an elementwise operation with its numbers, which [`Op::scalars`] returns.
fn hash_elementwise(op: &Op, state: &mut impl Hasher) {
    discriminant(op).hash(state);
    op.scalars().map(f32::to_bits).hash(state);
    if let Op::Custom(call) = op {
        call.op().number().hash(state);
    }
}
