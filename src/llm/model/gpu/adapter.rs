//! Low-rank matrices on a GPU.

use super::super::BLOCK;
use super::super::adapter::Part;
use super::super::weights::Weights;
use super::{GpuModel, Pass};
use crate::error::Result;
use crate::gpu::{BlockWeights, GpuBuffer, Norm, Product, TransformerPass};
use crate::tensor::ggml::WeightType;

/// Low-rank matrices on a GPU, and memory for the values between the two.
pub(in super::super) struct GpuAdapter {
    /// By the number of the matrix of weights.
    parts: Vec<Option<GpuPart>>,
    between: GpuBuffer,
}

impl std::fmt::Debug for GpuAdapter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let parts = self.parts.iter().flatten().count();
        write!(f, "GpuAdapter({parts} matrices)")
    }
}

struct GpuPart {
    rank: usize,
    a: BlockWeights,
    b: BlockWeights,
}

impl GpuModel {
    /// Copies low-rank matrices to the GPU.
    pub(in super::super) async fn adapter(
        &self,
        weights: &Weights,
        all: &[Option<Part>],
    ) -> Result<GpuAdapter> {
        let mut parts = Vec::new();
        for (part, weight) in all.iter().zip(&weights.matrices) {
            let Some(Part { rank, a, b }) = part else {
                parts.push(None);
                continue;
            };
            parts.push(Some(GpuPart {
                rank: *rank,
                a: self.floats(a, weight.cols).await?,
                b: self.floats(b, *rank).await?,
            }));
        }
        let most = parts.iter().flatten().map(|part| part.rank).max();
        let mut pass = TransformerPass::new(&self.gpu)?;
        let between = pass.allocate(BLOCK * most.unwrap_or(1))?;
        Ok(GpuAdapter { parts, between })
    }

    async fn floats(&self, values: &[f32], cols: usize) -> Result<BlockWeights> {
        let bytes = bytemuck::cast_slice(values);
        BlockWeights::new(&self.gpu, WeightType::F32, &[bytes], cols).await
    }
}

impl Pass<'_> {
    /// Adds the products of adapters to that of a matrix, whose number is `matrix`, from `column` on.
    pub(super) fn adapt(
        &mut self,
        matrix: usize,
        (from, norm): (&GpuBuffer, Option<Norm<'_>>),
        to: (&GpuBuffer, usize, usize),
    ) -> Result<()> {
        let rows = self.block.tokens;
        for (adapter, scale) in self.adapters {
            let Some(adapter) = adapter.on_gpu() else {
                continue;
            };
            let Some(GpuPart { rank, a, b }) = &adapter.parts[matrix] else {
                continue;
            };
            let between = (&adapter.between, 0, *rank);
            let product = Product::of(rows);
            self.recorder.multiply(from, a, between, product, norm)?;
            let product = Product {
                adds: true,
                scale: *scale,
                ..product
            };
            self.recorder.multiply(between.0, b, to, product, None)?;
        }
        Ok(())
    }
}
