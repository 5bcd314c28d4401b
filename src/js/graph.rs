//! Graphs that tensors of JavaScript record: from a list of words of 32 bits to a program, and to gradients.

use std::sync::Arc;

use js_sys::Array;
use wasm_bindgen::prelude::*;

use super::batch::compiled;
use super::error::Work;
use super::ops;
use crate::batch::GpuCommandBatch;
use crate::device::GpuDevice;
use crate::error::{Error, Result};
use crate::lazy::gradients::differentiate;
use crate::lazy::lower::{Lowering, Place};
use crate::lazy::node::{Kind, Rows};
use crate::lazy::optimizers::Update;
use crate::lazy::structure::Described;
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

/// Returns the nodes of gradients: their indices as a list, and the nodes that a graph needs for them after its own. The
/// graph's results are the loss, and the nodes whose gradients are wanted.
pub(super) fn gradients(words: &[f32]) -> Result<Vec<u32>> {
    let (nodes, roots) = read_graph(Words::new(words))?;
    let own = nodes.len();
    let (&loss, others) = roots
        .split_first()
        .ok_or(Error::Empty { op: "gradients" })?;
    let found = differentiate(nodes, loss, others)?;
    written(&found.gradients, &found.nodes[own..])
}

/// Returns the nodes of an optimizer's step as [`gradients`] does: for a list of the rule and its numbers, and a graph of
/// leaves.
pub(super) fn updates(words: &[f32]) -> Result<Vec<u32>> {
    let mut words = Words::new(words);
    let mut rule = words.list();
    let update = update_of(&mut rule);
    rule.check()?;
    let (nodes, _) = read_graph(words)?;
    let own = nodes.len();
    let updated = update.record(nodes.into_iter().map(|node| node.shape).collect())?;
    written(&updated.results, &updated.nodes[own..])
}

/// Reads the number of a rule in `js/npm/tensor/optimizers.js`, and its numbers.
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
    while !words.left.is_empty() {
        let shape_of = |node: usize| nodes[node].shape.clone();
        let node = read_node(&mut words, nodes.len(), &shape_of)?;
        nodes.push(node);
    }
    let results = results.indices(nodes.len())?;
    Ok((nodes, results))
}

/// Writes the indices of results, and nodes.
fn written(results: &[usize], nodes: &[Described]) -> Result<Vec<u32>> {
    let mut words = Vec::new();
    write_list(&mut words, results);
    for node in nodes {
        write_node(&mut words, node)?;
    }
    Ok(words)
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

/// Reads a node of a graph of `count` nodes so far: its kind, and lists of the lengths of its shape, its inputs and its
/// parameters.
fn read_node(
    words: &mut Words<'_>,
    count: usize,
    shape_of: &dyn Fn(usize) -> Vec<usize>,
) -> Result<Described> {
    let kind = words.whole();
    let shape = words.list().all_below(usize::MAX);
    check_limit("the number of axes", shape.len(), MAX_AXES)?;
    let inputs = words.list().indices(count)?;
    let mut parameters = words.list();
    let kind = match kind {
        0 => {
            let operation = None;
            return Ok(Described { shape, operation });
        }
        1 => elementwise(&mut parameters, inputs.len())?,
        _ => {
            let shapes: Vec<Vec<usize>> = inputs.iter().map(|&input| shape_of(input)).collect();
            kind_of(kind, &mut parameters, &shapes, shape.len())
        }
    };
    parameters.check()?;
    let operation = Some((Arc::new(kind), inputs));
    Ok(Described { shape, operation })
}

/// Writes a node as [`read_node`] reads it.
fn write_node(words: &mut Vec<u32>, node: &Described) -> Result<()> {
    let Described { shape, operation } = node;
    let Some((kind, inputs)) = operation else {
        return Ok(());
    };
    let (number, parameters) = described(kind)?;
    words.push(number);
    write_list(words, shape);
    write_list(words, inputs);
    words.push(parameters.len() as u32);
    words.extend(parameters);
    Ok(())
}

/// Writes whole numbers after their count.
fn write_list(words: &mut Vec<u32>, numbers: &[usize]) {
    words.push(numbers.len() as u32);
    words.extend(numbers.iter().map(|&number| number as u32));
}

/// Returns the number and the parameters of a kind, as [`kind_of`] reads them.
///
/// # Errors
/// `NoGradient` for a custom operation or reduction, which no tensor of JavaScript has.
fn described(kind: &Kind) -> Result<(u32, Vec<u32>)> {
    Ok(match kind {
        Kind::Elementwise(op) => {
            let index = ops::index_of(op).ok_or(Error::NoGradient { op: op.name() })?;
            let [first, second] = op.scalars().map(f32::to_bits);
            (1, vec![index as u32, first, second])
        }
        Kind::Constant(value) => (2, vec![value.to_bits()]),
        Kind::Range => (3, Vec::new()),
        Kind::View(walk) => (4, walk_words(walk)),
        Kind::Reshape => (5, Vec::new()),
        Kind::Reduce {
            fold,
            axes,
            keep_dims,
        } => {
            let fold = FOLDS.iter().position(|own| own == fold).unwrap_or_default();
            let axes = axes.iter().map(|&axis| axis as u32);
            let first = [fold as u32, u32::from(*keep_dims)];
            (6, first.into_iter().chain(axes).collect())
        }
        Kind::CustomReduce { reduction, .. } => {
            let op = reduction.name;
            return Err(Error::NoGradient { op });
        }
        Kind::Rows { axis, rows } => {
            let (number, epsilon) = match *rows {
                Rows::Softmax => (7, 0.0),
                Rows::LogSoftmax => (8, 0.0),
                Rows::LayerNorm { epsilon } => (9, epsilon),
                Rows::RmsNorm { epsilon } => (10, epsilon),
                Rows::Cumsum => (20, 0.0),
                Rows::Cumprod => (21, 0.0),
                Rows::Argsort => (22, 0.0),
                Rows::Fft => (23, 0.0),
                Rows::Sort => (25, 0.0),
            };
            (number, vec![*axis as u32, epsilon.to_bits()])
        }
        Kind::Matmul => (11, Vec::new()),
        Kind::Convolve(layer) => (12, layer_words(layer)),
        Kind::Concat { axis } => (13, vec![*axis as u32]),
        Kind::Gather { axis } => (14, vec![*axis as u32]),
        Kind::TopK { k } => (15, vec![*k as u32]),
        Kind::Take => (16, Vec::new()),
        Kind::UnpackBytes { stride } => (17, vec![*stride as u32]),
        Kind::PackBytes { stride } => (18, vec![*stride as u32]),
        Kind::StopGradient => (19, Vec::new()),
        Kind::Scatter => (24, Vec::new()),
    })
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
fn kind_of(kind: usize, words: &mut Words<'_>, inputs: &[Vec<usize>], rank: usize) -> Kind {
    let shape = |input: usize| inputs.get(input).map_or(&[][..], |shape| shape);
    let [below, weights] = [0, 1].map(shape);
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
        7..=10 | 20..=23 | 25 => Kind::Rows {
            axis: words.below(below.len()),
            rows: rows(kind, words.float()),
        },
        11 => Kind::Matmul,
        12 => Kind::Convolve(layer(words, below, weights)),
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
        19 => Kind::StopGradient,
        24 => Kind::Scatter,
        _ => {
            words.wrong = Some((kind, 26));
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
        20 => Rows::Cumsum,
        21 => Rows::Cumprod,
        22 => Rows::Argsort,
        23 => Rows::Fft,
        25 => Rows::Sort,
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

/// Returns the words that [`walk`] reads.
fn walk_words(walk: &Walk) -> Vec<u32> {
    let axes = walk
        .axes
        .iter()
        .map(|axis| axis.map_or(u32::MAX, |axis| axis as u32));
    let steps = walk.steps.iter().map(|&step| step as u32);
    let starts = walk.starts.iter().map(|&start| start as u32);
    axes.chain(steps).chain(starts).collect()
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

/// Returns the words that [`layer`] reads.
fn layer_words(layer: &ConvLayer) -> Vec<u32> {
    let image = &layer.image;
    let is_same = usize::from(image.padding == Padding::Same);
    let [rows, cols] = [layer.dilation_rows, layer.dilation_cols];
    let words = [
        image.stride_rows,
        image.stride_cols,
        is_same,
        rows,
        cols,
        layer.groups,
    ];
    words.map(|word| word as u32).into()
}
