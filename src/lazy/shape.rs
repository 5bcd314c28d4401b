//! Shapes: the lengths of axes; the last axis varies fastest. This module does not depend on tensors or devices.

use crate::error::{Error, Result};
use crate::ops::MAX_AXES;
use crate::ops::shape::{check_limit, overflow, volume_of};

/// Creates an error of shapes that names the operation.
pub(super) fn mismatch(op: &'static str, message: String) -> Error {
    Error::ShapeMismatch { op, message }
}

/// Returns the number of elements of a checked shape.
pub(super) fn size_of(shape: &[usize]) -> usize {
    // Lengths beside a zero may be too large to multiply.
    if shape.contains(&0) {
        return 0;
    }
    shape.iter().product()
}

/// Checks that a shape that the caller gave has few enough axes and elements.
pub(super) fn check_shape(shape: &[usize]) -> Result<()> {
    check_shape_of("tensor", shape)
}

/// Checks that the shape of a result has few enough axes and elements.
pub(super) fn check_result(shape: &[usize]) -> Result<()> {
    check_shape_of("result", shape)
}

fn check_shape_of(what: &'static str, shape: &[usize]) -> Result<()> {
    check_limit("the number of axes", shape.len(), MAX_AXES)?;
    if !shape.contains(&0) && volume_of(shape).is_none() {
        return Err(overflow(what, shape));
    }
    // Places on an axis are also counted from its end, as negative numbers.
    shape.iter().try_for_each(|&length| check_axis(length))
}

/// Checks that the indices of an axis of this length are numbers with a sign.
pub(super) fn check_axis(length: usize) -> Result<()> {
    check_limit("the length of an axis", length, isize::MAX as usize)
}

/// Returns the shape that two shapes broadcast to; `None` if they do not.
fn pair(a: &[usize], b: &[usize]) -> Option<Vec<usize>> {
    let rank = a.len().max(b.len());
    let length = |shape: &[usize], axis: usize| match (axis + shape.len()).checked_sub(rank) {
        Some(own) => shape[own],
        None => 1,
    };
    let both = |axis| match (length(a, axis), length(b, axis)) {
        (m, n) if m == n || n == 1 => Some(m),
        (1, n) => Some(n),
        _ => None,
    };
    (0..rank).map(both).collect()
}

/// A shape with the name of the argument that has it.
pub(super) type Named<'a> = (&'static str, &'a [usize]);

/// Returns the shape that all of the named shapes broadcast to, by `NumPy`'s rules.
pub(super) fn broadcast(op: &'static str, named: &[Named<'_>]) -> Result<Vec<usize>> {
    let mut result = Vec::new();
    for (at, &(name, shape)) in named.iter().enumerate() {
        result = pair(&result, shape).ok_or_else(|| {
            let beside = named[..at].last().map_or("", |(first, _)| first);
            let other = format!("{result:?} of `{beside}`");
            let has = format!("`{name}` has shape {shape:?}");
            mismatch(op, format!("{has}, which does not broadcast with {other}"))
        })?;
    }
    check_result(&result)?;
    Ok(result)
}

/// Returns the shape that replaces `from`, with a length of −1 computed. Both must have the same number of elements.
pub(super) fn reshaped(from: &[usize], target: &[isize]) -> Result<Vec<usize>> {
    let shape = with_computed_length(from, target)?;
    check_shape(&shape)?;
    let (size, own) = (size_of(&shape), size_of(from));
    if size == own {
        return Ok(shape);
    }
    let has = format!("{shape:?} has {size} elements");
    Err(mismatch(
        "reshape",
        format!("{has}, but shape {from:?} has {own}"),
    ))
}

/// Replaces a length of −1 so that the number of elements stays the same.
fn with_computed_length(from: &[usize], target: &[isize]) -> Result<Vec<usize>> {
    let unknown = target.iter().position(|&length| length == -1);
    let mut shape = Vec::with_capacity(target.len());
    for (axis, &length) in target.iter().enumerate() {
        let length = if Some(axis) == unknown { 1 } else { length };
        shape.push(usize::try_from(length).map_err(|_| invalid_length(target, length))?);
    }
    let Some(axis) = unknown else {
        check_shape(&shape)?;
        return Ok(shape);
    };
    check_limit("the number of axes", shape.len(), MAX_AXES)?;
    let own = size_of(from);
    match volume_of(&shape) {
        Some(rest) if rest > 0 && own.is_multiple_of(rest) => shape[axis] = own / rest,
        _ => {
            let has = format!("shape {from:?} of {own} elements");
            let message = format!("{has} does not divide into {target:?}");
            return Err(mismatch("reshape", message));
        }
    }
    Ok(shape)
}

fn invalid_length(target: &[isize], length: isize) -> Error {
    let requirement = format!("at least 0, or −1 once, in {target:?}");
    Error::invalid("shape", length.to_string(), requirement)
}

/// Returns a shape without some axes, or with the length 1 in their place.
pub(super) fn reduced(shape: &[usize], axes: &[usize], keep_dims: bool) -> Vec<usize> {
    let lengths = shape.iter().enumerate();
    let left = lengths.filter_map(|(axis, &length)| {
        if axes.contains(&axis) {
            keep_dims.then_some(1)
        } else {
            Some(length)
        }
    });
    left.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_broadcast_as_in_numpy() {
        let both = |a: &[usize], b: &[usize]| broadcast("add", &[("a", a), ("b", b)]);
        assert_eq!(both(&[2, 1], &[3]), Ok(vec![2, 3]));
        assert_eq!(both(&[], &[4, 0]), Ok(vec![4, 0]));
        assert_eq!(both(&[1], &[0]), Ok(vec![0]));
        let error = both(&[2, 3], &[3, 2]).expect_err("other lengths");
        let message = "add: `b` has shape [3, 2], which does not broadcast with [2, 3] of `a`";
        assert_eq!(error.to_string(), message);
    }

    #[test]
    fn one_length_is_computed() {
        assert_eq!(reshaped(&[4, 6], &[3, -1]), Ok(vec![3, 8]));
        assert_eq!(reshaped(&[0, 6], &[-1, 6]), Ok(vec![0, 6]));
        assert_eq!(reshaped(&[], &[-1]), Ok(vec![1]));
        for wrong in [&[5, -1][..], &[-1, -1], &[0, -1], &[-2], &[5], &[1; 7]] {
            assert!(reshaped(&[4, 6], wrong).is_err(), "{wrong:?}");
        }
    }
}
