//! Repeated elements and repeated axes.

use std::sync::Arc;

use crate::error::Result;
use crate::lazy::axes::axis_of;
use crate::lazy::movement::{broadcast_to, reshape};
use crate::lazy::node::Node;
use crate::lazy::shape::{check_result, size_of};
use crate::lazy::tensor::Tensor;

/// Repetitions.
///
/// ```
/// # #[cfg(not(target_arch = "wasm32"))] {
/// use relampago::{GpuDevice, Tensors};
///
/// let tensors = Tensors::new(&GpuDevice::new()?);
/// let x = tensors.tensor(&[1.0, 2.0], &[2])?;
/// assert_eq!(x.tile(&[2])?.read()?, [1.0, 2.0, 1.0, 2.0]);
/// assert_eq!(x.repeat(2, 0)?.read()?, [1.0, 1.0, 2.0, 2.0]);
/// # }
/// # Ok::<(), relampago::Error>(())
/// ```
impl Tensor {
    /// Repeats the whole tensor `counts[k]` times along axis `k`. Counts belong to the last axes; more counts than axes
    /// add axes at the front.
    ///
    /// # Errors
    /// `LimitExceeded` for more than 6 counts, `ShapeOverflow`.
    pub fn tile(&self, counts: &[usize]) -> Result<Tensor> {
        let missing = counts.len().saturating_sub(self.rank());
        let shape = [&vec![1; missing][..], self.shape()].concat();
        check_result(&shape)?;
        let mut node = reshape(&self.node, &shape);
        let first = shape.len() - counts.len();
        for (k, &count) in counts.iter().enumerate() {
            node = repeated(&node, first + k, count, true)?;
        }
        Ok(self.with(node))
    }

    /// Repeats each element of an axis `count` times in a row.
    ///
    /// # Errors
    /// `InvalidArgument` for an axis that the tensor does not have, `ShapeOverflow`.
    #[doc(alias = "repeat_interleave")]
    pub fn repeat(&self, count: usize, axis: isize) -> Result<Tensor> {
        let axis = axis_of(axis, self.shape())?;
        Ok(self.with(repeated(&self.node, axis, count, false)?))
    }
}

/// Records an axis `count` times: as a whole, or each element in a row.
fn repeated(x: &Arc<Node>, axis: usize, count: usize, is_whole: bool) -> Result<Arc<Node>> {
    if count == 1 {
        return Ok(Arc::clone(x));
    }
    let mut shape = x.shape.clone();
    shape[axis] = shape[axis].saturating_mul(count);
    check_result(&shape)?;
    let len = x.shape[axis];
    let [outer, inner] = [size_of(&x.shape[..axis]), size_of(&x.shape[axis + 1..])];
    // Only four axes, so that one more is within the limit.
    let (apart, wide) = if is_whole {
        ([outer, 1, len, inner], [outer, count, len, inner])
    } else {
        ([outer, len, 1, inner], [outer, len, count, inner])
    };
    let wide = broadcast_to(&reshape(x, &apart), &wide)?;
    Ok(reshape(&wide, &shape))
}
