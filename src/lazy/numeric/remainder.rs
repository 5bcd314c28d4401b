//! Remainders of divisions.

use crate::error::Result;
use crate::lazy::operand::Operand;
use crate::lazy::tensor::Tensor;

/// Remainders.
///
/// ```
/// # #[cfg(not(target_arch = "wasm32"))] {
/// use relampago::{GpuDevice, Tensors};
///
/// let tensors = Tensors::new(&GpuDevice::new()?);
/// let x = tensors.tensor(&[7.0, -7.0], &[2])?;
/// assert_eq!(x.modulo(3.0)?.read()?, [1.0, 2.0]);
/// assert_eq!(x.fmod(3.0)?.read()?, [1.0, -1.0]);
/// # }
/// # Ok::<(), relampago::Error>(())
/// ```
impl Tensor {
    /// The remainder of a division whose quotient is rounded down, with the sign of `b`, as of `NumPy`'s `mod`. It is
    /// exact where the quotient times `b` is; elsewhere its error is a rounding of `a`. NaN beside a divisor of 0.
    ///
    /// # Errors
    /// `ShapeMismatch` for shapes that do not broadcast, `Foreign`.
    #[doc(alias = "remainder")]
    #[doc(alias = "rem")]
    pub fn modulo<'a>(&self, b: impl Into<Operand<'a>>) -> Result<Tensor> {
        let b = self.broadcasting("modulo", ["a", "b"], b)?;
        let quotient = self.div(&b)?.floor()?;
        // A quotient of 0 leaves `a`, even beside an infinite divisor.
        let whole = quotient.mul(&b)?;
        let rest = self.sub(&quotient.select(&whole, 0.0)?)?;
        // A rounded quotient may be one too large or too small.
        let is_opposite = rest.mul(&b.sign()?)?.less(0.0)?;
        let rest = rest.add(&is_opposite.select(&b, 0.0)?)?;
        let is_whole = rest.abs()?.greater_equal(&b.abs()?)?;
        let is_finite = b.is_finite()?;
        rest.sub(&is_whole.and(&is_finite)?.select(&b, 0.0)?)
    }

    /// The remainder of a division whose quotient is rounded towards 0, with the sign of `a`, as of C's `fmod`. Its
    /// accuracy is that of [`modulo`](Self::modulo).
    ///
    /// # Errors
    /// The errors of [`modulo`](Self::modulo).
    pub fn fmod<'a>(&self, b: impl Into<Operand<'a>>) -> Result<Tensor> {
        let b = self.broadcasting("fmod", ["a", "b"], b)?;
        let rest = self.abs()?.modulo(&b.abs()?)?;
        self.less(0.0)?.select(&rest.neg()?, &rest)
    }
}
