//! Gradients of views.

use crate::error::{Error, Result};
use crate::lazy::value::Value;
use crate::lazy::view::Walk;

/// Returns the gradient of a shape that a view walks along: that of the view at the elements that it shows, and zeros
/// elsewhere.
///
/// # Errors
/// `NoGradient` for a view that walks along one axis twice, which no method records.
pub(super) fn unwalked<'t>(g: Value<'t>, walk: &Walk, shape: &[usize]) -> Result<Value<'t>> {
    let in_order = unpermuted(g, walk, shape.len())?;
    let lens: Vec<usize> = (0..shape.len())
        .map(|axis| shown(walk, axis).map_or(1, |at| g.shape()[at]))
        .collect();
    let mut placed = in_order.reshape(&lens);
    for (axis, &len) in shape.iter().enumerate() {
        let step = shown(walk, axis).map_or(1, |at| walk.steps[at]);
        placed = unsliced(placed, axis, [walk.starts[axis], len], step);
    }
    Ok(placed)
}

/// Returns the axis of a view that walks along an axis below.
fn shown(walk: &Walk, below: usize) -> Option<usize> {
    walk.axes.iter().position(|&axis| axis == Some(below))
}

/// Sums along repeated axes, and brings the others into the order of the axes below.
fn unpermuted<'t>(g: Value<'t>, walk: &Walk, rank: usize) -> Result<Value<'t>> {
    let repeated = |&axis: &usize| walk.axes[axis].is_none();
    let gone: Vec<usize> = (0..walk.axes.len()).filter(repeated).collect();
    let left: Vec<usize> = walk.axes.iter().copied().flatten().collect();
    let mut order = Vec::new();
    for below in 0..rank {
        order.extend(left.iter().position(|&axis| axis == below));
    }
    if order.len() < left.len() {
        return Err(Error::NoGradient { op: "view" });
    }
    let sums = if gone.is_empty() {
        g
    } else {
        g.sum(&gone, false)
    };
    if order.is_sorted() {
        return Ok(sums);
    }
    Ok(sums.permute(&order))
}

/// Puts the elements of an axis where a slice of an axis of `len` elements has them.
fn unsliced(g: Value<'_>, axis: usize, [start, len]: [usize; 2], step: isize) -> Value<'_> {
    let count = g.shape()[axis];
    let (mut g, distance) = (g, step.unsigned_abs());
    let covered = (count - 1) * distance + 1;
    let first = if step < 0 && count > 1 {
        g = g.flip(&[axis]);
        start + 1 - covered
    } else {
        start
    };
    g.spread(axis, distance)
        .pad(axis, first, len - first - covered)
}
