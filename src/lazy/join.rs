//! Operations that join tensors, and those that choose elements by their indices.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::lazy::axes::axis_of;
use crate::lazy::movement::{check_positive, reshape, unsqueeze};
use crate::lazy::node::{Kind, Node, Source};
use crate::lazy::shape::{check_shape, mismatch};
use crate::lazy::tensor::Tensor;
use crate::ops::Op;
use crate::ops::indices::position;
use crate::ops::shape::{MAX_EXACT_INDEX, check_limit, number};

/// Joined tensors, and elements by their indices, which are whole numbers.
///
/// ```
/// # #[cfg(not(target_arch = "wasm32"))] {
/// use relampago::{GpuDevice, Tensor, Tensors};
///
/// let tensors = Tensors::new(&GpuDevice::new()?);
/// let table = tensors.tensor(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], &[3, 2])?;
/// let rows = table.gather(&tensors.tensor(&[2.0, 0.0], &[2])?, 0)?;
/// assert_eq!(rows.read_sync()?, [5.0, 6.0, 1.0, 2.0]);
/// assert_eq!(Tensor::concat(&[&rows, &table], 0)?.shape(), [5, 2]);
/// assert_eq!(Tensor::stack(&[&rows, &rows], 0)?.shape(), [2, 2, 2]);
/// let (values, indices) = table.transpose()?.top_k(1)?;
/// assert_eq!(values.read_sync()?, [5.0, 6.0]);
/// assert_eq!(indices.one_hot(3)?.read_sync()?, [0.0, 0.0, 1.0, 0.0, 0.0, 1.0]);
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
    /// `InvalidArgument` for an index beyond the axis where the host has the indices. Where they are computed, or a
    /// buffer of a device, the result is NaN there.
    #[doc(alias = "take")]
    #[doc(alias = "index_select")]
    #[doc(alias = "embedding")]
    pub fn gather(&self, indices: &Tensor, axis: isize) -> Result<Tensor> {
        let indices = self.beside("indices", indices)?;
        let axis = axis_of(axis, self.shape())?;
        let len = self.shape()[axis];
        let (before, after) = (&self.shape()[..axis], &self.shape()[axis + 1..]);
        let shape = [before, &indices.shape, after].concat();
        check_shape(&shape)?;
        check_limit("the length of the axis", len, MAX_EXACT_INDEX)?;
        check_indices(&indices, len)?;
        let kind = Kind::Gather { axis };
        Ok(self.with(Node::operation(kind, &[&self.node, &indices], &shape)))
    }

    /// Returns 1 where the last axis, which is new and has `classes` elements, is at the index that this tensor has,
    /// and 0 elsewhere.
    pub fn one_hot(&self, classes: usize) -> Result<Tensor> {
        check_positive("classes", classes)?;
        check_limit("the number of classes", classes, MAX_EXACT_INDEX)?;
        let x = unsqueeze(&self.node, -1)?;
        let shape = [self.shape(), &[classes]].concat();
        check_shape(&shape)?;
        let range = Node::operation(Kind::Range, &[], &[classes]);
        let kind = Kind::Elementwise(Op::Equal);
        Ok(self.with(Node::truth(kind, &[&x, &range], &shape)))
    }

    /// Returns the `k` largest elements of the last axis, from the largest on, and their indices. NaN comes before
    /// numbers, and of equal elements the first.
    #[doc(alias = "sort")]
    pub fn top_k(&self, k: usize) -> Result<(Tensor, Tensor)> {
        check_positive("k", k)?;
        let cols = self.shape().last().copied().unwrap_or(0);
        check_limit("the length of the last axis", cols, MAX_EXACT_INDEX)?;
        if k > cols {
            let has = format!("`k` is {k}, but the last axis of shape {:?}", self.shape());
            return Err(mismatch("top_k", format!("{has} has {cols} elements")));
        }
        let mut shape = self.shape().to_vec();
        shape.pop();
        shape.push(k);
        let indices = Node::operation(Kind::TopK { k }, &[&self.node], &shape);
        let values = Node::operation(Kind::Take, &[&self.node, &indices], &shape);
        Ok((self.with(values), self.with(indices)))
    }

    /// Returns the first tensor of a list, and the nodes of all.
    fn joined<'a>(
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

/// Checks the indices that the host has.
fn check_indices(indices: &Node, len: usize) -> Result<()> {
    let Some(Source::Values(values)) = indices.source() else {
        return Ok(());
    };
    match values.iter().find(|&&index| position(index, len).is_none()) {
        None => Ok(()),
        Some(&index) => {
            let requirement = format!("whole numbers from 0 and below {len}");
            Err(Error::invalid("indices", number(index), requirement))
        }
    }
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
        shape[axis] = shape[axis].saturating_add(length);
    }
    check_shape(&shape)?;
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
