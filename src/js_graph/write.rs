//! Writes nodes of graphs as words.

use crate::error::{Error, Result};
use crate::js_graph::FOLDS;
use crate::lazy::node::{Kind, Rows};
use crate::lazy::structure::Described;
use crate::lazy::view::Walk;
use crate::ops::{ConvLayer, Op, Padding, for_each_op};

/// Writes the indices of results, and nodes.
#[cfg(feature = "js-train")]
pub(crate) fn written(results: &[usize], nodes: &[Described]) -> Result<Vec<u32>> {
    let mut words = Vec::new();
    write_list(&mut words, results);
    for node in nodes {
        write_node(&mut words, node)?;
    }
    Ok(words)
}

/// Writes a node as [`read_node`](super::read_node) reads it.
pub(crate) fn write_node(words: &mut Vec<u32>, node: &Described) -> Result<()> {
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

/// Writes a leaf with its elements.
#[cfg(feature = "js-numeric")]
pub(crate) fn write_leaf(words: &mut Vec<u32>, shape: &[usize], values: &[f32]) {
    words.push(0);
    write_list(words, shape);
    write_list(words, &[]);
    words.push(values.len() as u32);
    words.extend(values.iter().map(|value| value.to_bits()));
}

/// Writes whole numbers after their count.
pub(crate) fn write_list(words: &mut Vec<u32>, numbers: &[usize]) {
    words.push(numbers.len() as u32);
    words.extend(numbers.iter().map(|&number| number as u32));
}

/// Returns the number and the parameters of a kind, as `read_node` reads them.
///
/// # Errors
/// `NoGradient` for a custom operation or reduction, which no tensor of JavaScript has.
fn described(kind: &Kind) -> Result<(u32, Vec<u32>)> {
    Ok(match kind {
        Kind::Elementwise(op) => {
            let index = index_of(op)?;
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

macro_rules! define_index {
    (
        vectors { $( $(#[$vdoc:meta])* $vname:ident $vasync:ident $vjs:ident $vop:ident ($($vin:ident),+) -> $vout:ident $({ $($vp:ident: $vt:ty),+ })? $vclass:ident, $vulp:literal $(, $vsamples:tt)? $(=> $vgradients:tt)?; )* }
        scalars { $( $(#[$sdoc:meta])* $sname:ident $sasync:ident $sjs:ident $sop:ident ($($sin:ident),+) -> $sout:ident $sclass:ident, $sulp:literal; )* }
    ) => {
        /// The operations in the order of the table.
        enum Row {
            $( $vop, )*
        }

        /// Returns the index of an operation in the table.
        ///
        /// # Errors
        /// `NoGradient` for one that no graph of JavaScript has.
        fn index_of(op: &Op) -> Result<usize> {
            let row = match op {
                $( Op::$vop { .. } => Row::$vop, )*
                $( Op::$sop )|* | Op::Custom(_) | Op::CustomReduce(_) | Op::MatmulCached(_) => {
                    return Err(Error::NoGradient { op: op.name() });
                }
            };
            Ok(row as usize)
        }
    };
}
for_each_op!(define_index);

/// Returns the words that `read_node` reads of a view.
fn walk_words(walk: &Walk) -> Vec<u32> {
    let axes = walk
        .axes
        .iter()
        .map(|axis| axis.map_or(u32::MAX, |axis| axis as u32));
    let steps = walk.steps.iter().map(|&step| step as u32);
    let starts = walk.starts.iter().map(|&start| start as u32);
    axes.chain(steps).chain(starts).collect()
}

/// Returns the words that `read_node` reads of a convolution.
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
