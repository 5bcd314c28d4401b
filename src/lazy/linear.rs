//! Softmaxes, norms and matmul.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::lazy::axes::axis_of;
use crate::lazy::join::with_front_axis;
use crate::lazy::movement::{repeated_constant, reshape};
use crate::lazy::node::{Kind, Node, Rows};
use crate::lazy::shape::{broadcast, check_result, mismatch, reduced};
use crate::lazy::tensor::Tensor;
use crate::ops::shape::output_len;

/// Softmaxes and norms along one axis, and matmul.
///
/// ```
/// # #[cfg(not(target_arch = "wasm32"))] {
/// use relampago::{GpuDevice, Tensors};
///
/// let tensors = Tensors::new(&GpuDevice::new()?);
/// let x = tensors.tensor(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], &[2, 3])?;
/// assert_eq!(x.matmul(&x.transpose()?)?.read()?, [14.0, 32.0, 32.0, 77.0]);
/// // A stack of two matrices, each multiplied by one vector.
/// let stack = x.broadcast_to(&[2, 2, 3])?;
/// assert_eq!(stack.matmul(&tensors.ones(&[3])?)?.read()?, [6.0, 15.0, 6.0, 15.0]);
/// let sums = x.softmax(0)?.sum(0)?.read()?;
/// assert!(sums.iter().all(|sum| (sum - 1.0).abs() < 1e-6));
/// # }
/// # Ok::<(), relampago::Error>(())
/// ```
impl Tensor {
    /// Softmax along an axis: `yᵢ = exp(xᵢ − max x) / Σⱼ exp(xⱼ − max x)`.
    pub fn softmax(&self, axis: isize) -> Result<Tensor> {
        self.along_axis("softmax", axis, Rows::Softmax, &[])
    }

    /// Logarithm of the softmax along an axis.
    pub fn log_softmax(&self, axis: isize) -> Result<Tensor> {
        self.along_axis("log_softmax", axis, Rows::LogSoftmax, &[])
    }

    /// Layer normalisation along an axis: `y = (x − mean) / √(variance + epsilon) · gain + bias`. `gain` and `bias` are
    /// vectors of the axis's length; `epsilon` is positive.
    #[doc(alias = "layernorm")]
    pub fn layer_norm(
        &self,
        gain: &Tensor,
        bias: &Tensor,
        axis: isize,
        epsilon: f32,
    ) -> Result<Tensor> {
        let vectors = [("gain", gain), ("bias", bias)];
        self.along_axis("layer_norm", axis, Rows::LayerNorm { epsilon }, &vectors)
    }

    /// Root mean square normalisation along an axis: `y = x / √(mean of x² + epsilon) · gain`. `gain` is a vector of the
    /// axis's length; `epsilon` is positive.
    #[doc(alias = "rmsnorm")]
    pub fn rms_norm(&self, gain: &Tensor, axis: isize, epsilon: f32) -> Result<Tensor> {
        let vectors = [("gain", gain)];
        self.along_axis("rms_norm", axis, Rows::RmsNorm { epsilon }, &vectors)
    }

    /// Matmul as in `NumPy`: of matrices, of stacks of matrices, whose axes before the last two broadcast, and of vectors,
    /// which are a row on the left and a column on the right.
    #[doc(alias = "mm")]
    #[doc(alias = "bmm")]
    #[doc(alias = "dot")]
    pub fn matmul(&self, b: &Tensor) -> Result<Tensor> {
        let b = self.beside("b", b)?;
        Ok(self.with(matmul(&self.node, &b)?))
    }

    pub(super) fn along_axis(
        &self,
        op: &'static str,
        axis: isize,
        rows: Rows,
        vectors: &[(&'static str, &Tensor)],
    ) -> Result<Tensor> {
        let axis = axis_of(axis, self.shape())?;
        let cols = self.shape()[axis];
        let mut inputs = vec![Arc::clone(&self.node)];
        for (name, vector) in vectors {
            if vector.shape() != [cols] {
                let has = format!("`{name}` has shape {:?}", vector.shape());
                let needed = format!("but must have [{cols}] for shape {:?}", self.shape());
                return Err(mismatch(op, format!("{has}, {needed}")));
            }
            inputs.push(self.beside(name, *vector)?);
        }
        // Checks the parameters.
        output_len(&rows.op(1, cols), &vec![cols; inputs.len()])?;
        let inputs: Vec<&Arc<Node>> = inputs.iter().collect();
        let kind = Kind::Rows { axis, rows };
        Ok(self.with(Node::operation(kind, &inputs, self.shape())))
    }
}

pub(super) fn matmul(a: &Arc<Node>, b: &Arc<Node>) -> Result<Arc<Node>> {
    check_inner(a, b)?;
    let left = if a.shape.len() == 1 {
        with_front_axis(a)
    } else {
        Arc::clone(a)
    };
    let right = if b.shape.len() == 1 {
        reshape(b, &[b.shape[0], 1])
    } else {
        Arc::clone(b)
    };
    let shape = product_shape(&left.shape, &right.shape)?;
    let result = if a.shape.last() == Some(&0) {
        repeated_constant(0.0, &shape)
    } else {
        Node::operation(Kind::Matmul, &[&left, &right], &shape)
    };
    let mut gone = Vec::new();
    if a.shape.len() == 1 {
        gone.push(shape.len() - 2);
    }
    if b.shape.len() == 1 {
        gone.push(shape.len() - 1);
    }
    Ok(reshape(&result, &reduced(&shape, &gone, false)))
}

/// Checks that both operands have axes, and that the number of `b`'s rows is that of `a`'s columns.
fn check_inner(a: &Node, b: &Node) -> Result<()> {
    let scalar = [("a", a), ("b", b)];
    let scalar = scalar.into_iter().find(|(_, node)| node.shape.is_empty());
    if let Some((name, _)) = scalar {
        let requirement = "a tensor with axes; use `mul` for numbers";
        return Err(Error::invalid(name, "a scalar", requirement));
    }
    let rows = b.shape[b.shape.len().saturating_sub(2)];
    match a.shape.last() {
        Some(&cols) if cols != rows => {
            let has = format!("`b` has shape {:?}", b.shape);
            let needed = format!("but must have {cols} rows for shape {:?} of `a`", a.shape);
            Err(mismatch("matmul", format!("{has}, {needed}")))
        }
        _ => Ok(()),
    }
}

/// Returns the shape of a matmul of operands with at least two axes.
fn product_shape(a: &[usize], b: &[usize]) -> Result<Vec<usize>> {
    let (a_lead, a_last) = a.split_at(a.len() - 2);
    let (b_lead, b_last) = b.split_at(b.len() - 2);
    let mut shape = broadcast("matmul", &[("a", a_lead), ("b", b_lead)])?;
    shape.extend([a_last[0], b_last[1]]);
    check_result(&shape)?;
    Ok(shape)
}
