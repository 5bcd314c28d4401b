//! Cumulative sums and products.

use crate::error::Result;
use crate::lazy::node::Rows;
use crate::lazy::tensor::Tensor;

/// Cumulative sums and products.
///
/// ```
/// # #[cfg(not(target_arch = "wasm32"))] {
/// use relampago::{GpuDevice, Tensors};
///
/// let tensors = Tensors::new(&GpuDevice::new()?);
/// let x = tensors.tensor(&[1.0, 2.0, 3.0, 4.0], &[2, 2])?;
/// assert_eq!(x.cumsum(1)?.read()?, [1.0, 3.0, 3.0, 7.0]);
/// assert_eq!(x.cumprod(0)?.read()?, [1.0, 2.0, 3.0, 8.0]);
/// # }
/// # Ok::<(), relampago::Error>(())
/// ```
impl Tensor {
    /// Sums of the elements of an axis up to each one. NaN is in all sums after it.
    ///
    /// # Errors
    /// `InvalidArgument` for an axis that the tensor does not have.
    pub fn cumsum(&self, axis: isize) -> Result<Tensor> {
        self.along_axis("cumsum", axis, Rows::Cumsum, &[])
    }

    /// Products of the elements of an axis up to each one. Zeros have gradients, too.
    ///
    /// # Errors
    /// `InvalidArgument` for an axis that the tensor does not have.
    pub fn cumprod(&self, axis: isize) -> Result<Tensor> {
        self.along_axis("cumprod", axis, Rows::Cumprod, &[])
    }
}
