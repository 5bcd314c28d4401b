//! Reductions along one axis.

use crate::error::{Error, Result};
use crate::ops::shape::{MAX_EXACT_INDEX, check_len_for, check_limit, product, volume};

/// The function that a [`ReduceAxis`] applies to the elements along its axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AxisFold {
    /// The sum of the elements; 0 if there are none.
    Sum,
    /// The arithmetic mean of the elements.
    Mean,
    /// The largest element; NaN if any is NaN.
    Max,
    /// The smallest element; NaN if any is NaN.
    Min,
    /// The index of the first largest element, or of the first NaN.
    Argmax,
    /// The index of the first smallest element, or of the first NaN.
    Argmin,
}

impl AxisFold {
    /// All functions.
    pub const ALL: [Self; 6] = [
        Self::Sum,
        Self::Mean,
        Self::Max,
        Self::Min,
        Self::Argmax,
        Self::Argmin,
    ];
}

/// A reduction of the middle axis of `outer × len × inner` elements to `outer × inner` ones. With `inner` 1 it
/// reduces rows, with `outer` 1 columns.
///
/// ```
/// # #[cfg(not(target_arch = "wasm32"))] {
/// use relampago::{AxisFold, GpuDevice, ReduceAxis};
///
/// let device = GpuDevice::new()?;
/// let x = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
/// let mut y = [0.0; 3];
/// // The sums of the columns of a 2 × 3 matrix.
/// device.reduce_axis(&x, &mut y, ReduceAxis::new(AxisFold::Sum, 1, 2, 3))?;
/// assert_eq!(y, [5.0, 7.0, 9.0]);
/// # }
/// # Ok::<(), relampago::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct ReduceAxis {
    /// The function.
    pub fold: AxisFold,
    /// The product of the sizes of the axes before.
    pub outer: usize,
    /// The size of the axis; at least 1 but for sums, and at most 2²⁴ for indices.
    pub len: usize,
    /// The product of the sizes of the axes after.
    pub inner: usize,
}

impl ReduceAxis {
    /// Creates a reduction of the middle axis of `outer × len × inner` elements.
    pub fn new(fold: AxisFold, outer: usize, len: usize, inner: usize) -> Self {
        Self {
            fold,
            outer,
            len,
            inner,
        }
    }

    /// Checks the options against the length of `x`. Returns the length of the result.
    pub(crate) fn check(&self, x: usize) -> Result<usize> {
        let len = volume("x", [self.outer, self.len, self.inner])?;
        check_len_for("x", len, x, " (outer × len × inner)")?;
        let result = product("y", self.outer, self.inner)?;
        if matches!(self.fold, AxisFold::Argmax | AxisFold::Argmin) {
            check_limit("the length of the axis", self.len, MAX_EXACT_INDEX)?;
        }
        if self.len == 0 && result > 0 && self.fold != AxisFold::Sum {
            return Err(Error::Empty { op: "reduce_axis" });
        }
        Ok(result)
    }
}
