//! Counts of elements.

use crate::error::{Error, Result};
use crate::lazy::movement::{check_positive, repeated_constant, reshape};
use crate::lazy::node::{Kind, Node};
use crate::lazy::numeric::ranges::check_finite;
use crate::lazy::shape::mismatch;
use crate::lazy::tensor::Tensor;
use crate::ops::shape::{MAX_EXACT_INDEX, check_limit, number};

/// Counts. They are exact up to 2²⁴.
///
/// ```
/// # #[cfg(not(target_arch = "wasm32"))] {
/// use relampago::{GpuDevice, Tensors};
///
/// let tensors = Tensors::new(&GpuDevice::new()?);
/// let x = tensors.tensor(&[0.0, 2.0, 2.0, 3.0], &[4])?;
/// assert_eq!(x.bincount(5, None)?.read()?, [1.0, 0.0, 2.0, 1.0, 0.0]);
/// assert_eq!(x.histogram(3, 0.0, 3.0)?.read()?, [1.0, 0.0, 3.0]);
/// # }
/// # Ok::<(), relampago::Error>(())
/// ```
impl Tensor {
    /// Returns how often each whole number below `count` is among the elements, or the sums of their weights.
    ///
    /// # Errors
    /// `InvalidArgument` for an element that is no such number, where the host had the elements (see
    /// [`gather`](Self::gather)): elsewhere it is not counted. `ShapeMismatch` for weights of another shape,
    /// `LimitExceeded` for a count or a number of elements above 2²⁴.
    pub fn bincount(&self, count: usize, weights: Option<&Tensor>) -> Result<Tensor> {
        check_positive("count", count)?;
        if let Some(given) = self.node.given_indices() {
            given.check("elements", count)?;
        }
        self.counted(count, weights)
    }

    /// Returns the numbers of elements in `bins` intervals of equal length from `start` to `end`. The last interval
    /// contains `end`; elements outside, and NaN, are not counted. Bounds between intervals are those of `f32`.
    ///
    /// # Errors
    /// `InvalidArgument` if `start` is not below `end` or one of them is not finite, or if there are no bins;
    /// `LimitExceeded` for more than 2²⁴ bins or elements.
    pub fn histogram(&self, bins: usize, start: f32, end: f32) -> Result<Tensor> {
        check_positive("bins", bins)?;
        check_finite("start", start.into())?;
        check_finite("end", end.into())?;
        if start >= end {
            let requirement = format!("below `end` ({})", number(end));
            return Err(Error::invalid("start", number(start), requirement));
        }
        let per_unit = bins as f64 / (f64::from(end) - f64::from(start));
        let bin = self.sub(start)?.mul(per_unit as f32)?.floor()?;
        let bin = bin.minimum((bins - 1) as f32)?;
        let is_inside = self.greater_equal(start)?.and(&self.less_equal(end)?)?;
        is_inside.select(&bin, -1.0)?.counted(bins, None)
    }

    fn counted(&self, count: usize, weights: Option<&Tensor>) -> Result<Tensor> {
        check_limit("the count", count, MAX_EXACT_INDEX)?;
        check_limit("the number of elements", self.size(), MAX_EXACT_INDEX)?;
        let weights = match weights {
            Some(weights) if weights.shape() != self.shape() => {
                let has = format!("`weights` has shape {:?}", weights.shape());
                let needed = format!("but must have {:?} like the elements", self.shape());
                return Err(mismatch("bincount", format!("{has}, {needed}")));
            }
            Some(weights) => self.beside("weights", weights)?,
            None => repeated_constant(1.0, self.shape()),
        };
        if self.size() == 0 {
            return self.tensors().zeros(&[count]);
        }
        let rows = reshape(&weights, &[self.size(), 1]);
        let indices = reshape(&self.node, &[self.size()]);
        let sums = Node::operation(Kind::Scatter, &[&rows, &indices], &[count, 1]);
        self.with(sums).flatten()
    }
}
