//! Weights where a back-end multiplies by them.

use std::sync::Arc;

use super::variants::GpuWeights;
use super::{Executor, foreign};
use crate::device::GpuDevice;
use crate::device::buffer::Storage;
use crate::error::{Error, Result};
use crate::ops::{CachedMatmul, OpClass, Weights};
use crate::runtime::OnOneThread;
use crate::simd::{self, Packed};
use crate::tensor::quantized::{QuantizedWeights, WeightFormat, matrix_shape};
use crate::tensor::{BoundView, Plane};

/// The weights of a `k × n` matrix, prepared for matmuls on a device.
pub(crate) struct Placed {
    /// `[k, n]`.
    pub(crate) shape: [usize; 2],
    pub(crate) format: WeightFormat,
    form: Form,
}

/// The form that a back-end multiplies by.
#[allow(dead_code)] // Without its feature, a variant is never constructed.
enum Form {
    /// Weights in the order in which the innermost loop on SIMD reads them.
    Packed(Arc<Packed>),
    Quantized(Arc<QuantizedWeights>),
    Gpu(Arc<OnOneThread<GpuWeights>>),
}

impl Placed {
    /// Prepares a view's weights: see [`crate::GpuMatmulCache::insert_view_async`].
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
        let form = match matmul_executor(device) {
            Executor::Gpu(gpu) => {
                with_gpu!(gpu, {
                    let weights = gpu.upload_weights(weights).await?;
                    Form::Gpu(Arc::new(OnOneThread::new(weights)))
                })
            }
            Executor::Cpu(_) | Executor::Cuda(_) => {
                let (isa, [k, n]) = (device.cpu().isa, shape);
                Form::Packed(Arc::new(match weights.plane() {
                    Some(plane) => Packed::new(isa, weights.data(), plane)?,
                    None => Packed::new(isa, &weights.contiguous()?, Plane::row_major(k, n))?,
                }))
            }
        };
        Ok(Self {
            shape,
            format,
            form,
        })
    }

    /// Prepares quantized weights: see [`crate::GpuMatmulCache::insert_quantized_async`].
    pub(crate) async fn of_quantized(
        device: &GpuDevice,
        weights: QuantizedWeights,
    ) -> Result<Self> {
        Ok(Self {
            shape: weights.shape(),
            format: weights.format(),
            form: match matmul_executor(device) {
                Executor::Gpu(gpu) => {
                    with_gpu!(gpu, {
                        let weights = gpu.upload_quantized(&weights).await?;
                        Form::Gpu(Arc::new(OnOneThread::new(weights)))
                    })
                }
                Executor::Cpu(_) | Executor::Cuda(_) => Form::Quantized(Arc::new(weights)),
            },
        })
    }

    /// Returns the size in bytes.
    pub(crate) fn bytes(&self) -> usize {
        match &self.form {
            Form::Packed(packed) => packed.bytes(),
            Form::Quantized(weights) => weights.bytes(),
            Form::Gpu(weights) => match weights.get() {
                Some(weights) => with_gpu!(weights, weights.bytes()),
                None => 0,
            },
        }
    }

    /// Returns the matmul of `m` rows with these weights, as an operation of their device.
    pub(crate) fn matmul(&self, m: usize) -> CachedMatmul {
        let weights: Weights = match &self.form {
            Form::Packed(packed) => packed.clone(),
            Form::Quantized(weights) => weights.clone(),
            Form::Gpu(weights) => weights.clone(),
        };
        CachedMatmul::new(m, self.shape, weights)
    }

    /// Returns the buffer of weights that are elements in a GPU's memory.
    pub(crate) fn storage(&self) -> Option<Storage> {
        match &self.form {
            Form::Gpu(weights) => {
                let weights = weights.get()?;
                with_gpu!(weights, weights.values().cloned().map(Storage::Gpu))
            }
            Form::Packed(_) | Form::Quantized(_) => None,
        }
    }

    /// Computes `out = input · weights` on their device. The caller has checked the lengths.
    pub(crate) async fn multiply(
        &self,
        device: &GpuDevice,
        input: &[f32],
        out: &mut [f32],
        m: usize,
    ) -> Result<()> {
        let (cpu, [k, n]) = (device.cpu(), self.shape);
        match (&self.form, device.executor()) {
            (Form::Packed(packed), _) => packed.multiply(cpu, input, out, m),
            (Form::Quantized(weights), _) => simd::multiply_words(cpu, weights, input, out, m),
            (Form::Gpu(_), _) if device.is_off(OpClass::Matmul) => Err(Error::WrongResults {
                what: "matmuls were turned off; insert the weights again".to_owned(),
            }),
            (Form::Gpu(weights), Executor::Gpu(gpu)) => {
                let weights = weights.get().ok_or_else(foreign)?;
                with_gpu!(gpu, gpu.multiply_by(weights, input, out, [m, k, n]).await)
            }
            (Form::Gpu(_), _) => Err(foreign()),
        }
    }
}

/// Returns the back-end on which matmuls run.
fn matmul_executor(device: &GpuDevice) -> Executor {
    device.executor_of([OpClass::Matmul].into_iter())
}
