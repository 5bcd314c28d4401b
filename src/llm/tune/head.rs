//! The loss, and its gradient by the values after the last layer. The vocabulary is divided, so that the logits of all its
//! tokens never exist at once, and no buffer holds the whole head.

use super::batches::Batch;
use crate::alloc::try_zeros;
use crate::error::Result;
use crate::lazy::Tensor;
use crate::llm::model::{StepWeights, TensorModel};
use crate::runtime::pause;
use std::ops::Range;

/// The most logits that exist at once.
const MOST_LOGITS: usize = 1 << 22;

/// The vocabulary's pieces are multiples of this number of tokens.
const PIECE_STEP: usize = 64;

/// A number below all logits.
const LOWEST: f32 = -1e30;

/// The loss of a batch.
pub(super) struct Head<'a> {
    model: &'a TensorModel<'a>,
    vocabulary: usize,
    batch: &'a Batch,
    /// The values after the last layer, a row for each token.
    last: &'a Tensor,
    /// The weights of the norm after the last layer.
    norm: StepWeights,
    /// The rows of the head of the learned tokens.
    own: Tensor,
}

/// Sums of all pieces so far: of `exp(logit − highest)` for each row, and of the gradients of logits times these.
struct Sums {
    highest: Tensor,
    sum: Tensor,
    slope: Option<Tensor>,
}

impl<'a> Head<'a> {
    pub(super) fn new(
        model: &'a TensorModel<'a>,
        batch: &'a Batch,
        vocabulary: usize,
        last: &'a Tensor,
    ) -> Result<Self> {
        Ok(Self {
            model,
            vocabulary,
            batch,
            last,
            norm: model.norm_weights()?,
            own: model.head_rows(&batch.targets)?,
        })
    }

    /// Returns the mean of `−ln p` of the learned tokens.
    pub(super) async fn loss(&self) -> Result<f64> {
        let normed = self.normed()?.run_async().await?;
        let sums = self.sums(&normed, false).await?;
        self.mean_loss(&normed, &sums).await
    }

    /// Returns the loss, and its gradient by the values after the last layer.
    pub(super) async fn gradient(&self) -> Result<(f64, Tensor)> {
        let normed = self.normed()?.run_async().await?;
        let sums = self.sums(&normed, true).await?;
        let loss = self.mean_loss(&normed, &sums).await?;
        let (rows, count) = (self.batch.targets.len(), self.batch.count);
        let mut shares = try_zeros(rows)?;
        shares[..count].fill(1.0 / count.max(1) as f32);
        let shares = self.model.tensors.own(shares, &[rows, 1])?;
        let normed = self.normed()?;
        let own = self.model.logits_of_rows(&self.own, &normed)?;
        let mut total = own.mul(&shares)?.sum(..)?.neg()?;
        if let Some(slope) = &sums.slope {
            let slope = slope.div(&sums.sum)?.mul(&shares)?;
            total = normed.mul(&slope)?.sum(..)?.add(&total)?;
        }
        let gradient = total.gradients(&[self.last])?.remove(0);
        Ok((loss, gradient.run_async().await?))
    }

    /// Records the rows before learned tokens, normalised.
    fn normed(&self) -> Result<Tensor> {
        let rows = self.batch.rows.clone();
        let shape = [rows.len()];
        let rows = self.model.tensors.own(rows, &shape)?;
        self.model.normed(&self.norm, &self.last.gather(&rows, 0)?)
    }

    async fn sums(&self, normed: &Tensor, with_slope: bool) -> Result<Sums> {
        let tensors = &self.model.tensors;
        let column = [self.batch.targets.len(), 1];
        let slope = || tensors.own(try_zeros(normed.size())?, normed.shape());
        let mut sums = Sums {
            highest: tensors.own(vec![LOWEST; column[0]], &column)?,
            sum: tensors.own(try_zeros(column[0])?, &column)?,
            slope: if with_slope { Some(slope()?) } else { None },
        };
        for piece in self.pieces() {
            pause().await;
            let weights = self.model.head_weights(piece)?;
            let logits = self.model.logits(&weights, normed)?;
            sums = sums.with(normed, &logits)?;
            let mut results = vec![&sums.highest, &sums.sum];
            results.extend(&sums.slope);
            tensors.run_async(&results).await?;
        }
        Ok(sums)
    }

    async fn mean_loss(&self, normed: &Tensor, sums: &Sums) -> Result<f64> {
        let own = self.model.logits_of_rows(&self.own, normed)?;
        let all = [&sums.highest, &sums.sum, &own];
        let all = self.model.tensors.read_async(&all).await?;
        let losses = (0..self.batch.count).map(|row| {
            let [highest, sum, own] = [0, 1, 2].map(|at| f64::from(all[at][row]));
            highest + libm::log(sum) - own
        });
        Ok(losses.sum::<f64>() / self.batch.count.max(1) as f64)
    }

    fn pieces(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        let len = MOST_LOGITS / self.batch.targets.len().max(1);
        let len = (len / PIECE_STEP * PIECE_STEP).max(PIECE_STEP);
        let vocabulary = self.vocabulary;
        let starts = (0..vocabulary).step_by(len);
        starts.map(move |start| start..(start + len).min(vocabulary))
    }
}

impl Sums {
    /// Records the sums with the logits of one more piece.
    fn with(&self, normed: &Tensor, logits: &Tensor) -> Result<Self> {
        let highest = logits.max(-1)?.unsqueeze(-1)?.maximum(&self.highest)?;
        let powers = logits.sub(&highest)?.exp()?;
        let former = self.highest.sub(&highest)?.exp()?;
        let sum = powers.sum(-1)?.unsqueeze(-1)?;
        let slope = match &self.slope {
            Some(slope) => {
                let weighted = powers.stop_gradient()?.mul(logits)?.sum(..)?;
                let gradient = weighted.gradients(&[normed])?.remove(0);
                Some(slope.mul(&former)?.add(&gradient)?)
            }
            None => None,
        };
        Ok(Self {
            sum: self.sum.mul(&former)?.add(&sum)?,
            highest,
            slope,
        })
    }
}
