//! Indices among the inputs of operations: whole numbers that are stored as `f32`.

use crate::error::{Error, Result};
use crate::ops::Op;
use crate::ops::shape::number;

/// Returns the input that has indices, and the number that each of them must be below.
pub(crate) fn index_input(op: &Op) -> Option<(usize, usize)> {
    match *op {
        Op::GatherRows { rows, .. } => Some((1, rows)),
        Op::TakeAlongRows { cols, .. } => Some((1, cols)),
        _ => None,
    }
}

/// Returns an index as an integer if it is a whole number below `count`.
pub(crate) fn position(index: f32, count: usize) -> Option<usize> {
    let whole = index >= 0.0 && index.fract() == 0.0;
    // Beyond all integers the conversion saturates.
    let position = index as usize;
    (whole && position < count).then_some(position)
}

/// Checks the indices of an operation, where the host has them: `input` returns the elements of an input.
///
/// # Errors
/// `InvalidArgument` with the first index that is none.
pub(crate) fn check_indices<'a>(
    op: &Op,
    input: impl FnOnce(usize) -> Option<&'a [f32]>,
) -> Result<()> {
    let Some((place, count)) = index_input(op) else {
        return Ok(());
    };
    let mut indices = input(place).unwrap_or_default().iter();
    match indices.find(|&&index| position(index, count).is_none()) {
        None => Ok(()),
        Some(&index) => {
            let what = op.inputs().get(place).copied().unwrap_or("indices");
            let requirement = format!("whole numbers from 0 and below {count}");
            Err(Error::invalid(what, number(index), requirement))
        }
    }
}
