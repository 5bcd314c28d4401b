//! The angle of a vector.

use std::f32::consts::{FRAC_PI_2, PI};

use relampago_coefficients::ARCTANGENT;

use crate::error::Result;
use crate::lazy::operand::Operand;
use crate::lazy::tensor::Tensor;

/// Angles.
impl Tensor {
    /// The angle of the vector `(x, y)` from the first axis on, from −π to π, where this tensor is `y`. Zeros and
    /// infinities have the angles of C's `atan2`; the error is at most four roundings of the result.
    ///
    /// ```
    /// # #[cfg(not(target_arch = "wasm32"))] {
    /// use relampago::{GpuDevice, Tensors};
    ///
    /// let y = Tensors::new(&GpuDevice::new()?).tensor(&[1.0, 0.0], &[2])?;
    /// let angles = y.atan2(-1.0)?.read()?;
    /// assert!((angles[0] - 2.3561945).abs() < 1e-6 && (angles[1] - 3.1415927).abs() < 1e-6);
    /// # }
    /// # Ok::<(), relampago::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ShapeMismatch` for shapes that do not broadcast, `Foreign`.
    #[doc(alias = "arctan2")]
    pub fn atan2<'a>(&self, x: impl Into<Operand<'a>>) -> Result<Tensor> {
        let x = self.broadcasting("atan2", ["y", "x"], x)?;
        let (up, along) = (self.abs()?, x.abs()?);
        let is_steep = along.less(&up)?;
        let least = is_steep.select(&along, &up)?;
        let most = is_steep.select(&up, &along)?;
        let divisor = most.add(&most.equal(0.0)?)?;
        let ratio = least.div(&divisor)?;
        // Two infinities are a diagonal; one beside NaN is none.
        let is_diagonal = least
            .equal(f32::INFINITY)?
            .and(&most.equal(f32::INFINITY)?)?;
        let ratio = is_diagonal.select(1.0, &ratio)?;
        let angle = arctangent(&ratio)?;
        let angle = is_steep.select(&angle.neg()?.add(FRAC_PI_2)?, &angle)?;
        let angle = x.is_negative()?.select(&angle.neg()?.add(PI)?, &angle)?;
        self.is_negative()?.select(&angle.neg()?, &angle)
    }

    /// Returns 1 below 0 and at −0, and 0 elsewhere.
    fn is_negative(&self) -> Result<Tensor> {
        // The reciprocal of −0 is −∞, and that of −∞ is −0.
        self.less(0.0)?.or(&self.reciprocal()?.less(0.0)?)
    }
}

/// Records the arctangent of numbers from 0 to 1.
fn arctangent(ratio: &Tensor) -> Result<Tensor> {
    let square = ratio.square()?;
    let (last, others) = ARCTANGENT.split_last().unwrap_or((&1.0, &[]));
    let mut sum = square.full_like(*last)?;
    for &coefficient in others.iter().rev() {
        sum = sum.mul(&square)?.add(coefficient)?;
    }
    ratio.mul(&sum)
}
