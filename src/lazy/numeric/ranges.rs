//! Tensors of regular numbers.

use std::sync::Arc;

use crate::alloc::try_zeros;
use crate::error::{Error, Result};
use crate::lazy::movement::unsqueeze;
use crate::lazy::node::{Kind, Node, Source};
use crate::lazy::shape::check_result;
use crate::lazy::tensor::Tensor;
use crate::lazy::tensors::Tensors;
use crate::ops::Op;
use crate::ops::shape::{MAX_EXACT_INDEX, check_limit, number};

impl Tensors {
    /// Creates the numbers from `start` to below `end` (or above it, if `step` is negative) that are `step` apart. Each
    /// is computed in `f64` and rounded once. There are none if `end` is not in the direction of `step`.
    ///
    /// ```
    /// use relampago::{GpuDevice, Tensors};
    ///
    /// let tensors = Tensors::new(&GpuDevice::new()?);
    /// assert_eq!(tensors.arange(1.0, 2.0, 0.25)?.read()?, [1.0, 1.25, 1.5, 1.75]);
    /// assert_eq!(tensors.arange(3.0, 0.0, -1.0)?.read()?, [3.0, 2.0, 1.0]);
    /// # Ok::<(), relampago::Error>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidArgument` for a step of 0 and for numbers that are not finite, `LimitExceeded` for more than 2²⁴
    /// elements, `OutOfMemory`.
    pub fn arange(&self, start: f32, end: f32, step: f32) -> Result<Tensor> {
        self.arange_f64(start.into(), end.into(), step.into())
    }

    /// Creates the numbers of [`arange`](Self::arange) by bounds that an `f32` may not have.
    pub(crate) fn arange_f64(&self, start: f64, end: f64, step: f64) -> Result<Tensor> {
        check_finite("start", start)?;
        check_finite("end", end)?;
        check_finite("step", step)?;
        if step == 0.0 {
            return Err(Error::invalid("step", "0", "a number other than 0"));
        }
        // A negative number of elements becomes 0, and one beyond all integers the largest of them.
        let count = ((end - start) / step).ceil() as usize;
        self.regular(count, |at| start + at as f64 * step)
    }

    /// Creates `count` numbers from `start` to `end`, both included, at equal distances; one number is `start`. Each is
    /// computed in `f64` and rounded once.
    ///
    /// ```
    /// use relampago::{GpuDevice, Tensors};
    ///
    /// let tensors = Tensors::new(&GpuDevice::new()?);
    /// assert_eq!(tensors.linspace(0.0, 1.0, 5)?.read()?, [0.0, 0.25, 0.5, 0.75, 1.0]);
    /// # Ok::<(), relampago::Error>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidArgument` for numbers that are not finite, `LimitExceeded` for more than 2²⁴ elements, `OutOfMemory`.
    pub fn linspace(&self, start: f32, end: f32, count: usize) -> Result<Tensor> {
        self.linspace_f64(start.into(), end.into(), count)
    }

    /// Creates the numbers of [`linspace`](Self::linspace) by bounds that an `f32` may not have.
    pub(crate) fn linspace_f64(&self, start: f64, end: f64, count: usize) -> Result<Tensor> {
        check_finite("start", start)?;
        check_finite("end", end)?;
        let last = count.saturating_sub(1).max(1) as f64;
        let is_last = |at: usize| at > 0 && at + 1 == count;
        self.regular(count, |at| {
            if is_last(at) {
                end
            } else {
                start + (end - start) * (at as f64 / last)
            }
        })
    }

    /// Returns a matrix of `rows × cols` elements, with ones on its main diagonal and zeros elsewhere.
    ///
    /// ```
    /// use relampago::{GpuDevice, Tensors};
    ///
    /// let tensors = Tensors::new(&GpuDevice::new()?);
    /// assert_eq!(tensors.eye(2, 3)?.read()?, [1.0, 0.0, 0.0, 0.0, 1.0, 0.0]);
    /// # Ok::<(), relampago::Error>(())
    /// ```
    ///
    /// # Errors
    /// `LimitExceeded` for a side above 2²⁴, `ShapeOverflow`.
    #[doc(alias = "identity")]
    pub fn eye(&self, rows: usize, cols: usize) -> Result<Tensor> {
        check_limit("the rows", rows, MAX_EXACT_INDEX)?;
        check_limit("the columns", cols, MAX_EXACT_INDEX)?;
        check_result(&[rows, cols])?;
        let range = |len: usize| Node::operation(Kind::Range, &[], &[len]);
        let (row, col) = (unsqueeze(&range(rows), -1)?, range(cols));
        let kind = Kind::Elementwise(Op::Equal);
        Ok(self.with(Node::truth(kind, &[&row, &col], &[rows, cols])))
    }

    /// Creates a vector of `count` numbers that are rounded once.
    fn regular(&self, count: usize, value: impl Fn(usize) -> f64) -> Result<Tensor> {
        check_limit("the number of elements", count, MAX_EXACT_INDEX)?;
        let mut values = try_zeros(count)?;
        for (at, element) in values.iter_mut().enumerate() {
            *element = value(at) as f32;
        }
        Ok(self.leaf(&[count], Source::Values(Arc::new(values))))
    }
}

/// Tensors of the shape of another one.
impl Tensor {
    /// Returns a tensor of this shape all of whose elements are one number.
    ///
    /// # Errors
    /// None of its own: the shape was checked before.
    pub fn full_like(&self, value: f32) -> Result<Tensor> {
        self.tensors().full(self.shape(), value)
    }

    /// Returns zeros of this shape.
    ///
    /// # Errors
    /// As of [`full_like`](Self::full_like).
    pub fn zeros_like(&self) -> Result<Tensor> {
        self.full_like(0.0)
    }

    /// Returns ones of this shape.
    ///
    /// # Errors
    /// As of [`full_like`](Self::full_like).
    pub fn ones_like(&self) -> Result<Tensor> {
        self.full_like(1.0)
    }
}

/// Returns an error for a number that is NaN or infinite.
pub(super) fn check_finite(what: &'static str, value: f64) -> Result<()> {
    // As the elements have it.
    let value = value as f32;
    if value.is_finite() {
        return Ok(());
    }
    Err(Error::invalid(what, number(value), "a finite number"))
}
