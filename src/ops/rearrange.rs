//! The shape and strides of a rearrangement.

use crate::error::{Error, Result};
use crate::ops::axes::{Axis, MAX_AXES, PerAxis, merged};
use crate::ops::shape::{check_len, check_limit, overflow, volume_of};

/// A strided view of `x` whose elements become a row-major result:
/// `y[i₀, i₁, …] = x[offset + Σ iₖ · strides[k]]`.
///
/// A stride of 0 repeats elements, a negative one reverses an axis. A view that only repeats rows, columns or one
/// element of `x` is not copied if an elementwise operation reads it: that operation reads `x` itself.
///
/// ```
/// # #[cfg(not(target_arch = "wasm32"))] {
/// use relampago::{GpuDevice, Rearrange};
///
/// let device = GpuDevice::new()?;
/// let x = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
/// let mut y = [0.0; 4];
/// // The last two columns of a matrix of three, as columns.
/// device.rearrange(&x, &mut y, Rearrange::new(&[2, 2], &[1, 3]).with_offset(1))?;
/// assert_eq!(y, [2.0, 5.0, 3.0, 6.0]);
/// # }
/// # Ok::<(), relampago::Error>(())
/// ```
#[doc(alias = "view")]
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Rearrange {
    /// The number of elements along each axis of the result, of at most 6 axes.
    pub shape: Vec<usize>,
    /// The distance in `x` between neighbours, for each axis.
    pub strides: Vec<isize>,
    /// The index in `x` of the first element of the result.
    pub offset: usize,
}

/// Products of a length and a stride. Sums of them do not overflow, because the product of all lengths is a `usize`.
#[cfg(target_pointer_width = "64")]
type Reach = i128;
#[cfg(not(target_pointer_width = "64"))]
type Reach = i64;

/// The elements of an input that an elementwise operation reads in a pattern: `y[i] = x[i / inner % len]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cycle {
    pub(crate) inner: usize,
    pub(crate) len: usize,
}

impl Rearrange {
    /// Creates a view whose first element is that of `x`.
    pub fn new(shape: &[usize], strides: &[isize]) -> Self {
        Self {
            shape: shape.to_vec(),
            strides: strides.to_vec(),
            offset: 0,
        }
    }

    /// Returns the view with this index of its first element.
    #[must_use]
    pub fn with_offset(self, offset: usize) -> Self {
        Self { offset, ..self }
    }

    /// Checks the view against the length of `x`. Returns the length of the result.
    pub(crate) fn check(&self, x: usize) -> Result<usize> {
        check_limit("the number of axes", self.shape.len(), MAX_AXES)?;
        check_len("strides", self.shape.len(), self.strides.len())?;
        // Zeros first: the other axes of an empty result may be of any length.
        if self.shape.contains(&0) {
            return Ok(0);
        }
        let len = volume_of(&self.shape).ok_or_else(|| overflow("y", &self.shape))?;
        let (mut first, mut last) = (self.offset as Reach, self.offset as Reach);
        for (&size, &stride) in self.shape.iter().zip(&self.strides) {
            let reach = (size as Reach - 1) * stride as Reach;
            first += reach.min(0);
            last += reach.max(0);
        }
        if first >= 0 && last < x as Reach {
            return Ok(len);
        }
        let outside = if first < 0 { first } else { last };
        let requirement = format!("within the {x} elements of `x`");
        let value = format!("a view of the element at {outside}");
        Err(Error::invalid("options", value, requirement))
    }

    /// Returns the axes of the same view with the fewest ones, from the outermost on.
    pub(crate) fn merged(&self) -> PerAxis<Axis> {
        // Sizes beside a zero may be too large to multiply.
        if self.shape.contains(&0) {
            return PerAxis::repeating(&[0]);
        }
        let mut axes = PerAxis::repeating(&self.shape);
        for (axis, &stride) in axes.iter_mut().zip(&self.strides) {
            axis.stride = stride;
        }
        merged(&axes)
    }

    /// Returns the pattern of a view that only repeats all of the `x` elements that there are, as
    /// broadcasting to rows, columns or a whole result does.
    pub(crate) fn cycle(&self, x: usize) -> Option<Cycle> {
        let axes = self.merged();
        if self.offset != 0 || self.shape.contains(&0) {
            return None;
        }
        let (inner, axes) = match axes.split_last() {
            Some((&Axis { len, stride: 0 }, outer)) => (len, outer),
            _ => (1, &axes[..]),
        };
        let (len, axes) = match axes.split_last() {
            Some((&Axis { len, stride: 1 }, outer)) => (len, outer),
            _ => (1, axes),
        };
        let rows_repeat = matches!(axes, [] | [Axis { stride: 0, .. }]);
        (rows_repeat && len == x).then_some(Cycle { inner, len })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbouring_axes_merge() {
        let view = |shape: &[usize], strides: &[isize]| {
            let axes = Rearrange::new(shape, strides).merged();
            axes.iter()
                .map(|axis| (axis.len, axis.stride))
                .collect::<Vec<_>>()
        };
        assert_eq!(view(&[2, 3, 4], &[12, 4, 1]), [(24, 1)]);
        assert_eq!(view(&[2, 3, 4], &[0, 4, 1]), [(2, 0), (12, 1)]);
        assert_eq!(view(&[2, 3, 1, 4], &[0, 0, 7, 0]), [(24, 0)]);
        assert_eq!(view(&[1, 1], &[5, 9]), []);
        assert_eq!(view(&[usize::MAX, 2, 0], &[0, 0, 1]), [(0, 0)]);
    }

    #[test]
    fn repeated_rows_columns_and_elements_are_cycles() {
        let cycle = |shape: &[usize], strides: &[isize], x| Rearrange::new(shape, strides).cycle(x);
        let found = |inner, len| Some(Cycle { inner, len });
        assert_eq!(cycle(&[5, 4], &[0, 1], 4), found(1, 4));
        assert_eq!(cycle(&[5, 4], &[1, 0], 5), found(4, 5));
        assert_eq!(cycle(&[2, 5, 4], &[0, 1, 0], 5), found(4, 5));
        assert_eq!(cycle(&[2, 5], &[0, 0], 1), found(10, 1));
        assert_eq!(cycle(&[6], &[1], 6), found(1, 6));
        // A part of the elements, another order, and two axes that repeat between others.
        assert_eq!(cycle(&[5, 3], &[0, 1], 4), None);
        assert_eq!(cycle(&[4, 5], &[1, 4], 20), None);
        assert_eq!(cycle(&[2, 3, 4, 5], &[4, 0, 1, 0], 8), None);
    }
}
