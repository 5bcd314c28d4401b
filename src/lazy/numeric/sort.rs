//! The order of elements.

use crate::error::Result;
use crate::lazy::node::Rows;
use crate::lazy::tensor::Tensor;

/// Sorting.
///
/// ```
/// # #[cfg(not(target_arch = "wasm32"))] {
/// use relampago::{GpuDevice, Tensors};
///
/// let tensors = Tensors::new(&GpuDevice::new()?);
/// let x = tensors.tensor(&[3.0, 1.0, 2.0], &[3])?;
/// assert_eq!(x.sort(0)?.read()?, [1.0, 2.0, 3.0]);
/// assert_eq!(x.argsort(0)?.read()?, [1.0, 2.0, 0.0]);
/// # }
/// # Ok::<(), relampago::Error>(())
/// ```
impl Tensor {
    /// The elements of an axis in ascending order, NaN last. `flip` makes the order descending.
    ///
    /// # Errors
    /// `InvalidArgument` for an axis that the tensor does not have, `LimitExceeded` for more than 2²⁴ elements along it.
    pub fn sort(&self, axis: isize) -> Result<Tensor> {
        self.along_axis("sort", axis, Rows::Sort, &[])
    }

    /// The indices of the elements of an axis in ascending order, NaN last. Equal elements stay in their order.
    ///
    /// # Errors
    /// The errors of [`sort`](Self::sort).
    pub fn argsort(&self, axis: isize) -> Result<Tensor> {
        self.along_axis("argsort", axis, Rows::Argsort, &[])
    }
}
