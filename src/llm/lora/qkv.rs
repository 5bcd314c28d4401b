//! Adapters whose matrices a program has in memory.

use super::Lora;
use crate::error::Result;
use crate::llm::LanguageModel;
use crate::llm::fingerprint;
use crate::llm::model::LowRank;

/// Low-rank matrices for the queries, keys and values of one layer, for programs that train or compute
/// them: `W + alpha / rank · B · A`.
///
/// A has `rank` rows as long as the model's embeddings; B has the number of rows of the projection, in the order of the
/// model's file. A row has `rank` elements.
///
/// ```no_run
/// use relampago::llm::{LanguageModel, QkvLora};
///
/// let model = LanguageModel::load("smollm2-135m.gguf", Default::default())?;
/// let (rank, alpha) = (4, 8.0);
/// let layer = QkvLora::new(rank, alpha)
///     .q(vec![0.01; rank * 576], vec![0.0; 576 * rank])
///     .v(vec![0.01; rank * 576], vec![0.0; 192 * rank]);
/// let lora = model.qkv_lora(&[(0, layer)])?;
/// assert_eq!(lora.layers(), 2);
/// # Ok::<(), relampago::Error>(())
/// ```
#[doc(alias = "QkvLoRA")]
#[derive(Clone, Debug, PartialEq)]
pub struct QkvLora {
    rank: usize,
    alpha: f32,
    /// The name of the projection, A and B.
    parts: Vec<(&'static str, Vec<f32>, Vec<f32>)>,
}

impl QkvLora {
    /// No matrices yet, of this rank and scale.
    pub fn new(rank: usize, alpha: f32) -> Self {
        let parts = Vec::new();
        Self { rank, alpha, parts }
    }

    /// Adds matrices for the queries.
    #[must_use]
    pub fn q(self, a: Vec<f32>, b: Vec<f32>) -> Self {
        self.with("attn_q", a, b)
    }

    /// Adds matrices for the keys.
    #[must_use]
    pub fn k(self, a: Vec<f32>, b: Vec<f32>) -> Self {
        self.with("attn_k", a, b)
    }

    /// Adds matrices for the values.
    #[must_use]
    pub fn v(self, a: Vec<f32>, b: Vec<f32>) -> Self {
        self.with("attn_v", a, b)
    }

    fn with(mut self, name: &'static str, a: Vec<f32>, b: Vec<f32>) -> Self {
        self.parts.retain(|part| part.0 != name);
        self.parts.push((name, a, b));
        self
    }

    fn matrices(&self, layer: usize) -> impl Iterator<Item = Result<LowRank>> {
        self.parts.iter().map(move |(name, a, b)| {
            let mut low_rank = LowRank {
                tensor: format!("blk.{layer}.{name}.weight"),
                rank: self.rank,
                a: a.clone(),
                b: b.clone(),
            };
            low_rank.scale_by_rank(Some(self.alpha))?;
            Ok(low_rank)
        })
    }
}

/// Returns the matrices for layers by number.
pub(in crate::llm) fn low_ranks(layers: &[(usize, QkvLora)]) -> Result<Vec<LowRank>> {
    let all = layers.iter();
    all.flat_map(|(layer, lora)| lora.matrices(*layer))
        .collect()
}

impl LanguageModel {
    /// Makes an adapter of matrices for some layers, which are numbered from 0.
    ///
    /// # Errors
    /// `InvalidModel` for a layer that the model does not have or that is fused with others there, and for
    /// matrices of another size or of rank 0; `InvalidArgument` for a scale that is not finite; `OutOfMemory`, `DeviceLost`.
    pub async fn qkv_lora_async(&self, layers: &[(usize, QkvLora)]) -> Result<Lora> {
        let matrices = low_ranks(layers)?;
        let values = matrices.iter().flat_map(|one| {
            let name = one.tensor.as_bytes();
            [
                name,
                bytemuck::cast_slice(&one.a),
                bytemuck::cast_slice(&one.b),
            ]
        });
        let fingerprint = fingerprint::of(values);
        self.lora(&matrices, fingerprint).await
    }

    /// Blocking version of [`LanguageModel::qkv_lora_async`].
    #[cfg(not(target_arch = "wasm32"))]
    pub fn qkv_lora(&self, layers: &[(usize, QkvLora)]) -> Result<Lora> {
        crate::runtime::block_on(self.qkv_lora_async(layers))
    }
}
