//! Arguments of the methods of tensors.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::lazy::node::Node;
use crate::lazy::shape::broadcast;
use crate::lazy::tensor::Tensor;

/// A tensor, or a number, which broadcasts with every shape.
///
/// A number is an argument of the program that computes the result, so another number plans nothing.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Operand<'a> {
    /// A tensor of the same [`Tensors`](crate::Tensors).
    Tensor(&'a Tensor),
    /// A number.
    Number(f32),
}

impl<'a> From<&'a Tensor> for Operand<'a> {
    fn from(tensor: &'a Tensor) -> Self {
        Self::Tensor(tensor)
    }
}

impl From<f32> for Operand<'_> {
    fn from(number: f32) -> Self {
        Self::Number(number)
    }
}

impl Tensor {
    /// Returns the node of an argument of a method of this tensor.
    pub(super) fn beside<'a>(
        &self,
        what: &'static str,
        operand: impl Into<Operand<'a>>,
    ) -> Result<Arc<Node>> {
        match operand.into() {
            Operand::Number(value) => Ok(Node::number(value)),
            Operand::Tensor(other) if Arc::ptr_eq(&self.context, &other.context) => {
                Ok(Arc::clone(&other.node))
            }
            Operand::Tensor(_) => {
                let owner = "`Tensors`";
                Err(Error::Foreign { what, owner })
            }
        }
    }

    /// Returns the other argument of a function of two tensors, which must broadcast with each other.
    pub(super) fn broadcasting<'a>(
        &self,
        op: &'static str,
        [own, what]: [&'static str; 2],
        operand: impl Into<Operand<'a>>,
    ) -> Result<Tensor> {
        let node = self.beside(what, operand)?;
        broadcast(op, &[(own, self.shape()), (what, &node.shape)])?;
        Ok(self.with(node))
    }
}
