//! Low-rank matrices that are added to a model's weights as it runs (`LoRA`, Hu et al. 2021).

use super::Model;
use super::backend::BackendAdapter;
use super::rotation::Pairs;
use crate::alloc::try_zeros;
#[cfg(all(feature = "cuda", not(target_arch = "wasm32")))]
use crate::cuda::SharedCuda;
use crate::device::executor::SharedGpu;
use crate::error::{Error, Result};
use crate::llm::gguf::invalid;
use crate::simd::Cpu;
use std::sync::Arc;

/// Ranks are padded with zeros to a multiple of this number, because a GPU's kernels multiply eight elements at a time.
const RANK_STEP: usize = 8;

/// The order of the rows of a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::llm) enum HeadOrder {
    /// The order of the file's rotation.
    File,
    /// The order of Hugging Face's models: an element of a pair in each half.
    Halves,
}

/// `B · A`, which is added to the weights of a tensor.
#[derive(Debug)]
pub(in crate::llm) struct LowRank {
    /// The tensor's name.
    pub(in crate::llm) tensor: String,
    pub(in crate::llm) rank: usize,
    /// `rank` rows, as long as the tensor's.
    pub(in crate::llm) a: Vec<f32>,
    /// A matrix with the tensor's number of rows, each of `rank` elements. The scale is included.
    pub(in crate::llm) b: Vec<f32>,
}

/// The part of a [`LowRank`] that belongs to one matrix of a model.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) rank: usize,
    pub(super) a: Vec<f32>,
    pub(super) b: Vec<f32>,
}

/// Low-rank matrices for the matrices of one model, on its back-end.
#[derive(Debug)]
pub(in crate::llm) struct Adapter {
    /// The identity of the model.
    identity: Arc<()>,
    pub(super) parts: Parts,
}

/// The parts by the number of their matrix.
#[derive(Debug)]
pub(super) enum Parts {
    Cpu(BackendAdapter<Cpu>),
    Gpu(BackendAdapter<SharedGpu>),
    #[cfg(all(feature = "cuda", not(target_arch = "wasm32")))]
    Cuda(BackendAdapter<SharedCuda>),
}

/// An adapter with the factor by which its products are multiplied.
pub(in crate::llm) type Scaled = (Arc<Adapter>, f32);

impl Model {
    /// Puts rows of a linear layer into another order, if they are in that of Hugging Face's models or of the file: rows of
    /// queries and keys are permuted in the file where rotations take neighbours, head by head.
    ///
    /// # Errors
    /// `InvalidModel` if the rows are not the heads that the model has.
    pub(in crate::llm) fn ordered(
        &self,
        tensor: &str,
        rows: usize,
        values: Vec<f32>,
        order: HeadOrder,
    ) -> Result<Vec<f32>> {
        let config = &self.config;
        let permuted = [".attn_q.weight", ".attn_k.weight"];
        let permuted = permuted.iter().any(|ending| tensor.ends_with(ending));
        if !permuted || config.architecture.pairs != Pairs::Neighbours {
            return Ok(values);
        }
        let head = config.head_len;
        if !rows.is_multiple_of(head) || !head.is_multiple_of(2) {
            let what = format!("its {rows} rows are not heads of {head}");
            return Err(invalid(what, format!("adapter of `{tensor}`")));
        }
        let cols = values.len() / rows.max(1);
        let mut ordered = try_zeros(values.len())?;
        for (index, to) in ordered.chunks_exact_mut(cols.max(1)).enumerate() {
            let within = index % head;
            let from = match order {
                HeadOrder::File => within % 2 * (head / 2) + within / 2,
                HeadOrder::Halves => within % (head / 2) * 2 + within / (head / 2),
            };
            to.copy_from_slice(&values[(index - within + from) * cols..][..cols]);
        }
        Ok(ordered)
    }

    /// Returns the rows and columns of a linear layer by its tensor.
    pub(in crate::llm) fn linear_shape(&self, tensor: &str) -> Option<[usize; 2]> {
        let of_tensor = self.weights.matrices.iter();
        let of_tensor = of_tensor.filter(|weight| *weight.tensor == *tensor);
        let shapes = of_tensor.map(|weight| [weight.first_row + weight.rows, weight.cols]);
        shapes.max()
    }

    /// Returns whether one tensor has the gates of the feed-forward network and the values which they multiply.
    pub(in crate::llm) fn joins_gates(&self) -> bool {
        self.config.architecture.fused
    }

    /// Finds the matrices that low-rank matrices belong to, and moves them to the model's back-end.
    ///
    /// # Errors
    /// `InvalidModel` if the model has no such linear layer or it has another shape; `InvalidArgument` for an encoder;
    /// `OutOfMemory`; on a GPU `DeviceLost` and `LimitExceeded`.
    pub(in crate::llm) async fn adapter(&self, all: &[LowRank]) -> Result<Adapter> {
        self.check_decoder()?;
        let mut parts: Vec<Option<Part>> = Vec::new();
        parts.resize_with(self.weights.matrices.len(), || None);
        for low_rank in all {
            self.check_low_rank(low_rank)?;
            for (index, part) in parts.iter_mut().enumerate() {
                let weight = &self.weights.matrices[index];
                if *weight.tensor == *low_rank.tensor {
                    let rows = weight.first_row..weight.first_row + weight.rows;
                    *part = Some(low_rank.part(rows, weight.cols)?);
                }
            }
        }
        let parts = by_executor!(
            self.executor,
            _cpu => BackendAdapter::on_cpu(&self.weights, parts),
            gpu => gpu.adapter(&self.weights, parts).await?,
        );
        let identity = self.identity.clone();
        Ok(Adapter { identity, parts })
    }

    fn check_low_rank(&self, low_rank: &LowRank) -> Result<()> {
        let LowRank { tensor, rank, a, b } = low_rank;
        let fault = |what: &str| Err(invalid(what, format!("adapter of `{tensor}`")));
        if **tensor == *self.weights.matrices[self.weights.embedding].tensor {
            return fault(
                "adapters of the embedding are not supported, only those of linear layers",
            );
        }
        if tensor.ends_with("_exps.weight") {
            return fault("adapters of experts are not supported");
        }
        let Some([rows, cols]) = self.linear_shape(tensor) else {
            return fault("the model has no linear layer of this name");
        };
        let [needed_a, needed_b] = [cols, rows].map(|side| rank.saturating_mul(side));
        if *rank == 0 || a.len() != needed_a || b.len() != needed_b {
            let (a, b) = (a.len(), b.len());
            return fault(&format!(
                "A and B of rank {rank} have {a} and {b} elements, but {rows} rows of {cols} weights \
                 need {needed_a} and {needed_b}"
            ));
        }
        Ok(())
    }

    /// # Errors
    /// `Foreign` if another model made an adapter, `InvalidArgument` for a scale that is not finite.
    pub(in crate::llm) fn check_adapters(&self, adapters: &[Scaled]) -> Result<()> {
        for (adapter, scale) in adapters {
            if !Arc::ptr_eq(&adapter.identity, &self.identity) {
                return Err(Error::Foreign {
                    what: "lora",
                    owner: "model",
                });
            }
            if !scale.is_finite() {
                return Err(Error::invalid("scale", scale.to_string(), "finite"));
            }
        }
        Ok(())
    }
}

impl LowRank {
    /// Multiplies B by `alpha / rank`, or leaves it where there is no `alpha`.
    ///
    /// # Errors
    /// `InvalidArgument` if `alpha` is not finite.
    pub(in crate::llm) fn scale_by_rank(&mut self, alpha: Option<f32>) -> Result<()> {
        let scale = alpha.map_or(1.0, |alpha| alpha / self.rank.max(1) as f32);
        if !scale.is_finite() {
            return Err(Error::invalid("alpha", scale.to_string(), "finite"));
        }
        self.b.iter_mut().for_each(|x| *x *= scale);
        Ok(())
    }

    /// Copies the part of the adapter for some rows of the tensor.
    fn part(&self, rows: std::ops::Range<usize>, cols: usize) -> Result<Part> {
        let rank = self.rank.next_multiple_of(RANK_STEP);
        let mut a = try_zeros(rank * cols)?;
        a[..self.a.len()].copy_from_slice(&self.a);
        let mut b = try_zeros(rows.len() * rank)?;
        let from = self.b[rows.start * self.rank..].chunks_exact(self.rank);
        for (to, from) in b.chunks_exact_mut(rank).zip(from) {
            to[..self.rank].copy_from_slice(from);
        }
        Ok(Part { rank, a, b })
    }
}
