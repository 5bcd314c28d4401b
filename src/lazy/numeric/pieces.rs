//! Axes that are reversed, rotated and divided.

use crate::error::{Error, Result};
use crate::lazy::axes::{Axes, axis_of};
use crate::lazy::movement::{check_positive, view};
use crate::lazy::tensor::Tensor;
use crate::lazy::view::Walk;

/// Axes in reverse, rotated and divided.
///
/// ```
/// # #[cfg(not(target_arch = "wasm32"))] {
/// use relampago::{GpuDevice, Tensors};
///
/// let tensors = Tensors::new(&GpuDevice::new()?);
/// let x = tensors.arange(0.0, 6.0, 1.0)?;
/// assert_eq!(x.flip(0)?.read()?, [5.0, 4.0, 3.0, 2.0, 1.0, 0.0]);
/// assert_eq!(x.roll(2, 0)?.read()?, [4.0, 5.0, 0.0, 1.0, 2.0, 3.0]);
/// assert_eq!(x.split(3, 0)?[1].read()?, [2.0, 3.0]);
/// assert_eq!(x.split_at(&[1], 0)?[1].read()?, [1.0, 2.0, 3.0, 4.0, 5.0]);
/// # }
/// # Ok::<(), relampago::Error>(())
/// ```
impl Tensor {
    /// Reverses the order of the elements along axes.
    ///
    /// # Errors
    /// `InvalidArgument` for an axis that the tensor does not have, or twice.
    pub fn flip(&self, axes: impl Into<Axes>) -> Result<Tensor> {
        let mut walk = Walk::along(self.rank());
        for axis in axes.into().of_shape(self.shape())? {
            walk.steps[axis] = -1;
            walk.starts[axis] = self.shape()[axis].saturating_sub(1);
        }
        Ok(self.with(view(&self.node, walk, self.shape())))
    }

    /// Moves the elements of an axis by `shift`; those that leave it at one end come back at the other.
    ///
    /// # Errors
    /// `InvalidArgument` for an axis that the tensor does not have.
    pub fn roll(&self, shift: isize, axis: isize) -> Result<Tensor> {
        let len = self.shape()[axis_of(axis, self.shape())?] as isize;
        let by = shift.checked_rem_euclid(len).unwrap_or(0);
        if by == 0 {
            return Ok(self.clone());
        }
        let front = self.slice(axis, len - by..len)?;
        Self::concat(&[&front, &self.slice(axis, 0..len - by)?], axis)
    }

    /// Divides an axis into `count` parts of equal length.
    ///
    /// # Errors
    /// `InvalidArgument` if `count` is 0 or does not divide the length of the axis.
    pub fn split(&self, count: usize, axis: isize) -> Result<Vec<Tensor>> {
        check_positive("count", count)?;
        let at = axis_of(axis, self.shape())?;
        let len = self.shape()[at];
        if !len.is_multiple_of(count) {
            let axis = format!("the {len} elements of axis {at}");
            let requirement = format!("a number that divides {axis}; indices make other parts");
            return Err(Error::invalid("count", count.to_string(), requirement));
        }
        let ends: Vec<usize> = (1..count).map(|part| part * (len / count)).collect();
        self.split_at(&ends, axis)
    }

    /// Divides an axis at indices, which may not descend: one part more than indices.
    ///
    /// # Errors
    /// `InvalidArgument` for an index beyond the axis or below the one before.
    #[doc(alias = "tensor_split")]
    pub fn split_at(&self, indices: &[usize], axis: isize) -> Result<Vec<Tensor>> {
        let len = self.shape()[axis_of(axis, self.shape())?];
        let ends = indices.iter().copied().chain([len]);
        let mut start = 0;
        let parts = ends.map(|end| {
            if end < start || end > len {
                let requirement = format!("from {start} to {len}, in ascending order");
                return Err(Error::invalid("indices", end.to_string(), requirement));
            }
            let part = self.slice(axis, start as isize..end as isize);
            start = end;
            part
        });
        parts.collect()
    }
}
