//! Gradients of a loss beside central differences of it in `f64`.

use std::sync::Arc;

use super::interpreter::{Array, evaluate};
use crate::error::Result;
use crate::lazy::Tensor;
use crate::lazy::gradients::differentiate;
use crate::lazy::graph::{Graph, Step};
use crate::lazy::node::Source;
use crate::lazy::structure::Described;

/// The distance of central differences. Losses have third derivatives of the order of 1 to 100.
const DISTANCE: f64 = 1e-4;

/// The error of central differences, relative to the largest gradient of the loss: that of their distance.
const TOLERANCE: f64 = 2e-5;

/// A loss as a graph, with the values of its leaves.
struct Loss {
    nodes: Vec<Described>,
    leaves: Vec<Option<Vec<f64>>>,
    result: usize,
    inputs: Vec<usize>,
}

impl Loss {
    fn new(loss: &Tensor, inputs: &[&Tensor]) -> Self {
        let mut roots = vec![Arc::clone(&loss.node)];
        roots.extend(inputs.iter().map(|input| Arc::clone(&input.node)));
        let graph = Graph::of(&roots);
        let leaves = graph.entries.iter().map(|entry| match &entry.step {
            Step::Leaf(Source::Values(values)) => {
                Some(values.iter().map(|&value| f64::from(value)).collect())
            }
            Step::Leaf(Source::Buffer(_)) => panic!("the values of a leaf are known"),
            Step::Operation(..) => None,
        });
        Self {
            leaves: leaves.collect(),
            nodes: graph.structure().nodes,
            result: graph.results[0],
            inputs: graph.results[1..].to_vec(),
        }
    }

    fn evaluate(&self, nodes: &[Described]) -> Vec<Array> {
        evaluate(nodes, |leaf| self.leaves[leaf].clone().unwrap_or_default())
    }

    /// Returns the loss where an element of a leaf is another one.
    fn moved(&mut self, leaf: usize, element: usize, by: f64) -> f64 {
        let set = |leaves: &mut Vec<Option<Vec<f64>>>, by: f64| {
            if let Some(values) = &mut leaves[leaf] {
                values[element] += by;
            }
        };
        let former = self.leaves[leaf].clone();
        set(&mut self.leaves, by);
        let loss = self.evaluate(&self.nodes)[self.result].values[0];
        self.leaves[leaf] = former;
        loss
    }

    fn difference(&mut self, leaf: usize, element: usize) -> f64 {
        let after = self.moved(leaf, element, DISTANCE);
        let before = self.moved(leaf, element, -DISTANCE);
        (after - before) / (2.0 * DISTANCE)
    }
}

/// Checks the gradients of a loss, whose inputs are leaves, against its differences. Returns the number of compared
/// elements.
pub(super) fn check(name: &str, loss: &Tensor, inputs: &[&Tensor]) -> Result<usize> {
    let mut of = Loss::new(loss, inputs);
    let found = differentiate(of.nodes.clone(), of.result, &of.inputs)?;
    let arrays = of.evaluate(&found.nodes);
    let gradients: Vec<&Array> = found.gradients.iter().map(|&node| &arrays[node]).collect();
    let largest = gradients.iter().flat_map(|array| &array.values);
    let largest = largest.fold(1.0, |most: f64, value| most.max(value.abs()));
    let mut compared = 0;
    for (at, gradient) in gradients.into_iter().enumerate() {
        assert_eq!(gradient.shape, inputs[at].shape(), "{name}");
        for (element, &value) in gradient.values.iter().enumerate() {
            let wanted = of.difference(of.inputs[at], element);
            let error = (value - wanted).abs();
            assert!(
                error <= TOLERANCE * largest,
                "{name}: element {element} of input {at} of shape {:?} has the gradient {value}, and the difference {wanted}",
                gradient.shape
            );
            compared += 1;
        }
    }
    Ok(compared)
}

/// Checks the gradients that a device computes against those of the same graph in `f64`.
pub(super) fn check_on_device(name: &str, loss: &Tensor, inputs: &[&Tensor]) -> Result<()> {
    let of = Loss::new(loss, inputs);
    let found = differentiate(of.nodes.clone(), of.result, &of.inputs)?;
    let arrays = of.evaluate(&found.nodes);
    let gradients = loss.gradients(inputs)?;
    let tensors: Vec<&Tensor> = gradients.iter().collect();
    let computed = loss.tensors().read(&tensors)?;
    for (values, &node) in computed.iter().zip(&found.gradients) {
        let wanted = &arrays[node].values;
        assert_eq!(values.len(), wanted.len(), "{name}");
        let largest = wanted
            .iter()
            .fold(1.0, |most: f64, value| most.max(value.abs()));
        for (&value, wanted) in values.iter().zip(wanted) {
            let error = (f64::from(value) - wanted).abs();
            assert!(error <= 2e-4 * largest, "{name}: {value} is not {wanted}");
        }
    }
    Ok(())
}
