//! Graphs that tensors of JavaScript record: from a list of words of 32 bits to a program.

use js_sys::Array;
use wasm_bindgen::prelude::*;

use super::batch::compiled;
use super::error::Work;
use super::ops;
use crate::batch::GpuCommandBatch;
use crate::device::GpuDevice;
use crate::error::Result;
use crate::lazy::lower::{Lowering, Place};
use crate::lazy::node::{Kind, Rows};
use crate::lazy::view::Walk;
use crate::ops::shape::check_limit;
use crate::ops::{AxisFold, Conv2d, ConvLayer, MAX_AXES, Padding};

/// Plans a graph: the indices of its results among the nodes, as a list, and the nodes. Its work returns a list: the
/// program, undefined if all results are leaves, and a number for each result: that of an output of the program, or
/// −1 − k for the leaf k.
pub(super) fn plan(device: GpuDevice, words: &[f32]) -> Result<Work> {
    let mut batch = GpuCommandBatch::new(device);
    let mut lowering = Lowering::new(&mut batch);
    let mut words = Words::new(words);
    let mut results = words.list();
    while !words.left.is_empty() {
        add_node(&mut lowering, &mut words)?;
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

/// Words of 32 bits, which JavaScript passes as the bits of floats. Beyond their end there are zeros.
struct Words<'a> {
    left: &'a [f32],
    /// An index beyond its limit, if one was read.
    wrong: Option<(usize, usize)>,
}

impl<'a> Words<'a> {
    fn new(left: &'a [f32]) -> Self {
        Self { left, wrong: None }
    }

    fn float(&mut self) -> f32 {
        let Some((&first, rest)) = self.left.split_first() else {
            return 0.0;
        };
        self.left = rest;
        first
    }

    fn whole(&mut self) -> usize {
        self.float().to_bits() as usize
    }

    fn signed(&mut self) -> isize {
        self.whole() as i32 as isize
    }

    /// Returns an index below a limit; notes it otherwise.
    fn below(&mut self, limit: usize) -> usize {
        let index = self.whole();
        if index >= limit {
            self.wrong = Some((index, limit));
        }
        index
    }

    /// Returns the words of a list after its length.
    fn list(&mut self) -> Words<'a> {
        let count = self.whole().min(self.left.len());
        let (list, rest) = self.left.split_at(count);
        self.left = rest;
        Words::new(list)
    }

    /// Returns all words as indices below a limit.
    fn all_below(&mut self, limit: usize) -> Vec<usize> {
        let mut numbers = Vec::with_capacity(self.left.len());
        while !self.left.is_empty() {
            numbers.push(self.below(limit));
        }
        numbers
    }

    /// Returns all words as indices below a limit.
    ///
    /// # Errors
    /// `LimitExceeded` with an index beyond the limit.
    fn indices(&mut self, limit: usize) -> Result<Vec<usize>> {
        let indices = self.all_below(limit);
        self.check().map(|()| indices)
    }

    fn check(&self) -> Result<()> {
        match self.wrong {
            None => Ok(()),
            Some((index, limit)) => check_limit("an index in a graph", index, limit),
        }
    }
}

/// Adds a node: its kind, and lists of the lengths of its shape, its inputs and its parameters.
fn add_node(lowering: &mut Lowering<'_>, words: &mut Words<'_>) -> Result<()> {
    let kind = words.whole();
    let shape = words.list().all_below(usize::MAX);
    check_limit("the number of axes", shape.len(), MAX_AXES)?;
    let inputs = words.list().indices(lowering.count())?;
    let mut parameters = words.list();
    let kind = match kind {
        0 => return lowering.leaf(&shape),
        1 => elementwise(&mut parameters, inputs.len())?,
        _ => kind_of(lowering, kind, &mut parameters, &inputs, shape.len()),
    };
    parameters.check()?;
    lowering.operation(&kind, &inputs, &shape)
}

/// Reads the index of an operation in the op table, and its parameters.
fn elementwise(words: &mut Words<'_>, inputs: usize) -> Result<Kind> {
    let index = words.whole();
    let arguments = Array::new_with_length(inputs as u32);
    for &parameter in words.left {
        arguments.push(&parameter.into());
    }
    ops::build(index, &arguments).map(Kind::Elementwise)
}

/// Returns the kind of a node by its index in `KINDS` of `js/npm/tensor/node.js`; reads its parameters. A wrong number
/// is noted in `words`.
fn kind_of(
    lowering: &Lowering<'_>,
    kind: usize,
    words: &mut Words<'_>,
    inputs: &[usize],
    rank: usize,
) -> Kind {
    let shape = |input: usize| inputs.get(input).map(|&node| lowering.shape(node));
    let [below, weights] = [0, 1].map(|input| shape(input).unwrap_or_default());
    match kind {
        2 => Kind::Constant(words.float()),
        3 => Kind::Range,
        4 => Kind::View(walk(words, rank, below.len())),
        5 => Kind::Reshape,
        6 => Kind::Reduce {
            fold: FOLDS[words.below(FOLDS.len()).min(FOLDS.len() - 1)],
            keep_dims: words.whole() == 1,
            axes: words.all_below(below.len()),
        },
        7..=10 => Kind::Rows {
            axis: words.below(below.len()),
            rows: rows(kind, words.float()),
        },
        11 => Kind::Matmul,
        12 => Kind::Convolve(layer(words, &below, &weights)),
        13 => Kind::Concat {
            axis: words.below(below.len()),
        },
        14 => Kind::Gather {
            axis: words.below(below.len()),
        },
        15 => Kind::TopK { k: words.whole() },
        16 => Kind::Take,
        17 => Kind::UnpackBytes {
            stride: words.whole(),
        },
        18 => Kind::PackBytes {
            stride: words.whole(),
        },
        _ => {
            words.wrong = Some((kind, 18));
            Kind::Range
        }
    }
}

/// The reductions in the order of `FOLDS` in `js/npm/tensor/elementwise.js`.
const FOLDS: [AxisFold; 6] = [
    AxisFold::Sum,
    AxisFold::Mean,
    AxisFold::Max,
    AxisFold::Min,
    AxisFold::Argmax,
    AxisFold::Argmin,
];

fn rows(kind: usize, epsilon: f32) -> Rows {
    match kind {
        7 => Rows::Softmax,
        8 => Rows::LogSoftmax,
        9 => Rows::LayerNorm { epsilon },
        _ => Rows::RmsNorm { epsilon },
    }
}

/// Reads the axes below, −1 where elements repeat, the steps, and the first index of each axis below.
fn walk(words: &mut Words<'_>, rank: usize, below: usize) -> Walk {
    let (mut axes, mut steps) = (Vec::new(), Vec::new());
    for _ in 0..rank {
        let axis = words.whole();
        let repeats = axis == u32::MAX as usize;
        if !repeats && axis >= below {
            words.wrong = Some((axis, below));
        }
        axes.push((!repeats).then_some(axis));
    }
    for _ in 0..rank {
        steps.push(words.signed());
    }
    let starts = words.all_below(usize::MAX);
    Walk {
        axes,
        steps,
        starts,
    }
}

/// Reads strides, 1 for the padding "same", dilations and the number of groups.
fn layer(words: &mut Words<'_>, images: &[usize], weights: &[usize]) -> ConvLayer {
    let length = |shape: &[usize], axis: usize| shape.get(axis).copied().unwrap_or_default();
    ConvLayer {
        image: Conv2d {
            input_rows: length(images, 2),
            input_cols: length(images, 3),
            kernel_rows: length(weights, 2),
            kernel_cols: length(weights, 3),
            stride_rows: words.whole(),
            stride_cols: words.whole(),
            padding: [Padding::Valid, Padding::Same][words.whole().min(1)],
        },
        batch: length(images, 0),
        channels: length(images, 1),
        filters: length(weights, 0),
        dilation_rows: words.whole(),
        dilation_cols: words.whole(),
        groups: words.whole(),
    }
}
