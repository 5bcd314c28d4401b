//! Low-rank matrices on a GPU.

use super::super::adapter::{Part, Parts};
use super::super::weights::Weights;
use super::{GpuModel, ModelBackend, Pass};
use crate::error::Result;
use crate::graph::steps::{Columns, Norm, Product, StepBackend, StepPass};
use crate::tensor::ggml::WeightType;

/// Low-rank matrices on a GPU, and memory for the values between the two.
pub(in super::super) struct GpuAdapter<B: StepBackend> {
    /// By the number of the matrix of weights.
    parts: Vec<Option<GpuPart<B::Weights>>>,
    between: B::Buffer,
}

impl<B: StepBackend> std::fmt::Debug for GpuAdapter<B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let parts = self.parts.iter().flatten().count();
        write!(f, "GpuAdapter({parts} matrices)")
    }
}

struct GpuPart<W> {
    rank: usize,
    a: W,
    b: W,
}

impl<B: ModelBackend> GpuModel<B> {
    /// Copies low-rank matrices to the GPU.
    pub(in super::super) async fn adapter(
        &self,
        weights: &Weights,
        all: Vec<Option<Part>>,
    ) -> Result<Parts> {
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
        let mut pass = self.gpu.pass()?;
        let between = pass.allocate(self.block() * most.unwrap_or(1))?;
        Ok(B::parts(GpuAdapter { parts, between }))
    }

    async fn floats(&self, values: &[f32], cols: usize) -> Result<B::Weights> {
        let bytes = bytemuck::cast_slice(values);
        self.gpu.weights(WeightType::F32, &[bytes], cols).await
    }
}

impl<B: ModelBackend> Pass<'_, B> {
    /// Adds the products of adapters to that of a matrix, whose number is `matrix`, from `column` on.
    pub(super) fn adapt(
        &mut self,
        matrix: usize,
        (from, norm): (&B::Buffer, Option<Norm<'_, B::Buffer>>),
        to: Columns<'_, B::Buffer>,
    ) -> Result<()> {
        let rows = self.block.tokens;
        for (adapter, scale) in self.adapters {
            let Some(adapter) = B::adapter(&adapter.parts) else {
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
