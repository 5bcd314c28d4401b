//! The rules by which each kind of node becomes a view.

use crate::error::Result;
use crate::lazy::lower::reduce::Reduced;
use crate::lazy::lower::{Lowering, matmul, reduce};
use crate::lazy::node::{Kind, Rows};
use crate::lazy::shape::size_of;
use crate::lazy::view::View;
use crate::ops::Op;
use crate::ops::axes::PerAxis;
use crate::ops::shape::check_len;

/// Checks that a node has the number of inputs that its kind takes.
///
/// # Errors
/// `LengthMismatch` for another number of inputs.
pub(in crate::lazy) fn check_inputs(kind: &Kind, actual: usize) -> Result<()> {
    let expected = match kind {
        Kind::Constant(_) | Kind::Range => 0,
        Kind::Elementwise(op) => op.inputs().len(),
        Kind::Concat { .. } => actual.max(1),
        Kind::Rows { rows, .. } => rows.op(1, 1).inputs().len(),
        Kind::View(_)
        | Kind::Reshape
        | Kind::StopGradient
        | Kind::Reduce { .. }
        | Kind::CustomReduce { .. }
        | Kind::TopK { .. }
        | Kind::UnpackBytes { .. }
        | Kind::PackBytes { .. } => 1,
        Kind::Matmul | Kind::Convolve(_) | Kind::Gather { .. } | Kind::Scatter | Kind::Take => 2,
    };
    check_len("inputs", expected, actual)
}

/// Lowers a node whose inputs were checked; returns the view of its result.
pub(super) fn lower(
    lowering: &mut Lowering<'_>,
    kind: &Kind,
    inputs: &[View],
    shape: &[usize],
) -> View {
    match kind {
        Kind::Constant(value) => lowering.constant(*value),
        Kind::Range => lowering.range(size_of(shape)),
        Kind::Elementwise(op) => elementwise(lowering, op, inputs, shape),
        Kind::Concat { axis } => concat(lowering, inputs, *axis),
        Kind::Rows { axis, rows } => along_axis(lowering, *rows, *axis, inputs),
        Kind::View(walk) => inputs[0].walked(shape, walk),
        Kind::StopGradient => inputs[0],
        Kind::Reshape => reshape(lowering, &inputs[0], shape),
        Kind::Reduce {
            fold,
            axes,
            keep_dims,
        } => {
            let keep_dims = *keep_dims;
            reduce::reduce(lowering, *fold, Reduced { axes, keep_dims }, &inputs[0])
        }
        Kind::CustomReduce {
            reduction,
            axes,
            keep_dims,
        } => {
            let keep_dims = *keep_dims;
            reduce::custom_reduce(
                lowering,
                *reduction,
                Reduced { axes, keep_dims },
                &inputs[0],
            )
        }
        Kind::TopK { k } => {
            let [rows, cols] = rows_of(&inputs[0]);
            lowering.call(Op::TopKRows { rows, cols, k: *k }, inputs, shape)
        }
        Kind::Matmul => matmul::matmul(lowering, &inputs[0], &inputs[1], shape),
        Kind::Convolve(options) => {
            let options = *options;
            lowering.call(Op::ConvolveLayer { options }, inputs, shape)
        }
        Kind::Gather { axis } => gather(lowering, &inputs[0], &inputs[1], *axis, shape),
        Kind::Scatter => {
            let (rows, cols) = (shape[0], shape[1]);
            lowering.call(Op::ScatterRows { rows, cols }, inputs, shape)
        }
        Kind::Take => {
            let [rows, cols] = rows_of(&inputs[0]);
            let k = shape.last().copied().unwrap_or(1);
            lowering.call(Op::TakeAlongRows { rows, cols, k }, inputs, shape)
        }
        Kind::UnpackBytes { stride } => {
            lowering.call(Op::UnpackBytes { stride: *stride }, inputs, shape)
        }
        Kind::PackBytes { stride } => {
            lowering.call(Op::PackBytes { stride: *stride }, inputs, shape)
        }
    }
}

/// Returns the rows and columns of a view whose last axis has the columns.
fn rows_of(x: &View) -> [usize; 2] {
    let cols = x.axes.last().map_or(1, |axis| axis.len);
    [x.axes.size() / cols, cols]
}

/// Returns the axes that an elementwise operation walks, in order: without those along which all operands repeat, and
/// in the order in which the first operand that repeats nowhere lies in memory.
fn walked(views: &[View], shape: &[usize]) -> PerAxis<usize> {
    let mut order = PerAxis::all(shape.len());
    if !views.iter().any(View::is_dense) {
        let mut whole = views.iter().filter(|view| view.len == size_of(shape));
        order = whole.find_map(View::dense_order).unwrap_or(order);
    }
    let mut walked = PerAxis::default();
    for &axis in order.iter() {
        if shape[axis] > 1 && views.iter().any(|view| view.axes[axis].stride != 0) {
            walked.push(axis);
        }
    }
    walked
}

fn elementwise(lowering: &mut Lowering<'_>, op: &Op, inputs: &[View], shape: &[usize]) -> View {
    let mut views = inputs.to_vec();
    for view in &mut views {
        *view = view.repeated(shape);
    }
    let order = walked(&views, shape);
    for view in &mut views {
        *view = view.permuted(&order);
    }
    let mut axes = PerAxis::repeating(shape);
    let mut lens = PerAxis::default();
    for &axis in order.iter() {
        lens.push(shape[axis]);
    }
    let result = lowering.call(op.clone(), &views, &lens);
    for (&axis, &own) in order.iter().zip(result.axes.iter()) {
        axes[axis] = own;
    }
    View { axes, ..result }
}

/// Lowers an operation of rows along one axis of the first input, which becomes the last one.
fn along_axis(lowering: &mut Lowering<'_>, rows: Rows, axis: usize, inputs: &[View]) -> View {
    let mut inputs = inputs.to_vec();
    let x = &mut inputs[0];
    let last = x.axes.len() - 1;
    x.axes.move_to(axis, last);
    let ([count, cols], shape) = (rows_of(x), x.axes.shape());
    let mut result = lowering.call(rows.op(count, cols), &inputs, &shape);
    result.axes.move_to(last, axis);
    result
}

/// Returns the view of another shape; copies the elements if they do not lie for it.
pub(super) fn reshape(lowering: &mut Lowering<'_>, x: &View, shape: &[usize]) -> View {
    let view = x.restrided(shape);
    view.unwrap_or_else(|| View::dense(lowering.in_order(x), shape))
}

/// Joins all tensors pairwise, so that each element is copied as often as the number of tensors has binary digits.
fn concat(lowering: &mut Lowering<'_>, inputs: &[View], axis: usize) -> View {
    if let [alone] = inputs {
        return *alone;
    }
    let (a, b) = inputs.split_at(inputs.len().next_power_of_two() / 2);
    let inputs = [concat(lowering, a, axis), concat(lowering, b, axis)];
    let [mut shape, other] = [&inputs[0], &inputs[1]].map(|view| view.axes.shape());
    // The rows of two matrices.
    let inner = size_of(&shape[axis + 1..]);
    let op = Op::ConcatRows {
        rows: size_of(&shape[..axis]),
        a_cols: shape[axis] * inner,
        b_cols: other[axis] * inner,
    };
    shape[axis] += other[axis];
    lowering.call(op, &inputs, &shape)
}

fn gather(
    lowering: &mut Lowering<'_>,
    x: &View,
    indices: &View,
    axis: usize,
    shape: &[usize],
) -> View {
    let rows = x.axes[axis].len;
    let cols = x.axes.size() / rows;
    let op = Op::GatherRows { rows, cols };
    let mut x = *x;
    x.axes.move_to(axis, 0);
    // The axes of the indices stand before the others in the result, and in the place of `axis` afterwards.
    let count = indices.axes.len();
    let mut axes = PerAxis::repeating(shape);
    for k in 0..count {
        axes.move_to(axis + k, k);
    }
    let mut found = lowering.call(op, &[x, *indices], &axes.shape());
    for k in (0..count).rev() {
        found.axes.move_to(k, axis + k);
    }
    found
}

#[cfg(all(test, not(target_arch = "wasm32")))]
mod tests {
    use super::*;
    use crate::lazy::view::Walk;
    use crate::ops::{AxisFold, Conv2d, ConvLayer};

    /// A node that lost its inputs must not compute another one's numbers.
    #[test]
    fn kinds_without_their_inputs_are_errors() {
        let kinds = [
            Kind::View(Walk {
                axes: vec![Some(0)],
                steps: vec![1],
                starts: vec![0],
            }),
            Kind::Reshape,
            Kind::StopGradient,
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
            Kind::Scatter,
            Kind::TopK { k: 1 },
            Kind::Take,
            Kind::UnpackBytes { stride: 1 },
            Kind::PackBytes { stride: 1 },
        ];
        for kind in kinds {
            let code = check_inputs(&kind, 0).err().map(|error| error.code());
            assert_eq!(code, Some("LENGTH_MISMATCH"), "{kind:?}");
        }
    }
}
