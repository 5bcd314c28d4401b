//! Graphs that tensors of JavaScript record: from a list of names and numbers to a program.

use std::sync::Arc;

use js_sys::Array;
use wasm_bindgen::prelude::*;

use super::convert::{Parameter, invalid, text};
use super::ops;
use super::program::JsProgram;
use crate::device::GpuDevice;
use crate::error::{Error, Result};
use crate::lazy::lower::Place;
use crate::lazy::node::{Kind, Rows};
use crate::lazy::programs::Planned;
use crate::lazy::structure::{Described, Structure};
use crate::lazy::view::Walk;
use crate::ops::{AxisFold, ConvLayer};

/// Compiles the graph of a list. Returns its program, undefined if all results are leaves, and after that a number for
/// each result: that of an output of the program, or −1 − k for the leaf k.
pub(super) async fn plan(device: GpuDevice, list: &Array, results: &Array) -> Result<JsValue> {
    let planned = Planned::new(&device, &structure(list, results)?).await?;
    let program = planned
        .program
        .map(|program| JsProgram::from(program).into());
    let answer = Array::of1(&program.unwrap_or_default());
    for place in planned.places {
        let number = match place {
            Place::Output(output) => output as f64,
            Place::Leaf(leaf) => -1.0 - leaf as f64,
        };
        answer.push(&number.into());
    }
    Ok(answer.into())
}

/// Reads values of a list, one after the other.
struct Reader<'a> {
    list: &'a Array,
    next: u32,
}

impl Reader<'_> {
    fn value(&mut self) -> JsValue {
        let value = self.list.get(self.next);
        self.next += 1;
        value
    }

    fn take<T: Parameter>(&mut self) -> Result<T> {
        T::from_js(&self.value(), "graph")
    }

    fn list<T: Parameter>(&mut self, len: usize) -> Result<Vec<T>> {
        (0..len).map(|_| self.take()).collect()
    }

    /// Returns a list after its length.
    fn counted<T: Parameter>(&mut self) -> Result<Vec<T>> {
        let len = self.take()?;
        self.list(len)
    }
}

fn structure(list: &Array, results: &Array) -> Result<Structure> {
    let mut nodes: Vec<Described> = Vec::new();
    let mut reader = Reader { list, next: 0 };
    while reader.next < list.length() {
        let node = described(&mut reader, &nodes)?;
        nodes.push(node);
    }
    let mut reader = Reader {
        list: results,
        next: 0,
    };
    let results = reader.list(results.length() as usize)?;
    require_below(&results, nodes.len())?;
    Ok(Structure { nodes, results })
}

/// Reads a node: its operation, the lengths of its shape, its inputs and parameters, each after their number.
fn described(reader: &mut Reader<'_>, before: &[Described]) -> Result<Described> {
    let name = reader.value();
    let shape: Vec<usize> = reader.counted()?;
    let inputs: Vec<usize> = reader.counted()?;
    require_below(&inputs, before.len())?;
    let count: usize = reader.take()?;
    let end = reader.next + count as u32;
    let operation = if name.as_string().as_deref() == Some("leaf") {
        None
    } else {
        let rank = inputs.first().map_or(0, |&input| before[input].shape.len());
        let kind = kind(&name, reader, [shape.len(), inputs.len(), rank], count)?;
        Some((Arc::new(kind), inputs))
    };
    reader.next = end;
    Ok(Described { shape, operation })
}

fn require_below(indices: &[usize], count: usize) -> Result<()> {
    match indices.iter().find(|&&index| index >= count) {
        Some(&index) => Err(Error::LimitExceeded {
            what: "the index of a node",
            value: index as u64,
            limit: count as u64,
        }),
        None => Ok(()),
    }
}

/// Returns the kind of a node with this name, or with an elementwise operation's index in the op table; reads its
/// parameters.
fn kind(
    name: &JsValue,
    reader: &mut Reader<'_>,
    [rank, inputs, input_rank]: [usize; 3],
    parameters: usize,
) -> Result<Kind> {
    if let Some(index) = name.as_f64() {
        return elementwise(index as usize, reader, inputs, parameters);
    }
    Ok(match &text(name, "graph")?[..] {
        "constant" => Kind::Constant(reader.take()?),
        "range" => Kind::Range,
        "reshape" => Kind::Reshape,
        "matmul" => Kind::Matmul,
        "take" => Kind::Take,
        "view" => Kind::View(walk(reader, rank, input_rank)?),
        "reduce" => Kind::Reduce {
            fold: AxisFold::from_js(&reader.value(), "graph")?,
            keep_dims: reader.take::<usize>()? == 1,
            axes: reader.list(parameters - 2)?,
        },
        "softmax" => rows(reader, |_| Ok(Rows::Softmax))?,
        "logSoftmax" => rows(reader, |_| Ok(Rows::LogSoftmax))?,
        "layerNorm" => rows(reader, |reader| {
            let epsilon = reader.take()?;
            Ok(Rows::LayerNorm { epsilon })
        })?,
        "rmsNorm" => rows(reader, |reader| {
            let epsilon = reader.take()?;
            Ok(Rows::RmsNorm { epsilon })
        })?,
        "conv2d" => Kind::Convolve(ConvLayer::from_js(&reader.value(), "graph")?),
        "concat" => Kind::Concat {
            axis: reader.take()?,
        },
        "gather" => Kind::Gather {
            axis: reader.take()?,
        },
        "topK" => Kind::TopK { k: reader.take()? },
        "unpackBytes" => Kind::UnpackBytes {
            stride: reader.take()?,
        },
        "packBytes" => Kind::PackBytes {
            stride: reader.take()?,
        },
        _ => return Err(invalid("graph", name, "the name of an operation")),
    })
}

fn elementwise(
    index: usize,
    reader: &mut Reader<'_>,
    inputs: usize,
    parameters: usize,
) -> Result<Kind> {
    let arguments = Array::new_with_length(inputs as u32);
    for _ in 0..parameters {
        arguments.push(&reader.value());
    }
    ops::build(index, &arguments).map(Kind::Elementwise)
}

fn rows(
    reader: &mut Reader<'_>,
    rows: impl FnOnce(&mut Reader<'_>) -> Result<Rows>,
) -> Result<Kind> {
    let axis = reader.take()?;
    let rows = rows(reader)?;
    Ok(Kind::Rows { axis, rows })
}

/// Reads the axes below, −1 where elements repeat, the steps, and the first index of each axis below.
fn walk(reader: &mut Reader<'_>, rank: usize, input_rank: usize) -> Result<Walk> {
    // The shape stands there too, so that it is part of the key that JavaScript makes.
    reader.list::<usize>(rank)?;
    let axes: Vec<isize> = reader.list(rank)?;
    Ok(Walk {
        axes: axes
            .into_iter()
            .map(|axis| usize::try_from(axis).ok())
            .collect(),
        steps: reader.list(rank)?,
        starts: reader.list(input_rank)?,
    })
}
