//! Low-rank matrices on a back-end.

use super::super::adapter::{Part, Parts};
use super::super::steps::WeightId;
use super::super::weights::Weights;
use super::{BackendModel, ModelBackend, Pass};
use crate::cpu::CpuWeights;
use crate::error::Result;
use crate::graph::steps::{Columns, LowRankProduct, StepBackend, StepPass};
use crate::simd::Cpu;
use crate::tensor::ggml::WeightType;
use std::sync::Arc;

/// Low-rank matrices on a back-end, and memory for the values between the two, which a pass on SIMD has itself.
pub(in super::super) struct BackendAdapter<B: StepBackend> {
    /// By the number of the matrix of weights.
    parts: Vec<Option<BackendPart<B::Weights>>>,
    between: B::Buffer,
}

impl<B: StepBackend> std::fmt::Debug for BackendAdapter<B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let parts = self.parts.iter().flatten().count();
        write!(f, "BackendAdapter({parts} matrices)")
    }
}

struct BackendPart<W> {
    rank: usize,
    a: W,
    b: W,
}

impl BackendAdapter<Cpu> {
    /// Takes low-rank matrices, which stay where they are.
    pub(in super::super) fn on_cpu(weights: &Weights, all: Vec<Option<Part>>) -> Parts {
        let floats = |values, cols| CpuWeights::new(WeightType::F32, Arc::new(values), cols);
        let parts = all.into_iter().zip(&weights.matrices);
        let parts = parts.map(|(part, weight)| {
            part.map(|Part { rank, a, b }| BackendPart {
                rank,
                a: floats(a, weight.cols),
                b: floats(b, rank),
            })
        });
        Parts::Cpu(Self {
            parts: parts.collect(),
            between: Arc::default(),
        })
    }
}

impl<B: ModelBackend> BackendModel<B> {
    /// Copies low-rank matrices to the back-end.
    pub(in super::super) async fn adapter(
        &self,
        weights: &Weights,
        all: Vec<Option<Part>>,
    ) -> Result<Parts> {
        let mut parts = Vec::new();
        for (part, weight) in all.into_iter().zip(&weights.matrices) {
            let Some(Part { rank, a, b }) = part else {
                parts.push(None);
                continue;
            };
            parts.push(Some(BackendPart {
                rank,
                a: self.floats(&a, weight.cols).await?,
                b: self.floats(&b, rank).await?,
            }));
        }
        let most = parts.iter().flatten().map(|part| part.rank).max();
        let mut pass = self.backend.pass()?;
        let between = pass.allocate(self.block() * most.unwrap_or(1))?;
        Ok(B::parts(BackendAdapter { parts, between }))
    }

    async fn floats(&self, values: &[f32], cols: usize) -> Result<B::Weights> {
        let bytes = bytemuck::cast_slice(values);
        self.backend.weights(WeightType::F32, &[bytes], cols).await
    }
}

impl<'a, B: ModelBackend> Pass<'a, B> {
    /// Returns the products of adapters that are added to those of a matrix, or of matrices that became one, times the factor
    /// of these.
    pub(super) fn low_rank_products(
        &self,
        weight: WeightId,
        (to, mut column, columns): Columns<'a, B::Buffer>,
        factor: f32,
    ) -> Vec<LowRankProduct<'a, B::Buffer, B::Weights>> {
        let (on, adapters) = (self.on, self.adapters);
        let joined = on.joined.iter().find(|rows| rows.contains(&weight.0));
        let mut products = Vec::new();
        for &matrix in joined.map_or(&[weight.0][..], Vec::as_slice) {
            for (adapter, scale) in adapters {
                let Some(adapter) = B::adapter(&adapter.parts) else {
                    continue;
                };
                let Some(BackendPart { rank, a, b }) = &adapter.parts[matrix] else {
                    continue;
                };
                products.push(LowRankProduct {
                    a,
                    b,
                    scale: *scale * factor,
                    between: (&adapter.between, 0, *rank),
                    y: (to, column, columns),
                });
            }
            column += self.model.weights.matrices[matrix].rows;
        }
        products
    }
}
