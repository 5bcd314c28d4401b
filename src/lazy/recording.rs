//! Recording of functions for tensors whose elements are elsewhere: tensors of JavaScript hand over shapes, and get the
//! nodes that a function adds.

use std::sync::Arc;

use crate::device::{Backend, GpuDevice};
use crate::lazy::graph::{Entry, Graph, Step};
use crate::lazy::node::{Node, Source};
use crate::lazy::structure::Described;
use crate::lazy::tensor::Tensor;
use crate::lazy::tensors::Tensors;

/// Inputs, and the tensors that functions make of them.
pub(crate) struct Recording {
    tensors: Tensors,
    inputs: Vec<Arc<Node>>,
}

/// The nodes that functions added to the inputs, and the indices of their results among all nodes.
pub(crate) struct Recorded {
    pub(crate) nodes: Vec<Added>,
    pub(crate) results: Vec<usize>,
}

/// A node that a function added.
pub(crate) enum Added {
    Leaf(Vec<usize>, Arc<Vec<f32>>),
    Operation(Described),
}

impl Recording {
    pub(crate) fn new() -> Self {
        // Nothing runs on it.
        let builder = GpuDevice::builder().backend(Backend::Simd);
        let device = builder.finish(None, String::new());
        Self {
            tensors: Tensors::new(&device),
            inputs: Vec::new(),
        }
    }

    pub(crate) fn tensors(&self) -> &Tensors {
        &self.tensors
    }

    /// Adds an input. `values` has its elements if a function may look at them as indices; otherwise it is empty.
    pub(crate) fn add_input(&mut self, shape: &[usize], values: Vec<f32>) {
        let source = Source::Values(Arc::new(values));
        self.inputs.push(Node::leaf(shape, source));
    }

    /// Returns an input by its index, or a tensor without elements.
    pub(crate) fn input(&self, index: usize) -> Tensor {
        let missing = || Node::leaf(&[0], Source::Values(Arc::default()));
        let node = self.inputs.get(index).map_or_else(missing, Arc::clone);
        self.tensors.with(node)
    }

    pub(crate) fn finish(self, results: &[Tensor]) -> Recorded {
        let count = self.inputs.len();
        let results = results.iter().map(|result| Arc::clone(&result.node));
        // The inputs come first, so that they keep their indices.
        let nodes: Vec<Arc<Node>> = self.inputs.into_iter().chain(results).collect();
        let Graph { entries, results } = Graph::of(&nodes);
        let nodes = entries.into_iter().skip(count).map(added);
        Recorded {
            nodes: nodes.collect(),
            results: results[count..].to_vec(),
        }
    }
}

fn added(Entry { node, step }: Entry) -> Added {
    let shape = node.shape.clone();
    match step {
        Step::Leaf(Source::Values(values)) => Added::Leaf(shape, values),
        Step::Leaf(Source::Buffer(_)) => Added::Leaf(shape, Arc::default()),
        Step::Operation(kind, inputs) => Added::Operation(Described {
            shape,
            operation: Some((kind, inputs)),
        }),
    }
}
