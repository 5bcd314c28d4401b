//! Weights prepared for matmuls: packed or quantized for SIMD, or in a GPU's memory.

use crate::device::GpuDevice;
use crate::error::Result;
use crate::gpu::{self, GpuBuffer};
use crate::simd::{self, Packed};
use crate::tensor::quantized::{QuantizedWeights, WeightFormat, matrix_shape};
use crate::tensor::{BoundView, Plane};

/// The weights of a `k × n` matrix.
pub(crate) struct Placed {
    /// `[k, n]`.
    pub(crate) shape: [usize; 2],
    pub(crate) format: WeightFormat,
    pub(crate) bytes: usize,
    place: WeightStorage,
}

/// The place and the form of weights.
enum WeightStorage {
    Packed(Packed),
    Words(QuantizedWeights),
    Values(GpuBuffer),
    /// Quantized weights and, if matmuls run in f16, a second copy in f16 tiles.
    GpuWords(GpuBuffer, Option<GpuBuffer>),
}

impl Placed {
    /// Prepares a view's weights: see
    /// [`crate::device::matmul_cache::GpuMatmulCache::insert_view_async`].
    pub(crate) async fn of_view(
        device: &GpuDevice,
        weights: &BoundView<'_>,
        format: WeightFormat,
    ) -> Result<Self> {
        if format != WeightFormat::F32 {
            let weights = QuantizedWeights::of_view(weights, format)?;
            return Self::of_quantized(device, weights).await;
        }
        let shape = matrix_shape(weights)?;
        let (place, bytes) = WeightStorage::of_f32(device, weights, shape).await?;
        Ok(Self {
            shape,
            format,
            bytes,
            place,
        })
    }

    /// Prepares quantized weights: see
    /// [`crate::device::matmul_cache::GpuMatmulCache::insert_quantized_async`].
    pub(crate) async fn of_quantized(
        device: &GpuDevice,
        weights: QuantizedWeights,
    ) -> Result<Self> {
        let (shape, format, mut bytes) = (weights.shape(), weights.format(), weights.bytes());
        let place = match device.gpu() {
            Some(gpu) => {
                let words = gpu.upload_words(&weights.words).await?;
                let tiles = gpu.weights_in_tiles(&weights).await?;
                bytes += tiles
                    .as_ref()
                    .map_or(0, |tiles| tiles.len() * size_of::<u32>());
                WeightStorage::GpuWords(words, tiles)
            }
            None => WeightStorage::Words(weights),
        };
        Ok(Self {
            shape,
            format,
            bytes,
            place,
        })
    }

    /// Computes `out = input · weights` on their device. The caller has checked the lengths.
    pub(crate) async fn multiply(
        &self,
        device: &GpuDevice,
        input: &[f32],
        out: &mut [f32],
        m: usize,
    ) -> Result<()> {
        let [k, n] = self.shape;
        match (&self.place, device.gpu()) {
            (WeightStorage::Packed(packed), _) => packed.multiply(device.cpu(), input, out, m),
            (WeightStorage::Words(words), _) => {
                simd::multiply_words(device.cpu(), words, input, out, m)
            }
            (WeightStorage::Values(values), Some(gpu)) => {
                let weights = gpu::Weights::Values(values);
                gpu.multiply_by(weights, input, out, [m, k, n]).await
            }
            (WeightStorage::GpuWords(words, tiles), Some(gpu)) => {
                let weights = gpu::Weights::Words(self.format, words, tiles.as_ref());
                gpu.multiply_by(weights, input, out, [m, k, n]).await
            }
            (WeightStorage::Values(_) | WeightStorage::GpuWords(..), None) => {
                unreachable!("only a GPU is given weights to keep")
            }
        }
    }
}

impl WeightStorage {
    /// Prepares `f32` weights; returns them with their size in bytes.
    async fn of_f32(
        device: &GpuDevice,
        weights: &BoundView<'_>,
        [k, n]: [usize; 2],
    ) -> Result<(Self, usize)> {
        if let Some(gpu) = device.gpu() {
            let values = gpu.upload(&weights.contiguous()?).await?;
            let bytes = values.len() * size_of::<f32>();
            return Ok((Self::Values(values), bytes));
        }
        let isa = device.cpu().isa;
        let packed = match weights.plane() {
            Some(plane) => Packed::new(isa, weights.data(), plane)?,
            None => Packed::new(isa, &weights.contiguous()?, Plane::row_major(k, n))?,
        };
        let bytes = packed.bytes();
        Ok((Self::Packed(packed), bytes))
    }
}
