//! Operations that join tensors, and operations that choose elements by their indices.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::lazy::axes::axis_of;
use crate::lazy::elementwise::elementwise;
use crate::lazy::movement::{check_positive, reshape, unsqueeze};
use crate::lazy::node::{Kind, Node};
use crate::lazy::shape::{check_axis, check_result, mismatch};
use crate::lazy::tensor::Tensor;
use crate::ops::Op;
use crate::ops::shape::{MAX_EXACT_INDEX, check_limit};

/// Joined tensors, and elements by their indices, which are whole numbers.
///
/// ```
/// # #[cfg(not(target_arch = "wasm32"))] {
/// use relampago::{GpuDevice, Tensor, Tensors};
///
/// let tensors = Tensors::new(&GpuDevice::new()?);
/// let table = tensors.tensor(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], &[3, 2])?;
/// let rows = table.gather(&tensors.tensor(&[2.0, 0.0], &[2])?, 0)?;
/// assert_eq!(rows.read()?, [5.0, 6.0, 1.0, 2.0]);
/// assert_eq!(Tensor::concat(&[&rows, &table], 0)?.shape(), [5, 2]);
/// assert_eq!(Tensor::stack(&[&rows, &rows], 0)?.shape(), [2, 2, 2]);
/// let (values, indices) = table.transpose()?.top_k(1)?;
/// assert_eq!(values.read()?, [5.0, 6.0]);
/// assert_eq!(indices.one_hot(3)?.read()?, [0.0, 0.0, 1.0, 0.0, 0.0, 1.0]);
/// # }
/// # Ok::<(), relampago::Error>(())
/// ```
impl Tensor {
    /// Joins tensors along an axis. All other lengths must be equal.
    #[doc(alias = "concatenate")]
    #[doc(alias = "cat")]
    pub fn concat(tensors: &[&Tensor], axis: isize) -> Result<Tensor> {
        let (first, nodes) = Self::joined("concat", tensors)?;
        let axis = axis_of(axis, first.shape())?;
        Ok(first.with(concat("concat", &nodes, axis)?))
    }

    /// Joins tensors of one shape along a new axis, which is `axis` of the result.
    pub fn stack(tensors: &[&Tensor], axis: isize) -> Result<Tensor> {
        let (first, nodes) = Self::joined("stack", tensors)?;
        let shape = first.shape();
        if let Some(other) = tensors.iter().find(|other| other.shape() != shape) {
            let has = format!("a tensor has shape {:?}", other.shape());
            let message = format!("{has}, but the first one has {shape:?}");
            return Err(mismatch("stack", message));
        }
        let nodes = nodes.iter().map(|node| unsqueeze(node, axis));
        let nodes = nodes.collect::<Result<Vec<_>>>()?;
        let mut longer = shape.to_vec();
        longer.push(1);
        Ok(first.with(concat("stack", &nodes, axis_of(axis, &longer)?)?))
    }

    /// Returns the elements of an axis by their indices: a result of the shape of `indices` in the place of the axis.
    ///
    /// # Errors
    /// `InvalidArgument` for an index beyond the axis where the host had the indices: `indices` is a tensor of values,
    /// and be it in another shape. Where a device computed them, or [`from_buffer`](crate::Tensors::from_buffer) has them, the result is NaN for an index
    /// beyond the axis, on every back-end.
    #[doc(alias = "take")]
    #[doc(alias = "index_select")]
    #[doc(alias = "embedding")]
    pub fn gather(&self, indices: &Tensor, axis: isize) -> Result<Tensor> {
        let indices = self.beside("indices", indices)?;
        let axis = axis_of(axis, self.shape())?;
        let len = self.shape()[axis];
        let (before, after) = (&self.shape()[..axis], &self.shape()[axis + 1..]);
        let shape = [before, &indices.shape, after].concat();
        check_result(&shape)?;
        check_limit("the length of the axis", len, MAX_EXACT_INDEX)?;
        if let Some(given) = indices.given_indices() {
            given.check("indices", len)?;
        }
        let kind = Kind::Gather { axis };
        Ok(self.with(Node::operation(kind, &[&self.node, &indices], &shape)))
    }

    /// Returns 1 where the last axis, which is new and has `classes` elements, is at the index that this tensor has,
    /// and 0 elsewhere.
    ///
    /// # Errors
    /// As of [`gather`](Self::gather): `InvalidArgument` for an index that is not below `classes` where the host had
    /// it. Where a device computed it, the row of such an index is NaN.
    pub fn one_hot(&self, classes: usize) -> Result<Tensor> {
        check_positive("classes", classes)?;
        check_limit("the number of classes", classes, MAX_EXACT_INDEX)?;
        let x = unsqueeze(&self.node, -1)?;
        let shape = [self.shape(), &[classes]].concat();
        check_result(&shape)?;
        let range = Node::operation(Kind::Range, &[], &[classes]);
        let kind = Kind::Elementwise(Op::Equal);
        let is_at = Node::truth(kind, &[&x, &range], &shape);
        if let Some(given) = self.node.given_indices() {
            return given.check("indices", classes).map(|()| self.with(is_at));
        }
        let added = zero_or_nan(&x, classes);
        Ok(self.with(elementwise(Op::VecAdd, &[&is_at, &added], &shape)))
    }

    /// Returns the `k` largest elements of the last axis, from the largest on, and their indices. NaN comes before
    /// numbers, and of equal elements the first.
    #[doc(alias = "sort")]
    pub fn top_k(&self, k: usize) -> Result<(Tensor, Tensor)> {
        check_positive("k", k)?;
        let cols = self.shape().last().copied().unwrap_or(0);
        check_limit("the length of the last axis", cols, MAX_EXACT_INDEX)?;
        if self.rank() == 0 {
            let message = "a scalar has no axis to rank along".to_owned();
            return Err(mismatch("top_k", message));
        }
        if k > cols {
            let axis = format!("the length of the last axis of shape {:?}", self.shape());
            let requirement = format!("at most {cols}, {axis}");
            return Err(Error::invalid("k", k.to_string(), requirement));
        }
        let mut shape = self.shape().to_vec();
        shape.pop();
        shape.push(k);
        let indices = Node::operation(Kind::TopK { k }, &[&self.node], &shape);
        let values = Node::operation(Kind::Take, &[&self.node, &indices], &shape);
        Ok((self.with(values), self.with(indices)))
    }

    /// Returns the first tensor of a list, and the nodes of all.
    pub(super) fn joined<'a>(
        op: &'static str,
        tensors: &[&'a Tensor],
    ) -> Result<(&'a Tensor, Vec<Arc<Node>>)> {
        let &[first, ..] = tensors else {
            return Err(Error::Empty { op });
        };
        let nodes = tensors
            .iter()
            .map(|&tensor| first.beside("tensors", tensor));
        Ok((first, nodes.collect::<Result<_>>()?))
    }
}

/// Records 0 where elements are indices below `count`, and NaN elsewhere.
fn zero_or_nan(indices: &Arc<Node>, count: usize) -> Arc<Node> {
    let record = |op, inputs: &[&Arc<Node>]| elementwise(op, inputs, &indices.shape);
    let max = (count - 1) as f32;
    let within = record(Op::Clip { min: 0.0, max }, &[indices]);
    let nearest = record(Op::Floor, &[&within]);
    let is_index = record(Op::Equal, &[&nearest, indices]);
    // The square root of −1 is NaN.
    let below = record(Op::Sub, &[&is_index, &Node::constant(1.0)]);
    record(Op::Sqrt, &[&below])
}

/// Records the join of nodes along an axis of the first one.
pub(super) fn concat(op: &'static str, parts: &[Arc<Node>], axis: usize) -> Result<Arc<Node>> {
    let Some(first) = parts.first() else {
        return Err(Error::Empty { op });
    };
    let mut shape = first.shape.clone();
    shape[axis] = 0;
    for (at, part) in parts.iter().enumerate() {
        let mut own = part.shape.clone();
        let length = own
            .get_mut(axis)
            .map_or(0, |own| std::mem::replace(own, shape[axis]));
        if own != shape {
            let has = format!("tensor {at} has shape {:?}", part.shape);
            let needed = format!("{:?} except along axis {axis}", first.shape);
            return Err(mismatch(op, format!("{has}, which must equal {needed}")));
        }
        // Two lengths of axes fit, so the sum is exact.
        shape[axis] += length;
        check_axis(shape[axis])?;
    }
    check_result(&shape)?;
    let full: Vec<&Arc<Node>> = parts.iter().filter(|part| part.size() > 0).collect();
    match full[..] {
        [one] => Ok(Arc::clone(one)),
        _ => Ok(Node::operation(Kind::Concat { axis }, &full, &shape)),
    }
}

/// Records the same elements with an axis of length 1 at the front.
pub(super) fn with_front_axis(x: &Arc<Node>) -> Arc<Node> {
    reshape(x, &[&[1], &x.shape[..]].concat())
}
