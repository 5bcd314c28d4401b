//! How each kind of node becomes a view.

use crate::error::Result;
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
    match (kind, inputs) {
        (Kind::Constant(value), _) => recording.constant(*value),
        (Kind::Elementwise(op), _) => elementwise(recording, op, inputs, shape),
        (Kind::Concat { axis }, _) => concat(recording, inputs, *axis),
        (Kind::Rows { axis, rows }, [x, others @ ..]) => {
            along_axis(recording, *rows, *axis, x, others)
        }
        (Kind::View(walk), [x]) => Ok(x.walked(shape, walk)),
        (Kind::Reshape, [x]) => reshape(recording, x, shape),
        (
            Kind::Reduce {
                fold,
                axes,
                keep_dims,
            },
            [x],
        ) => reduce::reduce(recording, *fold, axes, *keep_dims, x),
        (
            Kind::CustomReduce {
                reduction,
                axes,
                keep_dims,
            },
            [x],
        ) => reduce::custom_reduce(recording, *reduction, axes, *keep_dims, x),
        (Kind::TopK { k }, [x]) => top_k(recording, x, *k, shape),
        (Kind::Matmul, [a, b]) => matmul::matmul(recording, a, b, shape),
        (Kind::Convolve(options), [x, weights]) => {
            let ids = [recording.in_order(x)?, recording.in_order(weights)?];
            let options = *options;
            recording.call(Op::ConvolveLayer { options }, &ids, shape)
        }
        (Kind::Gather { axis }, [x, indices]) => gather(recording, x, indices, *axis),
        (Kind::Take, [x, indices]) => take(recording, x, indices, shape),
        (Kind::UnpackBytes, [x]) => in_order(recording, Op::UnpackBytes { stride: 1 }, x, shape),
        (Kind::PackBytes, [x]) => in_order(recording, Op::PackBytes { stride: 1 }, x, shape),
        // The other kinds have the inputs that stand above.
        _ => recording.range(size_of(shape)),
    }
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
    Ok(views.swap_remove(0))
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
