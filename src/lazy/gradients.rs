//! Gradients: reverse mode over the structure of a graph.
//!
//! [`differentiate`] adds nodes to a graph, so that gradients are lazy tensors like all others, and have gradients
//! themselves. Tensors of JavaScript hand over their structure and get it back with these nodes.
//!
//! The files:
//!
//! - `rules` has a rule for each kind of node, and `elementwise` the last column of the op table.
//! - `views`, `indices`, `norms`, `scans` and `convolve` have the longer rules.
//! - `tensor` has the methods of tensors, and `loss` the losses that need care.

mod convolve;
mod elementwise;
mod indices;
mod loss;
mod norms;
mod rules;
mod scans;
mod tensor;
#[cfg(all(test, not(target_arch = "wasm32")))]
mod tests;
mod views;

use crate::error::{Error, Result};
use crate::lazy::gradients::rules::Known;
use crate::lazy::lower::check_inputs;
use crate::lazy::shape::{mismatch, size_of};
use crate::lazy::structure::Described;
use crate::lazy::value::{Tape, Value};

/// A graph with the nodes that gradients need.
pub(crate) struct Differentiated {
    /// The nodes of the graph, and the added ones after them.
    pub(crate) nodes: Vec<Described>,
    /// The indices of the gradients.
    pub(crate) gradients: Vec<usize>,
}

/// Adds the gradients of a loss with respect to nodes of its graph, each of that node's shape: zeros where the loss does
/// not depend on the node. Every node of the graph stands after its inputs.
///
/// # Errors
/// `ShapeMismatch` for a loss of more or less than one element, `InvalidArgument` for a loss that is a leaf and none of
/// the nodes, `NoGradient` for a custom operation without derivatives.
pub(crate) fn differentiate(
    nodes: Vec<Described>,
    loss: usize,
    with_respect_to: &[usize],
) -> Result<Differentiated> {
    check_loss(&nodes[loss], with_respect_to.contains(&loss))?;
    let count = nodes.len();
    let depends = dependents(&nodes, with_respect_to);
    let tape = Tape::new(nodes);
    let mut found: Vec<Option<Value<'_>>> = vec![None; count];
    found[loss] = Some(tape.full(1.0, &tape.value(loss).shape()));
    for node in (0..=loss).rev() {
        if let Some(g) = found[node].filter(|_| depends[node]) {
            pass_on(&tape, node, g, &depends, &mut found)?;
        }
    }
    let gradient = |&node: &usize| {
        let zeros = || tape.full(0.0, &tape.value(node).shape());
        found[node].unwrap_or_else(zeros).node
    };
    let gradients = with_respect_to.iter().map(gradient).collect();
    let nodes = tape.finish()?;
    Ok(pruned(nodes, gradients, count))
}

fn check_loss(loss: &Described, is_input: bool) -> Result<()> {
    if size_of(&loss.shape) != 1 {
        let has = format!("the loss has shape {:?}", loss.shape);
        let message = format!("{has}, but must be one number: take its sum or mean");
        return Err(mismatch("gradients", message));
    }
    if loss.operation.is_none() && !is_input {
        let requirement =
            "recorded and not run yet: take gradients first, and run the loss with them";
        return Err(Error::invalid(
            "loss",
            "a tensor without operations",
            requirement,
        ));
    }
    Ok(())
}

/// Returns whether each node is one of some nodes, or computed from one.
fn dependents(nodes: &[Described], of: &[usize]) -> Vec<bool> {
    let mut depends: Vec<bool> = Vec::with_capacity(nodes.len());
    for (at, node) in nodes.iter().enumerate() {
        let is_computed = match &node.operation {
            Some((_, inputs)) => inputs.iter().any(|&input| depends[input]),
            None => false,
        };
        depends.push(is_computed || of.contains(&at));
    }
    depends
}

/// Adds the gradient of a node to those of its inputs.
fn pass_on<'t>(
    tape: &'t Tape,
    node: usize,
    g: Value<'t>,
    depends: &[bool],
    found: &mut [Option<Value<'t>>],
) -> Result<()> {
    let Some((kind, inputs)) = tape.operation(node) else {
        return Ok(());
    };
    check_inputs(&kind, inputs.len())?;
    let values: Vec<Value<'_>> = inputs.iter().map(|&input| tape.value(input)).collect();
    let known = Known {
        inputs: &values,
        y: tape.value(node),
        g,
    };
    for (at, &input) in inputs.iter().enumerate() {
        if !depends[input] {
            continue;
        }
        let gradient = rules::gradient(&kind, &known, at)?;
        found[input] = match (found[input], gradient) {
            (Some(former), Some(gradient)) => Some(former + gradient),
            (former, gradient) => former.or(gradient),
        };
    }
    Ok(())
}

/// Removes added nodes, which begin at `first`, that no gradient needs.
fn pruned(nodes: Vec<Described>, mut gradients: Vec<usize>, first: usize) -> Differentiated {
    let mut is_needed = vec![false; nodes.len()];
    for &gradient in &gradients {
        is_needed[gradient] = true;
    }
    for at in (first..nodes.len()).rev() {
        if let (true, Some((_, inputs))) = (is_needed[at], &nodes[at].operation) {
            for &input in inputs {
                is_needed[input] = true;
            }
        }
    }
    let mut places = Vec::with_capacity(nodes.len());
    let mut left: Vec<Described> = Vec::new();
    for (at, mut node) in nodes.into_iter().enumerate() {
        places.push(left.len());
        if at < first {
            left.push(node);
        } else if is_needed[at] {
            for input in node.operation.iter_mut().flat_map(|(_, inputs)| inputs) {
                *input = places[*input];
            }
            left.push(node);
        }
    }
    for gradient in &mut gradients {
        *gradient = places[*gradient];
    }
    Differentiated {
        nodes: left,
        gradients,
    }
}
