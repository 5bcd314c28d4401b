//! Axes that callers name.

use std::ops::RangeFull;

use crate::error::{Error, Result};
use crate::lazy::shape::mismatch;

/// The axes of a reduction: one (`1`), several (`[0, 2]`) or all (`..`). Negative ones count from the end.
///
/// ```
/// # #[cfg(not(target_arch = "wasm32"))] {
/// use relampago::{Axes, GpuDevice, Tensors};
///
/// let tensors = Tensors::new(&GpuDevice::new()?);
/// let x = tensors.tensor(&[1.0, 2.0, 3.0, 4.0], &[2, 2])?;
/// assert_eq!(x.sum(0)?.read()?, [4.0, 6.0]);
/// assert_eq!(x.sum(..)?.item()?, 10.0);
/// // The axis stays, with the length 1, so that the result broadcasts with `x`.
/// let shares = x.div(&x.sum(Axes::from(-1).keep_dims())?)?;
/// assert_eq!(shares.shape(), [2, 2]);
/// # }
/// # Ok::<(), relampago::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Axes {
    /// The axes; `None` stands for all axes.
    list: Option<Vec<isize>>,
    pub(super) keep_dims: bool,
}

impl Axes {
    /// Returns all axes.
    pub fn all() -> Self {
        Self::of(None)
    }

    /// Returns the axes for a reduction whose result keeps them, with the length 1.
    #[must_use]
    pub fn keep_dims(self) -> Self {
        Self {
            keep_dims: true,
            ..self
        }
    }

    fn of(list: Option<Vec<isize>>) -> Self {
        Self {
            list,
            keep_dims: false,
        }
    }

    /// Returns whether these are all axes, whatever the shape.
    pub(super) fn are_all(&self) -> bool {
        self.list.is_none()
    }

    /// Returns the axes of a shape from 0 on, in ascending order.
    pub(super) fn of_shape(&self, shape: &[usize]) -> Result<Vec<usize>> {
        let Some(list) = &self.list else {
            return Ok((0..shape.len()).collect());
        };
        let found = list.iter().map(|&axis| axis_of(axis, shape));
        let mut found = found.collect::<Result<Vec<usize>>>()?;
        found.sort_unstable();
        if found.windows(2).any(|pair| pair[0] == pair[1]) {
            let value = format!("{list:?}");
            return Err(Error::invalid("axes", value, "without repetitions"));
        }
        Ok(found)
    }

    /// Returns one axis of a shape, or all of them, as reductions to an index take them.
    pub(super) fn one_or_all(&self, op: &'static str, shape: &[usize]) -> Result<Vec<usize>> {
        match &self.list {
            Some(list) if list.len() != 1 => {
                let message = format!("`axes` is {list:?}, but must be one axis or all");
                Err(mismatch(op, message))
            }
            _ => self.of_shape(shape),
        }
    }
}

impl From<isize> for Axes {
    fn from(axis: isize) -> Self {
        Self::of(Some(vec![axis]))
    }
}

impl<const N: usize> From<[isize; N]> for Axes {
    fn from(axes: [isize; N]) -> Self {
        Self::of(Some(axes.to_vec()))
    }
}

impl From<&[isize]> for Axes {
    fn from(axes: &[isize]) -> Self {
        Self::of(Some(axes.to_vec()))
    }
}

impl From<RangeFull> for Axes {
    fn from(_: RangeFull) -> Self {
        Self::all()
    }
}

/// Returns an axis of a shape from 0 on; negative ones count from the end.
pub(super) fn axis_of(axis: isize, shape: &[usize]) -> Result<usize> {
    let rank = shape.len() as isize;
    if (-rank..rank).contains(&axis) {
        return Ok(axis.rem_euclid(rank) as usize);
    }
    let requirement = match rank {
        0 => "absent, as a scalar has no axes".to_owned(),
        _ => format!("from {} to {} for shape {shape:?}", -rank, rank - 1),
    };
    Err(Error::invalid("axis", axis.to_string(), requirement))
}
