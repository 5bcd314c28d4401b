//! Functions of two numbers whose intermediate results would overflow.

use crate::error::Result;
use crate::lazy::operand::Operand;
use crate::lazy::tensor::Tensor;

/// Sums of exponentials and of squares.
impl Tensor {
    /// `log(eᵃ + eᵇ)`, without overflow; −∞ where both are −∞.
    ///
    /// ```
    /// # #[cfg(not(target_arch = "wasm32"))] {
    /// use relampago::{GpuDevice, Tensors};
    ///
    /// let x = Tensors::new(&GpuDevice::new()?).tensor(&[1000.0], &[1])?;
    /// assert!((x.logaddexp(&x)?.item()? - 1000.6931).abs() < 1e-3);
    /// # }
    /// # Ok::<(), relampago::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ShapeMismatch` for shapes that do not broadcast, `Foreign`.
    pub fn logaddexp<'a>(&self, b: impl Into<Operand<'a>>) -> Result<Tensor> {
        let b = self.broadcasting("logaddexp", ["a", "b"], b)?;
        // Equal infinities have no difference.
        let distance = self.equal(&b)?.select(0.0, &self.sub(&b)?.abs()?)?;
        self.maximum(&b)?.add(&distance.neg()?.softplus()?)
    }

    /// `√(a² + b²)`, without overflow; ∞ where either is infinite, even beside NaN. The gradient is 0 where both are 0.
    ///
    /// ```
    /// # #[cfg(not(target_arch = "wasm32"))] {
    /// use relampago::{GpuDevice, Tensors};
    ///
    /// let x = Tensors::new(&GpuDevice::new()?).tensor(&[3.0, 3e30], &[2])?;
    /// assert_eq!(x.hypot(4.0)?.read()?, [5.0, 3e30]);
    /// # }
    /// # Ok::<(), relampago::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ShapeMismatch` for shapes that do not broadcast, `Foreign`.
    pub fn hypot<'a>(&self, b: impl Into<Operand<'a>>) -> Result<Tensor> {
        let b = self.broadcasting("hypot", ["a", "b"], b)?.abs()?;
        let a = self.abs()?;
        let (least, most) = (a.minimum(&b)?, a.maximum(&b)?);
        let divisor = most.add(&most.equal(0.0)?)?;
        let root = least.div(&divisor)?.square()?.add(1.0)?.sqrt()?;
        let is_infinite = a.equal(f32::INFINITY)?.or(&b.equal(f32::INFINITY)?)?;
        is_infinite.select(f32::INFINITY, &most.mul(&root)?)
    }
}
