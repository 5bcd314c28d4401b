//! How each kind of node becomes a view.

use crate::error::{Error, Result};
use crate::lazy::lower::{Recording, matmul, reduce};
use crate::lazy::node::{Kind, Rows};
use crate::lazy::shape::size_of;
use crate::lazy::view::{View, inverse};
use crate::ops::Op;

/// Records the operations of a node; returns the view of its result.
pub(super) fn lower(
    recording: &mut Recording<'_>,
    kind: &Kind,
    inputs: &[&View],
    shape: &[usize],
) -> Result<View> {
    match kind {
        Kind::Constant(value) => recording.constant(*value),
        Kind::Range => recording.range(size_of(shape)),
        Kind::Elementwise(op) => elementwise(recording, op, inputs, shape),
        Kind::Concat { axis } => concat(recording, inputs, *axis),
        Kind::Rows { axis, rows } => {
            let (x, others) = first(inputs)?;
            along_axis(recording, *rows, *axis, x, others)
        }
        Kind::View(walk) => {
            let [x] = exactly(inputs)?;
            Ok(x.walked(shape, walk))
        }
        Kind::Reshape => {
            let [x] = exactly(inputs)?;
            reshape(recording, x, shape)
        }
        Kind::Reduce {
            fold,
            axes,
            keep_dims,
        } => {
            let [x] = exactly(inputs)?;
            reduce::reduce(recording, *fold, axes, *keep_dims, x)
        }
        Kind::CustomReduce {
            reduction,
            axes,
            keep_dims,
        } => {
            let [x] = exactly(inputs)?;
            reduce::custom_reduce(recording, *reduction, axes, *keep_dims, x)
        }
        Kind::TopK { k } => {
            let [x] = exactly(inputs)?;
            top_k(recording, x, *k, shape)
        }
        Kind::Matmul => {
            let [a, b] = exactly(inputs)?;
            matmul::matmul(recording, a, b, shape)
        }
        Kind::Convolve(options) => {
            let [x, weights] = exactly(inputs)?;
            let ids = [recording.in_order(x)?, recording.in_order(weights)?];
            let options = *options;
            recording.call(Op::ConvolveLayer { options }, &ids, shape)
        }
        Kind::Gather { axis } => {
            let [x, indices] = exactly(inputs)?;
            gather(recording, x, indices, *axis)
        }
        Kind::Take => {
            let [x, indices] = exactly(inputs)?;
            take(recording, x, indices, shape)
        }
        Kind::UnpackBytes { stride } => {
            let [x] = exactly(inputs)?;
            in_order(recording, Op::UnpackBytes { stride: *stride }, x, shape)
        }
        Kind::PackBytes { stride } => {
            let [x] = exactly(inputs)?;
            in_order(recording, Op::PackBytes { stride: *stride }, x, shape)
        }
    }
}

/// Returns the inputs of a kind that takes `N`.
///
/// # Errors
/// `LengthMismatch` of another number of inputs.
fn exactly<'a, const N: usize>(inputs: &[&'a View]) -> Result<[&'a View; N]> {
    let count = inputs.len();
    inputs.try_into().or_else(|_| miscounted(N, count))
}

/// Returns the first input and the others.
///
/// # Errors
/// `LengthMismatch` without inputs.
fn first<'a, 'b>(inputs: &'b [&'a View]) -> Result<(&'a View, &'b [&'a View])> {
    match inputs {
        [x, others @ ..] => Ok((x, others)),
        [] => miscounted(1, 0),
    }
}

/// Returns the error of a node whose inputs are not as many as its kind takes.
fn miscounted<T>(expected: usize, actual: usize) -> Result<T> {
    Err(Error::LengthMismatch {
        what: "inputs",
        expected,
        actual,
        reason: "",
    })
}

/// Returns the axes that an elementwise operation walks, in order: without those along which all operands repeat, and
/// in the order in which the first operand that repeats nowhere lies in memory.
fn walked(views: &[View], shape: &[usize]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..shape.len()).collect();
    if !views.iter().any(View::is_dense) {
        let mut whole = views.iter().filter(|view| view.len == size_of(shape));
        order = whole.find_map(View::dense_order).unwrap_or(order);
    }
    order.retain(|&axis| shape[axis] > 1 && views.iter().any(|view| view.strides[axis] != 0));
    order
}

fn elementwise(
    recording: &mut Recording<'_>,
    op: &Op,
    inputs: &[&View],
    shape: &[usize],
) -> Result<View> {
    let views: Vec<View> = inputs.iter().map(|view| view.repeated(shape)).collect();
    let axes = walked(&views, shape);
    let views: Vec<View> = views.iter().map(|view| view.permuted(&axes)).collect();
    let ids = recording.in_order_all(&views)?;
    let lengths: Vec<usize> = axes.iter().map(|&axis| shape[axis]).collect();
    let result = recording.call(op.clone(), &ids, &lengths)?;
    let mut strides = vec![0; shape.len()];
    for (&axis, &stride) in axes.iter().zip(&result.strides) {
        strides[axis] = stride;
    }
    Ok(View {
        shape: shape.to_vec(),
        strides,
        ..result
    })
}

/// Records an operation of rows along one axis, which becomes the last one.
fn along_axis(
    recording: &mut Recording<'_>,
    rows: Rows,
    axis: usize,
    x: &View,
    others: &[&View],
) -> Result<View> {
    let mut order: Vec<usize> = (0..x.shape.len()).filter(|&own| own != axis).collect();
    order.push(axis);
    let view = x.permuted(&order);
    let mut ids = vec![recording.in_order(&view)?];
    for other in others {
        ids.push(recording.in_order(other)?);
    }
    let cols = x.shape[axis];
    let op = rows.op(view.size() / cols, cols);
    let result = recording.call(op, &ids, &view.shape)?;
    Ok(result.permuted(&inverse(&order)))
}

/// Returns the view of another shape; copies the elements if they do not lie for it.
pub(super) fn reshape(recording: &mut Recording<'_>, x: &View, shape: &[usize]) -> Result<View> {
    match x.restrided(shape) {
        Some(view) => Ok(view),
        None => Ok(View::dense(recording.in_order(x)?, shape)),
    }
}

/// Joins all tensors pairwise, so that each element is copied as often as the number of tensors has binary digits.
fn concat(recording: &mut Recording<'_>, inputs: &[&View], axis: usize) -> Result<View> {
    let mut views: Vec<View> = inputs.iter().map(|&view| view.clone()).collect();
    while views.len() > 1 {
        let mut joined = Vec::with_capacity(views.len().div_ceil(2));
        for pair in views.chunks(2) {
            joined.push(match pair {
                [a, b] => join(recording, a, b, axis)?,
                alone => alone[0].clone(),
            });
        }
        views = joined;
    }
    views.pop().map_or_else(|| miscounted(1, 0), Ok)
}

/// Joins two tensors along an axis: the rows of two matrices.
fn join(recording: &mut Recording<'_>, a: &View, b: &View, axis: usize) -> Result<View> {
    let inner = size_of(&a.shape[axis + 1..]);
    let op = Op::ConcatRows {
        rows: size_of(&a.shape[..axis]),
        a_cols: a.shape[axis] * inner,
        b_cols: b.shape[axis] * inner,
    };
    let ids = [recording.in_order(a)?, recording.in_order(b)?];
    let mut shape = a.shape.clone();
    shape[axis] += b.shape[axis];
    recording.call(op, &ids, &shape)
}

fn gather(recording: &mut Recording<'_>, x: &View, indices: &View, axis: usize) -> Result<View> {
    let mut order: Vec<usize> = (0..x.shape.len()).filter(|&own| own != axis).collect();
    order.insert(0, axis);
    let view = x.permuted(&order);
    let ids = [recording.in_order(&view)?, recording.in_order(indices)?];
    let rest = &view.shape[1..];
    let (rows, cols) = (x.shape[axis], size_of(rest));
    let shape = [&indices.shape, rest].concat();
    let found = recording.call(Op::GatherRows { rows, cols }, &ids, &shape)?;
    // The axes of the indices stand before the others; they belong in the place of `axis`.
    let count = indices.shape.len();
    let mut order: Vec<usize> = (count..shape.len()).collect();
    order.splice(axis..axis, 0..count);
    Ok(found.permuted(&order))
}

/// Records an operation of all elements in order.
fn in_order(recording: &mut Recording<'_>, op: Op, x: &View, shape: &[usize]) -> Result<View> {
    let id = recording.in_order(x)?;
    recording.call(op, &[id], shape)
}

fn top_k(recording: &mut Recording<'_>, x: &View, k: usize, shape: &[usize]) -> Result<View> {
    let cols = x.shape.last().copied().unwrap_or(1);
    let rows = x.size() / cols;
    let id = recording.in_order(x)?;
    recording.call(Op::TopKRows { rows, cols, k }, &[id], shape)
}

fn take(recording: &mut Recording<'_>, x: &View, indices: &View, shape: &[usize]) -> Result<View> {
    let cols = x.shape.last().copied().unwrap_or(1);
    let k = shape.last().copied().unwrap_or(1);
    let rows = x.size() / cols;
    let ids = [recording.in_order(x)?, recording.in_order(indices)?];
    recording.call(Op::TakeAlongRows { rows, cols, k }, &ids, shape)
}

#[cfg(all(test, not(target_arch = "wasm32")))]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::batch::GpuCommandBatch;
    use crate::device::{Backend, GpuDevice};
    use crate::lazy::view::Walk;
    use crate::ops::{AxisFold, Conv2d, ConvLayer};

    /// A node that lost its inputs must not compute another one's numbers.
    #[test]
    fn kinds_without_their_inputs_are_errors() -> Result<()> {
        let kinds = [
            Kind::View(Walk {
                axes: vec![Some(0)],
                steps: vec![1],
                starts: vec![0],
            }),
            Kind::Reshape,
            Kind::Reduce {
                fold: AxisFold::Sum,
                axes: vec![0],
                keep_dims: false,
            },
            Kind::Rows {
                axis: 0,
                rows: Rows::Softmax,
            },
            Kind::Matmul,
            Kind::Convolve(ConvLayer::new(Conv2d::valid(1, 1, 1, 1), 1, 1)),
            Kind::Concat { axis: 0 },
            Kind::Gather { axis: 0 },
            Kind::TopK { k: 1 },
            Kind::Take,
            Kind::UnpackBytes { stride: 1 },
            Kind::PackBytes { stride: 1 },
        ];
        let device = GpuDevice::builder().backend(Backend::Simd).build()?;
        let mut batch = GpuCommandBatch::new(device);
        let mut recording = Recording {
            batch: &mut batch,
            shared: HashMap::new(),
        };
        for kind in kinds {
            let error = lower(&mut recording, &kind, &[], &[2]).err();
            let code = error.map(|error| error.code());
            assert_eq!(code, Some("LENGTH_MISMATCH"), "{kind:?}");
        }
        Ok(())
    }
}
