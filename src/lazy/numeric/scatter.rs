//! Elements that are added at indices.

use crate::error::Result;
use crate::lazy::axes::axis_of;
use crate::lazy::elementwise::elementwise;
use crate::lazy::movement::{broadcast_to, permuted, reshape};
use crate::lazy::node::{Kind, Node};
use crate::lazy::operand::Operand;
use crate::lazy::shape::{check_result, mismatch, size_of};
use crate::lazy::tensor::Tensor;
use crate::ops::Op;
use crate::ops::shape::{MAX_EXACT_INDEX, check_limit};

/// Scattered elements.
///
/// ```
/// # #[cfg(not(target_arch = "wasm32"))] {
/// use relampago::{GpuDevice, Tensors};
///
/// let tensors = Tensors::new(&GpuDevice::new()?);
/// let indices = tensors.tensor(&[2.0, 0.0, 2.0], &[3])?;
/// let sums = tensors.zeros(&[3])?.scatter_add(&indices, 1.0, 0)?;
/// assert_eq!(sums.read()?, [1.0, 0.0, 2.0]);
/// # }
/// # Ok::<(), relampago::Error>(())
/// ```
impl Tensor {
    /// Returns the tensor with elements of `source` added at indices of an axis, as `NumPy`'s `add.at`; several with one
    /// index are all added. `source` has, or broadcasts to, the shape that [`gather`](Self::gather) returns for the same
    /// indices, and `gather` is the derivative.
    ///
    /// # Errors
    /// `InvalidArgument` for an index beyond the axis where the host had the indices (see [`gather`](Self::gather)):
    /// elsewhere its elements are not added. `ShapeMismatch` for a source of another shape, `LimitExceeded` for an axis
    /// or a number of indices above 2²⁴.
    #[doc(alias = "index_add")]
    #[doc(alias = "segment_sum")]
    pub fn scatter_add<'a>(
        &self,
        indices: &Tensor,
        source: impl Into<Operand<'a>>,
        axis: isize,
    ) -> Result<Tensor> {
        let indices = self.beside("indices", indices)?;
        let source = self.beside("source", source)?;
        let axis = axis_of(axis, self.shape())?;
        let (before, rest) = self.shape().split_at(axis);
        let (len, after) = (rest[0], &rest[1..]);
        let count = indices.size();
        check_limit("the length of the axis", len, MAX_EXACT_INDEX)?;
        check_limit("the number of indices", count, MAX_EXACT_INDEX)?;
        if let Some(given) = indices.given_indices() {
            given.check("indices", len)?;
        }
        let wide = [before, &indices.shape, after].concat();
        check_result(&wide)?;
        let source = broadcast_to(&source, &wide).map_err(|_| {
            let has = format!("`source` has shape {:?}", source.shape);
            let needed = format!("which does not broadcast to {wide:?}");
            mismatch("scatter_add", format!("{has}, {needed}"))
        })?;
        if size_of(&wide) == 0 || self.size() == 0 {
            return Ok(self.clone());
        }
        let [outer, inner] = [size_of(before), size_of(after)];
        let rows = permuted(&reshape(&source, &[outer, count, inner]), &[1, 0, 2]);
        let rows = reshape(&rows, &[count, outer * inner]);
        let indices = reshape(&indices, &[count]);
        let lengths = [len, outer * inner];
        let sums = Node::operation(Kind::Scatter, &[&rows, &indices], &lengths);
        let sums = permuted(&reshape(&sums, &[len, outer, inner]), &[1, 0, 2]);
        let sums = reshape(&sums, self.shape());
        let result = elementwise(Op::VecAdd, &[&self.node, &sums], self.shape());
        Ok(self.with(result))
    }
}
