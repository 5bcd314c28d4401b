//! The module of `relampago/train`: adds the nodes of gradients and of optimizers' steps to graphs that tensors of JavaScript
//! record.
//!
//! This WebAssembly module is separate from the one that computes, and needs no device. Its scripts are in `js/train/`.

// wasm-bindgen exports public items.
#![allow(unreachable_pub)]

use wasm_bindgen::prelude::*;

use crate::error::{Error, Result};
use crate::js_graph::{Words, read_node, written};
use crate::js_shared::converted;
use crate::lazy::gradients::differentiate as differentiated;
use crate::lazy::optimizers::Update;
use crate::lazy::structure::Described;

/// Returns the nodes of gradients, as `js/npm/tensor/node.js` reads them, of a graph as it is written there.
#[wasm_bindgen(skip_typescript)]
pub fn differentiate(words: &[f32]) -> Result<Vec<u32>, JsValue> {
    gradients(words).map_err(|error| to_js(&error))
}

/// Returns the nodes of an optimizer's step, as `js/train/optimizers.js` describes it.
#[wasm_bindgen(skip_typescript)]
pub fn update(words: &[f32]) -> Result<Vec<u32>, JsValue> {
    updates(words).map_err(|error| to_js(&error))
}

fn to_js(error: &Error) -> JsValue {
    converted(error, &JsValue::UNDEFINED)
}

/// Returns the nodes of gradients: their indices as a list, and the nodes that a graph needs for them after its own. The
/// graph's results are the loss, and the nodes whose gradients are wanted.
fn gradients(words: &[f32]) -> Result<Vec<u32>> {
    let (nodes, roots) = read_graph(Words::new(words))?;
    let own = nodes.len();
    let (&loss, others) = roots
        .split_first()
        .ok_or(Error::Empty { op: "gradients" })?;
    let found = differentiated(nodes, loss, others)?;
    written(&found.gradients, &found.nodes[own..])
}

/// Returns the nodes of an optimizer's step as [`gradients`] does: for a list of the rule and its numbers, and a graph of
/// leaves.
fn updates(words: &[f32]) -> Result<Vec<u32>> {
    let mut words = Words::new(words);
    let mut rule = words.list();
    let update = update_of(&mut rule);
    rule.check()?;
    let (nodes, _) = read_graph(words)?;
    let own = nodes.len();
    let updated = update.record(nodes.into_iter().map(|node| node.shape).collect())?;
    written(&updated.results, &updated.nodes[own..])
}

/// Reads the number of a rule in `js/train/optimizers.js`, and its numbers.
fn update_of(words: &mut Words<'_>) -> Update {
    match words.below(4) {
        0 => Update::Sgd {
            momentum: words.float(),
            is_nesterov: words.float() != 0.0,
            decay: words.float(),
        },
        1 => Update::Adam {
            b1: words.float(),
            b2: words.float(),
            epsilon: words.float(),
            decay: words.float(),
        },
        2 => Update::Lion {
            b1: words.float(),
            b2: words.float(),
            decay: words.float(),
        },
        _ => Update::Clip,
    }
}

/// Reads a graph: its nodes, and the indices of its results.
fn read_graph(mut words: Words<'_>) -> Result<(Vec<Described>, Vec<usize>)> {
    let mut results = words.list();
    let mut nodes: Vec<Described> = Vec::new();
    while !words.is_empty() {
        let shape_of = |node: usize| nodes[node].shape.clone();
        let node = read_node(&mut words, nodes.len(), &shape_of)?;
        nodes.push(node);
    }
    let results = results.indices(nodes.len())?;
    Ok((nodes, results))
}
