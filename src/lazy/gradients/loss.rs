//! Losses.

use crate::error::{Error, Result};
use crate::lazy::node::{Kind, Node};
use crate::lazy::shape::mismatch;
use crate::lazy::tensor::Tensor;

impl Tensor {
    /// Returns the mean cross entropy of logits, whose last axis has the classes: `−ln p` of the right class, by the
    /// softmax, without overflow. `labels` has the class of each row as an index, or, in the logits' shape, a probability
    /// for each class.
    ///
    /// ```
    /// # #[cfg(not(target_arch = "wasm32"))] {
    /// use relampago::{GpuDevice, Tensors};
    ///
    /// let tensors = Tensors::new(&GpuDevice::new()?);
    /// let logits = tensors.tensor(&[0.0, 0.0, 1000.0, 0.0], &[2, 2])?;
    /// let labels = tensors.tensor(&[1.0, 0.0], &[2])?;
    /// let loss = logits.cross_entropy(&labels)?;
    /// assert!((loss.item()? - 0.5 * 2_f32.ln()).abs() < 1e-6);
    /// assert_eq!(loss.gradients(&[&logits])?[0].read()?, [0.25, -0.25, 0.0, 0.0]);
    /// # }
    /// # Ok::<(), relampago::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ShapeMismatch` for labels of another shape, `Empty` if there are no rows, `InvalidArgument` for an index that is not
    /// below the number of classes where the host had it; where a device computed it, the loss is NaN.
    #[doc(alias = "softmax_cross_entropy")]
    pub fn cross_entropy(&self, labels: &Tensor) -> Result<Tensor> {
        let op = "cross_entropy";
        let labels = self.with(self.beside("labels", labels)?);
        let Some((&classes, rows)) = self.shape().split_last() else {
            let message = "a scalar has no axis of classes".to_owned();
            return Err(mismatch(op, message));
        };
        if self.size() == 0 {
            return Err(Error::Empty { op });
        }
        let logs = self.log_softmax(-1)?;
        if labels.shape() == self.shape() {
            return labels.mul(&logs)?.sum(-1)?.mean(..)?.neg();
        }
        if labels.shape() != rows {
            let (has, own) = (labels.shape(), self.shape());
            let needed = format!("{rows:?} or {own:?} for logits of shape {own:?}");
            let message = format!("`labels` has shape {has:?}, but must have {needed}");
            return Err(mismatch(op, message));
        }
        if let Some(given) = labels.node.given_indices() {
            given.check("labels", classes)?;
        }
        let indices = labels.unsqueeze(-1)?;
        let inputs = [&logs.node, &indices.node];
        let right = Node::operation(Kind::Take, &inputs, indices.shape());
        self.with(right).mean(..)?.neg()
    }
}
