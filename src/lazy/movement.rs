//! Operations that move elements: shapes, the order of axes, and parts of them.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::lazy::axes::{Axes, axis_of};
use crate::lazy::node::{Kind, Node};
use crate::lazy::shape::{broadcast, check_shape, mismatch, reduced, reshaped};
use crate::lazy::slice::Slice;
use crate::lazy::tensor::Tensor;
use crate::lazy::view::Walk;

/// Shapes, the order of axes, and parts of them. None of these copies elements by itself.
///
/// ```
/// # #[cfg(not(target_arch = "wasm32"))] {
/// use relampago::{GpuDevice, Tensors};
///
/// let tensors = Tensors::new(&GpuDevice::new()?);
/// let x = tensors.tensor(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], &[6])?;
/// let table = x.reshape(&[2, -1])?;
/// assert_eq!(table.transpose()?.read()?, [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
/// assert_eq!(table.slice(1, 1..)?.read()?, [2.0, 3.0, 5.0, 6.0]);
/// assert_eq!(table.at(0, -1)?.read()?, [4.0, 5.0, 6.0]);
/// assert_eq!(table.unsqueeze(1)?.broadcast_to(&[2, 5, 3])?.permute(&[2, 0, 1])?.shape(), [3, 2, 5]);
/// # }
/// # Ok::<(), relampago::Error>(())
/// ```
impl Tensor {
    /// Returns the tensor with its axes in another order: axis `k` of the result is `axes[k]`.
    pub fn permute(&self, axes: &[isize]) -> Result<Tensor> {
        let shape = self.shape();
        let order = axes.iter().map(|&axis| axis_of(axis, shape));
        let order = order.collect::<Result<Vec<usize>>>()?;
        let has_all = (0..shape.len()).all(|axis| order.contains(&axis));
        if order.len() != shape.len() || !has_all {
            let needed = format!("but must have each axis of shape {shape:?} once");
            return Err(mismatch("permute", format!("`axes` is {axes:?}, {needed}")));
        }
        Ok(self.with(permuted(&self.node, &order)))
    }

    /// Returns the tensor with its last two axes swapped.
    pub fn transpose(&self) -> Result<Tensor> {
        let rank = self.rank();
        if rank < 2 {
            let message = format!("shape {:?} has no two axes to swap", self.shape());
            return Err(mismatch("transpose", message));
        }
        self.swap_axes(-2, -1)
    }

    /// Returns the tensor with two axes swapped.
    pub fn swap_axes(&self, first: isize, second: isize) -> Result<Tensor> {
        let [a, b] = [
            axis_of(first, self.shape())?,
            axis_of(second, self.shape())?,
        ];
        let mut order: Vec<usize> = (0..self.rank()).collect();
        order.swap(a, b);
        Ok(self.with(permuted(&self.node, &order)))
    }

    /// Returns the elements in another shape. One length may be −1, which is computed.
    pub fn reshape(&self, shape: &[isize]) -> Result<Tensor> {
        let shape = reshaped(self.shape(), shape)?;
        Ok(self.with(reshape(&self.node, &shape)))
    }

    /// Returns the elements as a vector.
    pub fn flatten(&self) -> Result<Tensor> {
        Ok(self.with(reshape(&self.node, &[self.size()])))
    }

    /// Removes axes of length 1; `..` removes all of them.
    ///
    /// # Errors
    /// `ShapeMismatch` for a named axis of another length.
    pub fn squeeze(&self, axes: impl Into<Axes>) -> Result<Tensor> {
        let (axes, shape) = (axes.into(), self.shape());
        let mut gone = axes.of_shape(shape)?;
        if axes.are_all() {
            gone.retain(|&axis| shape[axis] == 1);
        }
        if let Some(&axis) = gone.iter().find(|&&axis| shape[axis] != 1) {
            let has = format!("axis {axis} has {} elements", shape[axis]);
            let message = format!("{has} in shape {shape:?}, but must have 1");
            return Err(mismatch("squeeze", message));
        }
        Ok(self.with(reshape(&self.node, &reduced(shape, &gone, false))))
    }

    /// Adds an axis of length 1, which is `axis` of the result.
    #[doc(alias = "expand_dims")]
    pub fn unsqueeze(&self, axis: isize) -> Result<Tensor> {
        Ok(self.with(unsqueeze(&self.node, axis)?))
    }

    /// Repeats elements up to a shape that this one broadcasts to.
    #[doc(alias = "expand")]
    pub fn broadcast_to(&self, shape: &[usize]) -> Result<Tensor> {
        Ok(self.with(broadcast_to(&self.node, shape)?))
    }

    /// Returns a part of an axis: `x.slice(0, 1..3)`, `x.slice(-1, ..-1)`. [`Slice`] has steps.
    pub fn slice(&self, axis: isize, range: impl Into<Slice>) -> Result<Tensor> {
        let axis = axis_of(axis, self.shape())?;
        let indices = range.into().of_axis(axis, self.shape()[axis])?;
        let mut walk = Walk::along(self.rank());
        let mut shape = self.shape().to_vec();
        walk.steps[axis] = indices.step;
        walk.starts[axis] = indices.start;
        shape[axis] = indices.len;
        Ok(self.with(view(&self.node, walk, &shape)))
    }

    /// Returns the elements at one index of an axis, without that axis. A negative index counts from the end.
    #[doc(alias = "index")]
    #[doc(alias = "row")]
    pub fn at(&self, axis: isize, index: isize) -> Result<Tensor> {
        let axis = axis_of(axis, self.shape())?;
        let len = self.shape()[axis] as isize;
        if !(-len..len).contains(&index) {
            let axis = format!("axis {axis} of shape {:?}", self.shape());
            let requirement = match len {
                0 => format!("on an axis with elements, unlike {axis}"),
                _ => format!("from {} to {} on {axis}", -len, len - 1),
            };
            return Err(Error::invalid("index", index.to_string(), requirement));
        }
        let mut walk = Walk::along(self.rank());
        walk.starts[axis] = index.rem_euclid(len) as usize;
        walk.axes.remove(axis);
        walk.steps.remove(axis);
        let shape = reduced(self.shape(), &[axis], false);
        Ok(self.with(view(&self.node, walk, &shape)))
    }
}

impl Walk {
    /// Returns the walk along all axes of a view.
    pub(super) fn along(rank: usize) -> Self {
        Self {
            axes: (0..rank).map(Some).collect(),
            steps: vec![1; rank],
            starts: vec![0; rank],
        }
    }

    /// Returns the walk along all axes in another order.
    pub(super) fn permuted(order: &[usize]) -> Self {
        let axes = order.iter().map(|&axis| Some(axis)).collect();
        let all = Self::along(order.len());
        Self { axes, ..all }
    }

    /// Returns the walk that repeats elements up to a shape that `own` broadcasts to.
    pub(super) fn repeating(own: &[usize], shape: &[usize]) -> Self {
        let missing = shape.len() - own.len();
        let axis = |axis: usize| {
            let below = axis.checked_sub(missing)?;
            (own[below] == shape[axis]).then_some(below)
        };
        Self {
            axes: (0..shape.len()).map(axis).collect(),
            steps: vec![1; shape.len()],
            starts: vec![0; own.len()],
        }
    }
}

pub(super) fn view(x: &Arc<Node>, walk: Walk, shape: &[usize]) -> Arc<Node> {
    Node::operation(Kind::View(walk), &[x], shape)
}

pub(super) fn permuted(x: &Arc<Node>, order: &[usize]) -> Arc<Node> {
    let shape: Vec<usize> = order.iter().map(|&axis| x.shape[axis]).collect();
    view(x, Walk::permuted(order), &shape)
}

/// Records another shape with the same number of elements.
pub(super) fn reshape(x: &Arc<Node>, shape: &[usize]) -> Arc<Node> {
    if x.shape == shape {
        return Arc::clone(x);
    }
    Node::operation(Kind::Reshape, &[x], shape)
}

/// Records an axis of length 1, which is `axis` of the result.
pub(super) fn unsqueeze(x: &Arc<Node>, axis: isize) -> Result<Arc<Node>> {
    let mut shape = x.shape.clone();
    shape.push(1);
    let axis = axis_of(axis, &shape)?;
    shape.pop();
    shape.insert(axis, 1);
    check_shape(&shape)?;
    Ok(reshape(x, &shape))
}

/// Records repetitions up to a shape.
pub(super) fn broadcast_to(x: &Arc<Node>, shape: &[usize]) -> Result<Arc<Node>> {
    check_shape(shape)?;
    let both = broadcast("broadcast_to", &[("shape", shape), ("self", &x.shape)]);
    if both.as_deref() != Ok(shape) {
        let message = format!("shape {:?} does not broadcast to {shape:?}", x.shape);
        return Err(mismatch("broadcast_to", message));
    }
    Ok(view(x, Walk::repeating(&x.shape, shape), shape))
}

/// Records a number in all elements of a checked shape, as part of the structure.
pub(super) fn repeated_constant(value: f32, shape: &[usize]) -> Arc<Node> {
    view(&Node::constant(value), Walk::repeating(&[], shape), shape)
}

/// Returns an error for an argument that must be at least 1.
pub(super) fn check_positive(what: &'static str, value: usize) -> Result<()> {
    if value > 0 {
        return Ok(());
    }
    Err(Error::invalid(what, "0", "at least 1"))
}
