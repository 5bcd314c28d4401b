//! [`Executor`]: the back-end of a device, an operation or a plan. Lengths are validated.

// Without a feature, nothing uses the arguments of the arms that `variants` leaves out, waits or fails in them.
#![cfg_attr(
    not(all(feature = "gpu", feature = "cuda", not(target_arch = "wasm32"))),
    allow(unused_variables, clippy::unnecessary_wraps, clippy::unused_async)
)]

#[macro_use]
mod variants;
#[cfg(all(target_arch = "wasm32", feature = "js"))]
mod arrays;
mod measured;
mod plan;
mod weights;

use std::sync::Arc;

pub(crate) use measured::Started;
pub(crate) use plan::{PlanExecutor, Running, Timing};
pub(crate) use variants::{CudaValues, GpuBuffer, SharedCuda, SharedGpu};
pub(crate) use weights::Placed;

use super::buffer::Storage;
use super::info::DeviceInfo;
use super::routing::Routing;
use super::{Backend, tiled_reduce};
use crate::error::{Error, Result};
use crate::ops::reduce_op::Partials;
use crate::ops::{HalfPrecision, Matmul, Op};
use crate::simd::{self, Cpu, Fold};
use crate::tensor::{BoundView, PartitionView};

/// The names of kernels with their times in seconds.
type Times = Vec<(&'static str, f64)>;

/// A back-end: it uploads, reads, runs operations and runs plans.
#[derive(Clone)]
#[allow(dead_code)] // Without its feature, a variant is never constructed.
pub(crate) enum Executor {
    Cpu(Cpu),
    Gpu(SharedGpu),
    Cuda(SharedCuda),
}

impl Executor {
    pub(crate) fn backend(&self) -> Backend {
        match self {
            Self::Cpu(_) => Backend::Simd,
            Self::Gpu(_) => Backend::Gpu,
            Self::Cuda(cuda) => with_cuda!(cuda, Backend::Cuda),
        }
    }

    /// Returns the back-end's properties, for a device with this CPU and these thresholds.
    pub(super) fn info(&self, cpu: Cpu, reason: String, routing: &Routing) -> DeviceInfo {
        let info = DeviceInfo {
            backend: self.backend(),
            reason,
            adapter: None,
            api: None,
            software: false,
            instruction_set: cpu.isa,
            threads: cpu.threads,
            max_buffer_len: self.max_len(),
            half_precision: HalfPrecision::NoGpu,
            policy: routing.policy(),
            policy_source: routing.source(),
            turned_off: routing.turned_off(),
        };
        match self {
            Self::Cpu(_) => info,
            Self::Gpu(gpu) => with_gpu!(gpu, {
                let adapter = gpu.adapter();
                DeviceInfo {
                    adapter: Some(adapter.name.clone()),
                    api: Some(adapter.api.clone()),
                    software: adapter.software,
                    half_precision: gpu.half_precision(),
                    ..info
                }
            }),
            Self::Cuda(cuda) => with_cuda!(
                cuda,
                DeviceInfo {
                    adapter: Some(cuda.name().to_owned()),
                    api: Some("cuda".to_owned()),
                    half_precision: cuda.half_precision(),
                    ..info
                }
            ),
        }
    }

    /// Returns the largest number of elements in a buffer of a GPU; `None` if only memory limits it.
    pub(crate) fn max_len(&self) -> Option<usize> {
        match self {
            Self::Gpu(gpu) => with_gpu!(gpu, Some(gpu.max_len())),
            Self::Cpu(_) | Self::Cuda(_) => None,
        }
    }

    /// Returns `DeviceLost` if there was a GPU and it was lost.
    pub(crate) fn check(&self) -> Result<()> {
        match self {
            Self::Gpu(gpu) => with_gpu!(gpu, gpu.check()),
            Self::Cpu(_) | Self::Cuda(_) => Ok(()),
        }
    }

    /// Copies values to the back-end's memory.
    pub(crate) async fn upload(&self, values: &[f32]) -> Result<Storage> {
        Ok(match self {
            Self::Cpu(cpu) => Storage::Host(Arc::new(cpu.copy(values)?)),
            Self::Gpu(gpu) => with_gpu!(gpu, Storage::Gpu(gpu.upload(values).await?)),
            Self::Cuda(cuda) => with_cuda!(cuda, Storage::Cuda(cuda.upload(values)?)),
        })
    }

    /// Copies values from the back-end's memory.
    pub(crate) async fn read(&self, storage: &Storage, cpu: Cpu) -> Result<Vec<f32>> {
        match (storage, self) {
            (Storage::Host(values), _) => cpu.copy(values),
            (Storage::Gpu(buffer), Self::Gpu(gpu)) => with_gpu!(gpu, gpu.read(buffer).await),
            (Storage::Cuda(values), Self::Cuda(cuda)) => with_cuda!(cuda, cuda.read(values)),
            (Storage::Gpu(_) | Storage::Cuda(_), _) => Err(foreign()),
        }
    }

    /// Runs an operation, and returns whether it did: a GPU takes [`Executor::run`].
    pub(crate) fn run_now(&self, op: &Op, inputs: &[&[f32]], out: &mut [f32]) -> Result<bool> {
        match self {
            Self::Cpu(cpu) => simd::execute(*cpu, op, inputs, out)?,
            Self::Gpu(_) => return Ok(false),
            Self::Cuda(cuda) => with_cuda!(cuda, cuda.run(op, inputs, out)?),
        }
        Ok(true)
    }

    /// Runs an operation.
    pub(crate) async fn run(&self, op: &Op, inputs: &[&[f32]], out: &mut [f32]) -> Result<()> {
        match self {
            Self::Gpu(gpu) => with_gpu!(gpu, gpu.run(op, inputs, out).await),
            Self::Cpu(_) | Self::Cuda(_) => self.run_now(op, inputs, out).map(drop),
        }
    }

    /// Adds the matmul of `a` and `b` to `c`.
    pub(crate) async fn multiply_add(
        &self,
        cpu: Cpu,
        options: Matmul,
        [a, b]: [&[f32]; 2],
        c: &mut [f32],
    ) -> Result<()> {
        match self {
            Self::Gpu(gpu) => with_gpu!(gpu, {
                let op = Op::MatmulWith { options };
                gpu.multiply_add(op, [a, b], c).await
            }),
            Self::Cpu(_) | Self::Cuda(_) => simd::multiply_add(cpu, &options, a, b, c),
        }
    }

    /// Reduces each tile of a row-major matrix of this shape to one value.
    pub(crate) async fn fold_tiles(
        &self,
        fold: &Fold,
        cpu: Cpu,
        tiles: &PartitionView,
        data: &[f32],
        shape: [usize; 2],
    ) -> Result<Partials> {
        match self {
            Self::Gpu(gpu) => with_gpu!(
                gpu,
                Ok(Partials {
                    values: gpu.fold_tiles(fold, data, shape).await?,
                    tile_count: tiles.tile_count(),
                })
            ),
            Self::Cpu(_) | Self::Cuda(_) => fold.tiles(cpu, &tiles.tensor().bind(data)?, tiles),
        }
    }

    /// Reduces a row-major matrix of this shape to one value, tile by tile.
    pub(crate) async fn fold_all(
        &self,
        fold: &Fold,
        cpu: Cpu,
        matrix: &BoundView<'_>,
        shape: [usize; 2],
    ) -> Result<f32> {
        match self {
            Self::Gpu(gpu) => with_gpu!(gpu, gpu.fold_all_tiles(fold, matrix.data(), shape).await),
            Self::Cpu(_) | Self::Cuda(_) => tiled_reduce::fold_all(fold, cpu, matrix),
        }
    }

    /// Makes the kernels of an operation on inputs of these lengths, where they are made at run time.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) async fn warm(&self, op: &Op, lens: &[usize], len: usize) -> Result<()> {
        match self {
            Self::Gpu(gpu) => with_gpu!(gpu, gpu.warm(op, lens, len).await),
            Self::Cpu(_) | Self::Cuda(_) => Ok(()),
        }
    }

    /// Measures the kernels that can compute an operation, if there are several.
    pub(crate) async fn tune(&self, op: &Op, lens: &[usize], len: usize) -> Result<Times> {
        match self {
            Self::Gpu(gpu) => with_gpu!(gpu, gpu.tune(op, lens, len).await),
            Self::Cpu(_) | Self::Cuda(_) => Ok(Vec::new()),
        }
    }
}

/// The error of a buffer that another back-end made.
pub(crate) fn foreign() -> Error {
    Error::Foreign {
        what: "buffer",
        owner: "back-end",
    }
}
