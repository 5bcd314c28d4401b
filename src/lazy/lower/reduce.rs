//! Reductions along axes.

use crate::batch::BufferId;
use crate::error::Result;
use crate::lazy::lower::Recording;
use crate::lazy::shape::{reduced, size_of};
use crate::lazy::view::View;
use crate::ops::{AxisFold, Op, ReduceAxis, Reduction};

/// An axis of a buffer whose elements lie in order.
struct Axis {
    len: usize,
    is_reduced: bool,
}

pub(super) fn reduce(
    recording: &mut Recording<'_>,
    fold: AxisFold,
    axes: &[usize],
    keep_dims: bool,
    x: &View,
) -> Result<View> {
    let is_index = matches!(fold, AxisFold::Argmax | AxisFold::Argmin);
    if is_index && axes.iter().all(|&axis| x.shape[axis] == 1) {
        let zero = recording.constant(0.0)?;
        return Ok(zero.repeated(&reduced(&x.shape, axes, keep_dims)));
    }
    let natural = || (0..x.shape.len()).collect();
    // Which index comes first matters where several axes become one.
    let lying = if is_index { None } else { x.dense_order() };
    let order: Vec<usize> = lying.unwrap_or_else(natural);
    let described = order.iter().map(|&axis| Axis {
        len: x.shape[axis],
        is_reduced: axes.contains(&axis),
    });
    let start = recording.in_order(&x.permuted(&order))?;
    let id = reduce_all(recording, fold, start, described.collect())?;
    let rest: Vec<usize> = order
        .into_iter()
        .filter(|axis| !axes.contains(axis))
        .collect();
    let lengths: Vec<usize> = rest.iter().map(|&axis| x.shape[axis]).collect();
    let result = View::dense(id, &lengths);
    Ok(in_place(&result, &rest, axes, keep_dims, x))
}

/// The elements of a row that a step of a custom reduction combines.
const ROW: usize = 256;

/// Records a custom reduction, whose axes become the columns of a matrix.
pub(super) fn custom_reduce(
    recording: &mut Recording<'_>,
    reduction: Reduction,
    axes: &[usize],
    keep_dims: bool,
    x: &View,
) -> Result<View> {
    let rest: Vec<usize> = (0..x.shape.len())
        .filter(|axis| !axes.contains(axis))
        .collect();
    let lengths: Vec<usize> = rest.iter().map(|&axis| x.shape[axis]).collect();
    let rows = size_of(&lengths);
    let matrix = x.permuted(&[&rest, axes].concat());
    let mut id = recording.in_order(&matrix)?;
    let mut step = reduction.tiles([rows, x.size() / rows], [1, ROW]);
    loop {
        id = recording.batch.try_custom_reduce(step, id)?;
        if step.tile_count()[1] == 1 {
            break;
        }
        step = step.again();
    }
    let result = View::dense(id, &lengths);
    Ok(in_place(&result, &rest, axes, keep_dims, x))
}

/// Returns the view of a reduction's result with its axes where those of `x` are; `rest` has the axis of `x` of each.
fn in_place(result: &View, rest: &[usize], axes: &[usize], keep_dims: bool, x: &View) -> View {
    let mut strides = Vec::new();
    for axis in 0..x.shape.len() {
        match rest.iter().position(|&own| own == axis) {
            Some(at) => strides.push(result.strides[at]),
            None if keep_dims => strides.push(0),
            None => {}
        }
    }
    View {
        shape: reduced(&x.shape, axes, keep_dims),
        strides,
        ..*result
    }
}

/// Reduces the axes of a buffer, from the last ones on: neighbours in one operation.
fn reduce_all(
    recording: &mut Recording<'_>,
    fold: AxisFold,
    start: BufferId,
    axes: Vec<Axis>,
) -> Result<BufferId> {
    let mut id = start;
    let mut left: Vec<Axis> = axes.into_iter().filter(|axis| axis.len > 1).collect();
    let size = |axes: &[Axis]| axes.iter().map(|axis| axis.len).product();
    let mut end = left.len();
    while end > 0 {
        if !left[end - 1].is_reduced {
            end -= 1;
            continue;
        }
        let before = left[..end].iter().rposition(|axis| !axis.is_reduced);
        let first = before.map_or(0, |before| before + 1);
        let [outer, len, inner] = [&left[..first], &left[first..end], &left[end..]].map(size);
        id = reduce_middle(recording, id, ReduceAxis::new(fold, outer, len, inner))?;
        left.drain(first..end);
        end = first;
    }
    Ok(id)
}

fn reduce_middle(
    recording: &mut Recording<'_>,
    id: BufferId,
    options: ReduceAxis,
) -> Result<BufferId> {
    let all = options.outer * options.inner == 1;
    let op = match options.fold {
        AxisFold::Sum if all => Op::Sum,
        AxisFold::Mean if all => Op::Mean,
        AxisFold::Max if all => Op::Max,
        AxisFold::Min if all => Op::Min,
        AxisFold::Argmax if all => Op::Argmax,
        _ => Op::ReduceAxis { options },
    };
    Ok(recording.call(op, &[id], &[])?.id)
}
