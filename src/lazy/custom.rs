//! Operations of the user's own.

use std::sync::Arc;

use crate::error::Result;
use crate::lazy::axes::Axes;
use crate::lazy::elementwise::elementwise;
use crate::lazy::movement::repeated_constant;
use crate::lazy::node::{Kind, Node};
use crate::lazy::operand::Operand;
use crate::lazy::shape::{Named, broadcast, reduced};
use crate::lazy::tensor::Tensor;
use crate::ops::Reduction;
use crate::ops::custom::CustomOp;
use crate::ops::reduce_op::ReduceOp;
use crate::ops::shape::check_len;

/// Operations of the user's own: [`CustomOp`] and [`ReduceOp`].
///
/// ```
/// # #[cfg(not(target_arch = "wasm32"))] {
/// use relampago::{CustomOp, GpuDevice, SumOp, Tensors};
///
/// let tensors = Tensors::new(&GpuDevice::new()?);
/// let x = tensors.tensor(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], &[2, 3])?;
/// let column = tensors.tensor(&[10.0, 20.0], &[2, 1])?;
/// let mixed = CustomOp::new("mix", &["a", "b"], &["t"], "a + t * (b - a)", |[a, b], [t]| {
///     a + t * (b - a)
/// })?;
/// let y = x.custom_elementwise(&mixed, &[(&column).into()], &[0.5])?;
/// assert_eq!(y.read()?, [5.5, 6.0, 6.5, 12.0, 12.5, 13.0]);
/// assert_eq!(y.custom_reduce::<SumOp>(1)?.read()?, [18.0, 37.5]);
/// # }
/// # Ok::<(), relampago::Error>(())
/// ```
impl Tensor {
    /// Applies a custom elementwise operation, whose first input is this tensor. All inputs broadcast with each other;
    /// the parameters belong to the structure of the program.
    ///
    /// # Errors
    /// `LengthMismatch` for a wrong number of inputs or parameters.
    pub fn custom_elementwise(
        &self,
        op: &CustomOp,
        others: &[Operand<'_>],
        parameters: &[f32],
    ) -> Result<Tensor> {
        let call = op.with(parameters)?;
        let names = call.inputs();
        check_len("inputs", names.len(), 1 + others.len())?;
        let mut nodes = vec![Arc::clone(&self.node)];
        for (name, other) in names[1..].iter().zip(others) {
            nodes.push(self.beside(name, *other)?);
        }
        let named = names.iter().zip(&nodes);
        let named: Vec<Named<'_>> = named.map(|(&name, node)| (name, &node.shape[..])).collect();
        let shape = broadcast(op.name(), &named)?;
        let nodes: Vec<&Arc<Node>> = nodes.iter().collect();
        Ok(self.with(elementwise(call, &nodes, &shape)))
    }

    /// Reduces along axes by a [`ReduceOp`]; its identity where there are no elements along the axes.
    ///
    /// # Errors
    /// `InvalidArgument` if the reduction breaks a law of [`ReduceOp`]; as the tensor is computed on a GPU, also if it
    /// has no WGSL, and `Wgsl` if that is invalid.
    pub fn custom_reduce<O: ReduceOp>(&self, axes: impl Into<Axes>) -> Result<Tensor> {
        let given = axes.into();
        let (axes, keep_dims) = (given.of_shape(self.shape())?, given.keep_dims);
        let reduction = Reduction::of::<O>()?;
        let shape = reduced(self.shape(), &axes, keep_dims);
        if axes.iter().any(|&axis| self.shape()[axis] == 0) {
            return Ok(self.with(repeated_constant(reduction.identity, &shape)));
        }
        let kind = Kind::CustomReduce {
            reduction,
            axes,
            keep_dims,
        };
        Ok(self.with(Node::operation(kind, &[&self.node], &shape)))
    }
}
