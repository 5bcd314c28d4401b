//! Reductions along axes.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::lazy::axes::Axes;
use crate::lazy::elementwise::truth;
use crate::lazy::movement::repeated_constant;
use crate::lazy::node::{Kind, Node};
use crate::lazy::shape::{reduced, size_of};
use crate::lazy::tensor::Tensor;
use crate::ops::AxisFold;
use crate::ops::shape::{MAX_EXACT_INDEX, check_limit};

/// Reductions along one axis, several or all: see [`Axes`].
///
/// ```
/// # #[cfg(not(target_arch = "wasm32"))] {
/// use relampago::{Axes, GpuDevice, Tensors};
///
/// let tensors = Tensors::new(&GpuDevice::new()?);
/// let x = tensors.tensor(&[3.0, 1.0, 2.0, 5.0, 9.0, 4.0], &[2, 3])?;
/// assert_eq!(x.max(1)?.read()?, [3.0, 9.0]);
/// assert_eq!(x.argmin(-1)?.read()?, [1.0, 2.0]);
/// assert_eq!(x.mean([0, 1])?.item()?, 4.0);
/// assert_eq!(x.sum(Axes::all().keep_dims())?.shape(), [1, 1]);
/// assert_eq!(x.greater(4.5)?.any(0)?.read()?, [1.0, 1.0, 0.0]);
/// # }
/// # Ok::<(), relampago::Error>(())
/// ```
impl Tensor {
    /// Sums; 0 of no elements.
    pub fn sum(&self, axes: impl Into<Axes>) -> Result<Tensor> {
        self.fold("sum", AxisFold::Sum, &axes.into())
    }

    /// Arithmetic means.
    ///
    /// # Errors
    /// `Empty` if there are no elements along the axes.
    pub fn mean(&self, axes: impl Into<Axes>) -> Result<Tensor> {
        self.fold("mean", AxisFold::Mean, &axes.into())
    }

    /// Variances: means of squared distances from the mean. Of a sample of n elements, multiply them by n / (n − 1).
    ///
    /// # Errors
    /// `Empty` if there are no elements along the axes.
    pub fn variance(&self, axes: impl Into<Axes>) -> Result<Tensor> {
        let axes = axes.into();
        let mean = self.fold("variance", AxisFold::Mean, &axes.clone().keep_dims())?;
        self.sub(&mean)?
            .square()?
            .fold("variance", AxisFold::Mean, &axes)
    }

    /// Standard deviations: the square roots of [`variance`](Self::variance).
    ///
    /// # Errors
    /// `Empty` if there are no elements along the axes.
    pub fn std(&self, axes: impl Into<Axes>) -> Result<Tensor> {
        self.variance(axes)?.sqrt()
    }

    /// Largest elements; NaN where any is NaN.
    ///
    /// # Errors
    /// `Empty` if there are no elements along the axes.
    pub fn max(&self, axes: impl Into<Axes>) -> Result<Tensor> {
        self.fold("max", AxisFold::Max, &axes.into())
    }

    /// Smallest elements; NaN where any is NaN.
    ///
    /// # Errors
    /// `Empty` if there are no elements along the axes.
    pub fn min(&self, axes: impl Into<Axes>) -> Result<Tensor> {
        self.fold("min", AxisFold::Min, &axes.into())
    }

    /// Indices of the first largest elements along one axis, or among all elements; of the first NaN where there is one.
    ///
    /// # Errors
    /// `Empty` if there are no elements along the axis, `LimitExceeded` for more than 2²⁴ elements.
    pub fn argmax(&self, axis: impl Into<Axes>) -> Result<Tensor> {
        self.index_of("argmax", AxisFold::Argmax, &axis.into())
    }

    /// Indices of the first smallest elements along one axis, or among all elements; of the first NaN where there is one.
    ///
    /// # Errors
    /// The errors of [`argmax`](Self::argmax).
    pub fn argmin(&self, axis: impl Into<Axes>) -> Result<Tensor> {
        self.index_of("argmin", AxisFold::Argmin, &axis.into())
    }

    /// 1 where any element is not 0, 0 elsewhere; 0 of no elements.
    pub fn any(&self, axes: impl Into<Axes>) -> Result<Tensor> {
        self.logical_fold(AxisFold::Max, 0.0, &axes.into())
    }

    /// 1 where all elements are not 0, 0 elsewhere; 1 of no elements.
    pub fn all(&self, axes: impl Into<Axes>) -> Result<Tensor> {
        self.logical_fold(AxisFold::Min, 1.0, &axes.into())
    }

    fn fold(&self, op: &'static str, fold: AxisFold, given: &Axes) -> Result<Tensor> {
        let axes = given.of_shape(self.shape())?;
        if self.is_empty_along(&axes) {
            return match fold {
                AxisFold::Sum => Ok(self.neutral(0.0, &axes, given.keep_dims)),
                _ => Err(Error::Empty { op }),
            };
        }
        Ok(self.with(reduce(&self.node, fold, axes, given.keep_dims)))
    }

    fn index_of(&self, op: &'static str, fold: AxisFold, given: &Axes) -> Result<Tensor> {
        let axes = given.one_or_all(op, self.shape())?;
        if self.is_empty_along(&axes) {
            return Err(Error::Empty { op });
        }
        let lengths: Vec<usize> = axes.iter().map(|&axis| self.shape()[axis]).collect();
        let len = size_of(&lengths);
        check_limit("the number of elements to index", len, MAX_EXACT_INDEX)?;
        Ok(self.with(reduce(&self.node, fold, axes, given.keep_dims)))
    }

    fn logical_fold(&self, fold: AxisFold, neutral: f32, given: &Axes) -> Result<Tensor> {
        let axes = given.of_shape(self.shape())?;
        if self.is_empty_along(&axes) {
            return Ok(self.neutral(neutral, &axes, given.keep_dims));
        }
        let (x, keep_dims) = (truth(&self.node), given.keep_dims);
        let shape = reduced(self.shape(), &axes, keep_dims);
        let kind = Kind::Reduce {
            fold,
            axes,
            keep_dims,
        };
        Ok(self.with(Node::truth(kind, &[&x], &shape)))
    }

    fn is_empty_along(&self, axes: &[usize]) -> bool {
        axes.iter().any(|&axis| self.shape()[axis] == 0)
    }

    fn neutral(&self, value: f32, axes: &[usize], keep_dims: bool) -> Tensor {
        let shape = reduced(self.shape(), axes, keep_dims);
        self.with(repeated_constant(value, &shape))
    }
}

fn reduce(x: &Arc<Node>, fold: AxisFold, axes: Vec<usize>, keep_dims: bool) -> Arc<Node> {
    let shape = reduced(&x.shape, &axes, keep_dims);
    let kind = Kind::Reduce {
        fold,
        axes,
        keep_dims,
    };
    Node::operation(kind, &[x], &shape)
}

/// Records sums along axes, which go.
pub(super) fn sum(x: &Arc<Node>, axes: Vec<usize>) -> Arc<Node> {
    let shape = reduced(&x.shape, &axes, false);
    if size_of(&shape) > 0 && x.size() == 0 {
        return repeated_constant(0.0, &shape);
    }
    reduce(x, AxisFold::Sum, axes, false)
}
