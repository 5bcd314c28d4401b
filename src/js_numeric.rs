//! The module of `relampago/numeric`: functions of `lazy/numeric` for tensors of JavaScript.
//!
//! This WebAssembly module is separate from the one that computes, and needs no device: a function gets shapes, and returns
//! the nodes that it records. `table` has a row for each function, which the scripts in `js/numeric/` read; `arguments`
//! reads the arguments of a call.

// wasm-bindgen exports public items.
#![allow(unreachable_pub)]

mod arguments;
mod table;

use wasm_bindgen::prelude::*;

use crate::error::{Result, argument};
use crate::js_graph::{Words, write_leaf, write_list, write_node};
use crate::js_numeric::arguments::Call;
use crate::js_numeric::table::{FUNCTIONS, Function};
use crate::js_shared::error;
use crate::lazy::recording::{Added, Recorded, Recording};

/// Returns a line for each function: see `js/numeric/functions.js`.
#[wasm_bindgen(skip_typescript)]
pub fn signatures() -> String {
    let mut lines = String::new();
    for function in FUNCTIONS {
        (function.describe)(&mut lines);
        lines.push('\n');
    }
    lines
}

/// Returns the nodes that a function adds to its arguments, as `js/npm/tensor/node.js` reads them.
#[wasm_bindgen(skip_typescript)]
pub fn record(function: usize, words: &[f32]) -> Result<Vec<u32>, JsValue> {
    let Some(function) = FUNCTIONS.get(function) else {
        return Ok(Vec::new());
    };
    recorded(function, words).map_err(|failure| {
        let (name, message) = (argument(function.name), failure.to_string());
        let of_name = format!("{name}: ");
        let message = if message.starts_with(&of_name) {
            message
        } else {
            of_name + &message
        };
        error(failure.code(), &message, &JsValue::UNDEFINED)
    })
}

fn recorded(function: &Function, words: &[f32]) -> Result<Vec<u32>> {
    let mut words = Words::new(words);
    let mut recording = Recording::new();
    let mut inputs = words.list();
    while !inputs.is_empty() {
        let shape = inputs.list().indices(usize::MAX)?;
        recording.add_input(&shape, inputs.list().floats());
    }
    let results = (function.record)(&mut Call::new(&recording, words))?;
    let Recorded { nodes, results } = recording.finish(&results);
    let mut words = Vec::new();
    write_list(&mut words, &results);
    for node in &nodes {
        match node {
            Added::Leaf(shape, values) => write_leaf(&mut words, shape, values),
            Added::Operation(node) => write_node(&mut words, node)?,
        }
    }
    Ok(words)
}
