//! The methods of tensors for gradients.

use std::sync::Arc;

use crate::error::Result;
use crate::lazy::gradients::differentiate;
use crate::lazy::graph::Graph;
use crate::lazy::node::{Kind, Node};
use crate::lazy::structure::Described;
use crate::lazy::tensor::Tensor;

/// Gradients.
///
/// - Where several elements are the largest or smallest ones, and where both inputs of `maximum` or `minimum` are equal,
///   they share the gradient evenly, as in JAX. `relu` and `abs` have the gradient 0 at 0; `clip` passes it at its bounds.
/// - Comparisons, logical operations, rounding and indices change by steps, so that no gradient flows through them.
/// - Computed tensors are leaves: [`run_async`](Tensor::run_async) ends the way of a gradient, and reading does not.
impl Tensor {
    /// Returns the gradients of this tensor, which has one element, with respect to others: lazy tensors of their
    /// shapes. A tensor that this one does not depend on gets zeros. Gradients have gradients, too.
    ///
    /// ```
    /// # #[cfg(not(target_arch = "wasm32"))] {
    /// use relampago::{GpuDevice, Tensors};
    ///
    /// let tensors = Tensors::new(&GpuDevice::new()?);
    /// let x = tensors.tensor(&[1.0, 2.0, 3.0], &[3])?;
    /// let gradients = x.mul(&x)?.sum(..)?.gradients(&[&x])?;
    /// assert_eq!(gradients[0].read()?, [2.0, 4.0, 6.0]);
    /// let second = gradients[0].square()?.sum(..)?.gradients(&[&x])?;
    /// assert_eq!(second[0].read()?, [8.0, 16.0, 24.0]);
    /// # }
    /// # Ok::<(), relampago::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ShapeMismatch` if this tensor has more or less than one element, `InvalidArgument` if it was run already,
    /// `NoGradient` for a custom operation without [derivatives](crate::CustomOp::with_derivatives) and for a custom
    /// reduction, `Foreign` for a tensor of other [`Tensors`](crate::Tensors).
    #[doc(alias = "grad")]
    #[doc(alias = "backward")]
    pub fn gradients(&self, with_respect_to: &[&Tensor]) -> Result<Vec<Tensor>> {
        let mut roots = vec![Arc::clone(&self.node)];
        for &tensor in with_respect_to {
            roots.push(self.beside("with_respect_to", tensor)?);
        }
        let graph = Graph::of(&roots);
        let structure = graph.structure();
        let (loss, others) = (graph.results[0], &graph.results[1..]);
        let differentiated = differentiate(structure.nodes, loss, others)?;
        let mut nodes: Vec<Arc<Node>> = graph.entries.into_iter().map(|entry| entry.node).collect();
        Described::record(differentiated.nodes, &mut nodes);
        let found = differentiated.gradients.iter();
        Ok(found
            .map(|&node| self.with(Arc::clone(&nodes[node])))
            .collect())
    }

    /// Returns the same elements as a constant, through which no gradient flows.
    #[doc(alias = "detach")]
    pub fn stop_gradient(&self) -> Result<Tensor> {
        let kind = Kind::StopGradient;
        Ok(self.with(Node::operation(kind, &[&self.node], self.shape())))
    }
}
