//! Products and norms along axes.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::lazy::axes::Axes;
use crate::lazy::elementwise::elementwise;
use crate::lazy::movement::{permuted, repeated_constant, reshape, view};
use crate::lazy::node::Node;
use crate::lazy::shape::{reduced, size_of};
use crate::lazy::tensor::Tensor;
use crate::lazy::view::Walk;
use crate::ops::Op;

/// Products and norms.
///
/// ```
/// # #[cfg(not(target_arch = "wasm32"))] {
/// use relampago::{GpuDevice, Tensors};
///
/// let tensors = Tensors::new(&GpuDevice::new()?);
/// let x = tensors.tensor(&[3.0, -4.0, 1.0, 2.0], &[2, 2])?;
/// assert_eq!(x.prod(1)?.read()?, [-12.0, 2.0]);
/// assert_eq!(x.norm(1.0, 1)?.read()?, [7.0, 3.0]);
/// assert_eq!(x.norm(f32::INFINITY, ..)?.item()?, 4.0);
/// # }
/// # Ok::<(), relampago::Error>(())
/// ```
impl Tensor {
    /// Products along axes; 1 of no elements.
    ///
    /// # Errors
    /// `InvalidArgument` for an axis that the tensor does not have, or twice.
    pub fn prod(&self, axes: impl Into<Axes>) -> Result<Tensor> {
        let axes = axes.into();
        let gone = axes.of_shape(self.shape())?;
        let shape = reduced(self.shape(), &gone, axes.keep_dims);
        let mut order: Vec<usize> = (0..self.rank())
            .filter(|axis| !gone.contains(axis))
            .collect();
        order.extend(&gone);
        let rows = size_of(&shape);
        let count = gone.iter().map(|&axis| self.shape()[axis]).product();
        if count == 0 {
            return Ok(self.with(repeated_constant(1.0, &shape)));
        }
        let matrix = reshape(&permuted(&self.node, &order), &[rows, count]);
        Ok(self.with(reshape(&row_products(matrix), &shape)))
    }

    /// Norms of the vectors along axes: `(Σ |x|ᵖ)^(1/p)`; for an infinite `p` the largest absolute value, for −∞ the
    /// smallest one, for 0 the number of elements other than 0. The gradient of a norm by `p = 2` is NaN where all
    /// elements are 0.
    ///
    /// # Errors
    /// `InvalidArgument` for a `p` that is NaN, `Empty` for an infinite `p` if there are no elements along the axes.
    #[doc(alias = "vector_norm")]
    pub fn norm(&self, p: f32, axes: impl Into<Axes>) -> Result<Tensor> {
        if p.is_nan() {
            return Err(Error::invalid("p", "NaN", "a number"));
        }
        if p == 2.0 {
            return self.square()?.sum(axes)?.sqrt();
        }
        if p == 0.0 {
            return self.not_equal(0.0)?.sum(axes);
        }
        let sizes = self.abs()?;
        if p == f32::INFINITY {
            return sizes.max(axes);
        }
        if p == f32::NEG_INFINITY {
            return sizes.min(axes);
        }
        if p == 1.0 {
            return sizes.sum(axes);
        }
        sizes.pow(p)?.sum(axes)?.pow(1.0 / p)
    }
}

/// Records the product of each row, as a column: halves are multiplied until one element is left.
fn row_products(mut left: Arc<Node>) -> Arc<Node> {
    let (rows, mut odd) = (left.shape[0], None);
    while left.shape[1] > 1 {
        let count = left.shape[1];
        if count % 2 == 1 {
            odd = Some(times(&columns(&left, count - 1, 1), odd.as_ref(), rows));
        }
        let half = count / 2;
        let second = columns(&left, half, half);
        left = elementwise(Op::Mul, &[&columns(&left, 0, half), &second], &[rows, half]);
    }
    times(&left, odd.as_ref(), rows)
}

fn times(column: &Arc<Node>, other: Option<&Arc<Node>>, rows: usize) -> Arc<Node> {
    other.map_or_else(
        || Arc::clone(column),
        |other| elementwise(Op::Mul, &[column, other], &[rows, 1]),
    )
}

/// Records `count` columns of a matrix from `start` on.
fn columns(matrix: &Arc<Node>, start: usize, count: usize) -> Arc<Node> {
    let mut walk = Walk::along(2);
    walk.starts[1] = start;
    view(matrix, walk, &[matrix.shape[0], count])
}
