//! Indices among the inputs of operations: whole numbers that are stored as `f32`.
//!
//! One rule holds for all operations and back-ends. Indices that the host has are checked: values that the caller gave
//! to a method, to a batch or as a program's argument. Indices that a device computed or that are in a buffer are not
//! read by the host: an invalid one gives NaN, or is left out of a sum.

use crate::error::{Error, Result};
use crate::ops::Op;
use crate::ops::shape::number;

/// Returns the input that has indices, and the number that each of them must be below.
pub(crate) fn index_input(op: &Op) -> Option<(usize, usize)> {
    match *op {
        Op::GatherRows { rows, .. } | Op::ScatterRows { rows, .. } => Some((1, rows)),
        Op::TakeAlongRows { cols, .. } => Some((1, cols)),
        _ => None,
    }
}

/// Returns an index as an integer if it is a whole number below `count`.
pub(crate) fn position(index: f32, count: usize) -> Option<usize> {
    // The conversion makes 0 of NaN and of negative numbers, which 0 does not equal. Counts are below its largest number.
    let position = index as u32;
    let is_whole = position as f32 == index;
    let position = position as usize;
    (is_whole && position < count).then_some(position)
}

/// Checks the indices of an operation, where the host has them: `input` returns the elements of an input.
///
/// # Errors
/// `InvalidArgument` with the first invalid index.
pub(crate) fn check_indices<'a>(
    op: &Op,
    input: impl FnOnce(usize) -> Option<&'a [f32]>,
) -> Result<()> {
    let Some((place, count)) = index_input(op) else {
        return Ok(());
    };
    let what = op.inputs().get(place).copied().unwrap_or("indices");
    check_all(what, input(place).unwrap_or_default(), count)
}

/// Checks that all values are indices below `count`.
///
/// # Errors
/// `InvalidArgument` with the first value that is not such an index.
pub(crate) fn check_all(what: &'static str, values: &[f32], count: usize) -> Result<()> {
    let wrong = |&index: &f32| position(index, count).is_none();
    match values.iter().position(wrong) {
        None => Ok(()),
        Some(at) => Err(beyond(what, values[at], Some(at), count)),
    }
}

/// Creates the error about an invalid index, with its position among the indices.
fn beyond(what: &'static str, index: f32, at: Option<usize>, count: usize) -> Error {
    let at = at.map_or_else(String::new, |at| format!(" at position {at}"));
    let requirement = match count {
        0 => "absent, as there is nothing to choose from".to_owned(),
        _ => format!("whole numbers from 0 and below {count}"),
    };
    Error::invalid(what, number(index) + &at, requirement)
}

/// The value by which a list of indices exceeds a limit, if it does. It is also known after the list was moved to a
/// device.
#[cfg_attr(target_arch = "wasm32", allow(dead_code))] // Tensors in JavaScript are of their own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WorstIndex {
    /// The first value that is an index of nothing, or else the largest one, with its position.
    worst: Option<(f32, usize)>,
}

#[cfg_attr(target_arch = "wasm32", allow(dead_code))]
impl WorstIndex {
    pub(crate) fn of(values: &[f32]) -> Self {
        let mut worst: Option<(f32, usize)> = None;
        for (at, &index) in values.iter().enumerate() {
            // Larger numbers are indices of nothing: see `MAX_EXACT_INDEX`.
            if index as u32 as f32 != index {
                worst = Some((index, at));
                break;
            }
            if worst.is_none_or(|(most, _)| index > most) {
                worst = Some((index, at));
            }
        }
        Self { worst }
    }

    /// Checks that all values are indices below `count`; their positions are known if they are `in_order`.
    ///
    /// # Errors
    /// `InvalidArgument` with a value that is not such an index.
    pub(crate) fn check(self, what: &'static str, count: usize, in_order: bool) -> Result<()> {
        match self.worst {
            Some((index, at)) if position(index, count).is_none() => {
                Err(beyond(what, index, in_order.then_some(at), count))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_index_decides_for_every_limit() {
        for (values, least) in [
            (&[][..], Some(0)),
            (&[0.0], Some(1)),
            (&[3.0, 7.0, -0.0, 7.0], Some(8)),
            (&[1.0, 0.5, 9.0], None),
            (&[1.0, f32::NAN], None),
            (&[-1.0], None),
            (&[f32::INFINITY], None),
        ] {
            let worst = WorstIndex::of(values);
            for count in 0..10 {
                let expected = check_all("indices", values, count).is_ok();
                assert_eq!(worst.check("indices", count, true).is_ok(), expected);
                assert_eq!(expected, least.is_some_and(|least| count >= least));
            }
        }
        let error = WorstIndex::of(&[1.0, 7.0]).check("indices", 2, true);
        let message = "`indices` is 7 at position 1, but must be whole numbers from 0 and below 2";
        assert_eq!(error.unwrap_err().to_string(), message);
    }
}
