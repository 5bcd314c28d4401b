//! Reads nodes of graphs from words.

use std::sync::Arc;

use crate::error::Result;
use crate::js_graph::{FOLDS, Words};
use crate::lazy::node::{Kind, Rows};
use crate::lazy::structure::Described;
use crate::lazy::view::Walk;
use crate::ops::shape::check_limit;
use crate::ops::{
    Attention, Conv2d, ConvLayer, MAX_AXES, Matmul, Op, Padding, Rearrange, ReduceAxis, Rope,
    for_each_op,
};

/// Reads a node of a graph of `count` nodes so far: its kind, and lists of the lengths of its shape, its inputs and its
/// parameters.
pub(crate) fn read_node(
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
        1 => elementwise(&mut parameters),
        _ => {
            let shapes: Vec<Vec<usize>> = inputs.iter().map(|&input| shape_of(input)).collect();
            kind_of(kind, &mut parameters, &shapes, shape.len())
        }
    };
    parameters.check()?;
    let operation = Some((Arc::new(kind), inputs));
    Ok(Described { shape, operation })
}

/// A parameter of an operation in a graph, where only elementwise operations and their numbers stand.
trait Scalar: Sized {
    fn read(words: &mut Words<'_>) -> Option<Self>;
}

impl Scalar for f32 {
    fn read(words: &mut Words<'_>) -> Option<Self> {
        Some(words.float())
    }
}

macro_rules! no_scalars {
    ($($of_another_operation:ty)+) => { $(
        impl Scalar for $of_another_operation {
            fn read(_: &mut Words<'_>) -> Option<Self> {
                None
            }
        }
    )+ };
}
no_scalars!(usize Attention Conv2d ConvLayer Matmul Rearrange ReduceAxis Rope);

macro_rules! define_elementwise {
    (
        vectors { $( $(#[$vdoc:meta])* $vname:ident $vasync:ident $vjs:ident $vop:ident ($($vin:ident),+) -> $vout:ident $({ $($vp:ident: $vt:ty),+ })? $vclass:ident, $vulp:literal $(, $vsamples:tt)? $(=> $vgradients:tt)?; )* }
        scalars { $( $(#[$sdoc:meta])* $sname:ident $sasync:ident $sjs:ident $sop:ident ($($sin:ident),+) -> $sout:ident $sclass:ident, $sulp:literal; )* }
    ) => {
        /// Functions that return the operation of each row with the numbers that follow; `None` if it is not elementwise.
        const READERS: &[fn(&mut Words<'_>) -> Option<Op>] = &[
            $( |_words| Some(Op::$vop $({ $($vp: <$vt>::read(_words)?),+ })?), )*
        ];
    };
}
for_each_op!(define_elementwise);

/// Reads the index of an elementwise operation in the op table, and its parameters.
fn elementwise(words: &mut Words<'_>) -> Kind {
    let index = words.below(READERS.len());
    let op = READERS.get(index).and_then(|read| read(words));
    let op = op.filter(Op::is_elementwise).unwrap_or_else(|| {
        words.wrong = Some((index, READERS.len()));
        Op::Neg
    });
    Kind::Elementwise(op)
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
