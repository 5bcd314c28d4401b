//! Plans of graphs that tensors of JavaScript record: from a list of words of 32 bits to a program.

use js_sys::Array;
use wasm_bindgen::prelude::*;

use super::batch::compiled;
use super::error::Work;
use crate::batch::GpuCommandBatch;
use crate::device::GpuDevice;
use crate::error::Result;
use crate::js_graph::{Words, read_node};
use crate::lazy::lower::{Lowering, Place};
use crate::lazy::structure::Described;

/// Plans a graph: the indices of its results among the nodes, as a list, and the nodes. Its work returns a list: the
/// program, undefined if all results are leaves, and a number for each result: that of an output of the program, or
/// −1 − k for the leaf k.
pub(super) fn plan(device: GpuDevice, words: &[f32]) -> Result<Work> {
    let mut batch = GpuCommandBatch::new(device);
    let mut lowering = Lowering::new(&mut batch);
    let mut words = Words::new(words);
    let mut results = words.list();
    while !words.is_empty() {
        let shape_of = |node| lowering.shape(node).to_vec();
        let Described { shape, operation } = read_node(&mut words, lowering.count(), &shape_of)?;
        match operation {
            None => lowering.leaf(&shape)?,
            Some((kind, inputs)) => lowering.operation(&kind, &inputs, &shape)?,
        }
    }
    let results = results.indices(lowering.count())?;
    let (outputs, places) = lowering.finish(&results)?;
    let answer = Array::of1(&JsValue::UNDEFINED);
    for place in places {
        let number = match place {
            Place::Output(output) => output as f64,
            Place::Leaf(leaf) => -1.0 - leaf as f64,
        };
        answer.push(&number.into());
    }
    let program = (!outputs.is_empty()).then(|| compiled(batch.prepare(&outputs)));
    Ok(Box::pin(async move {
        if let Some(program) = program {
            answer.set(0, program.await?);
        }
        Ok(answer.into())
    }))
}
