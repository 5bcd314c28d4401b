//! Dropout.

use crate::error::{Error, Result};
use crate::lazy::tensor::Tensor;
use crate::ops::shape::number;

/// Dropout.
impl Tensor {
    /// Returns zeros in place of a share `rate` of the elements, which are drawn at random, and the others divided by
    /// `1 − rate`, so that the expected value stays (Srivastava et al., 2014). The draw is that of
    /// [`Tensors::random_uniform`](crate::Tensors::random_uniform): the same for a seed on every back-end. Another seed
    /// plans nothing.
    ///
    /// ```
    /// # #[cfg(not(target_arch = "wasm32"))] {
    /// use relampago::{GpuDevice, Tensors};
    ///
    /// let x = Tensors::new(&GpuDevice::new()?).ones(&[1000])?;
    /// let y = x.dropout(0.5, 7)?.read()?;
    /// assert!(y.iter().all(|&y| y == 0.0 || y == 2.0));
    /// # }
    /// # Ok::<(), relampago::Error>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidArgument` for a rate that is not from 0 to 1, `OutOfMemory`.
    pub fn dropout(&self, rate: f32, seed: u64) -> Result<Tensor> {
        if !(0.0..=1.0).contains(&rate) {
            return Err(Error::invalid("rate", number(rate), "from 0 to 1"));
        }
        if rate == 1.0 {
            return self.zeros_like();
        }
        let drawn = self.tensors().random_uniform(self.shape(), seed)?;
        let is_left = drawn.greater_equal(rate)?;
        is_left.select(&self.mul(1.0 / (1.0 - rate))?, 0.0)
    }
}
