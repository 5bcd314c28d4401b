//! The loss, and its gradient by the values after the last layer. The vocabulary is divided, so that the logits of all its
//! tokens never exist at once, and no buffer holds the whole head.

use super::batches::Batch;
use crate::error::Result;
use crate::lazy::Tensor;
use crate::llm::model::{StepWeights, TensorModel};
use crate::runtime::pause;
use std::ops::Range;

/// The most logits that exist at once.
const MOST_LOGITS: usize = 1 << 22;

/// The vocabulary's pieces are multiples of this number of tokens.
const PIECE_STEP: usize = 64;

/// The loss of a batch.
pub(super) struct Head<'a> {
    model: &'a TensorModel<'a>,
    vocabulary: usize,
    batch: &'a Batch,
    /// The values of the tokens before learned ones, after the last norm.
    normed: Tensor,
    /// The learned tokens, a row for each.
    targets: Tensor,
}

/// The loss, and what its gradient needs of each row.
struct Likelihoods {
    loss: f64,
    /// The logarithm of the sum of all exponentials of logits.
    log_sums: Vec<f32>,
}

impl<'a> Head<'a> {
    /// Normalises the rows before learned tokens.
    pub(super) async fn new(
        model: &'a TensorModel<'a>,
        batch: &'a Batch,
        vocabulary: usize,
        last: &Tensor,
    ) -> Result<Self> {
        let normed = rows_before(model, &model.norm_weights()?, batch, last)?;
        let targets: Vec<f32> = batch.targets.iter().map(|&id| id as f32).collect();
        let targets = model.tensors.own(targets, &[batch.targets.len(), 1])?;
        Ok(Self {
            model,
            vocabulary,
            batch,
            normed: normed.run_async().await?,
            targets,
        })
    }

    /// Returns the mean of `−ln p` of the learned tokens.
    pub(super) async fn loss(&self) -> Result<f64> {
        Ok(self.likelihoods().await?.loss)
    }

    /// Returns the loss, and its gradient by the values after the last layer.
    pub(super) async fn gradient(&self, last: &Tensor) -> Result<(f64, Tensor)> {
        let Likelihoods { loss, log_sums } = self.likelihoods().await?;
        let rows = log_sums.len();
        let log_sums = self.model.tensors.own(log_sums, &[rows, 1])?;
        let share = 1.0 / self.batch.count.max(1) as f32;
        let shares = (0..rows).map(|row| if row < self.batch.count { share } else { 0.0 });
        let shares = self.model.tensors.own(shares.collect(), &[rows, 1])?;
        let zeros = crate::alloc::try_zeros(self.normed.size())?;
        let mut sum = self.model.tensors.own(zeros, self.normed.shape())?;
        for piece in self.pieces() {
            pause().await;
            let (logits, is_target) = self.logits(&piece)?;
            let slope = logits.sub(&log_sums)?.exp()?.sub(&is_target)?.mul(&shares)?;
            let loss = slope.stop_gradient()?.mul(&logits)?.sum(..)?;
            let gradient = loss.gradients(&[&self.normed])?.remove(0);
            sum = sum.add(&gradient)?.run_async().await?;
        }
        let normed = rows_before(self.model, &self.model.norm_weights()?, self.batch, last)?;
        let loss_of_rows = normed.mul(&sum)?.sum(..)?;
        let gradient = loss_of_rows.gradients(&[last])?.remove(0);
        Ok((loss, gradient.run_async().await?))
    }

    async fn likelihoods(&self) -> Result<Likelihoods> {
        let rows = self.batch.targets.len();
        let (mut highest, mut sums) = (vec![f64::NEG_INFINITY; rows], vec![0.0; rows]);
        let mut of_targets = vec![0.0; rows];
        for piece in self.pieces() {
            pause().await;
            let (logits, is_target) = self.logits(&piece)?;
            let max = logits.max(-1)?;
            let sum = logits.sub(&max.unsqueeze(-1)?)?.exp()?.sum(-1)?;
            let own = logits.mul(&is_target)?.sum(-1)?;
            let found = self.model.tensors.read_async(&[&max, &sum, &own]).await?;
            for row in 0..rows {
                let [max, sum, own] = [0, 1, 2].map(|at| f64::from(found[at][row]));
                let new = highest[row].max(max);
                sums[row] = sums[row] * libm::exp(highest[row] - new) + sum * libm::exp(max - new);
                highest[row] = new;
                of_targets[row] += own;
            }
        }
        let log_sums = highest.iter().zip(&sums).map(|(max, sum)| max + libm::log(*sum));
        let log_sums: Vec<f64> = log_sums.collect();
        let losses = log_sums.iter().zip(&of_targets).map(|(sum, own)| sum - own);
        let loss = losses.take(self.batch.count).sum::<f64>() / self.batch.count.max(1) as f64;
        Ok(Likelihoods {
            loss,
            log_sums: log_sums.into_iter().map(|sum| sum as f32).collect(),
        })
    }

    /// Records the logits of a piece of the vocabulary, and 1 where a logit is that of the learned token.
    fn logits(&self, piece: &Range<usize>) -> Result<(Tensor, Tensor)> {
        let weights: StepWeights = self.model.head_weights(piece.clone())?;
        let logits = self.model.logits(&weights, &self.normed)?;
        let tokens = self.model.tensors.arange(0.0, piece.len() as f32, 1.0)?;
        let is_target = self.targets.sub(piece.start as f32)?.equal(&tokens)?;
        Ok((logits, is_target))
    }

    fn pieces(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        let len = MOST_LOGITS / self.batch.targets.len().max(1);
        let len = (len / PIECE_STEP * PIECE_STEP).max(PIECE_STEP);
        let vocabulary = self.vocabulary;
        let starts = (0..vocabulary).step_by(len);
        starts.map(move |start| start..(start + len).min(vocabulary))
    }
}

/// Records the rows before learned tokens, normalised.
fn rows_before(
    model: &TensorModel<'_>,
    weights: &StepWeights,
    batch: &Batch,
    last: &Tensor,
) -> Result<Tensor> {
    let rows = model.tensors.own(batch.rows.clone(), &[batch.rows.len()])?;
    model.normed(weights, &last.gather(&rows, 0)?)
}
