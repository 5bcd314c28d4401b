//! [`Executor`]: the back-end of a device, an operation or a plan.

use std::sync::Arc;

use super::buffer::Storage;
use crate::cpu::PlanState;
use crate::device::CudaBackend;
use crate::error::{Error, Result};
use crate::gpu::{Gpu, Texts};
use crate::graph::Plan;
use crate::simd::Cpu;

/// A back-end: it uploads, reads, runs operations and runs plans.
#[derive(Clone)]
pub(crate) enum Executor {
    Cpu(Cpu),
    Gpu(Arc<Gpu>),
    // Nothing makes one without the feature `cuda`.
    #[cfg_attr(
        not(all(feature = "cuda", not(target_arch = "wasm32"))),
        allow(dead_code)
    )]
    Cuda(Arc<CudaBackend>),
}

impl Executor {
    pub(crate) fn gpu(&self) -> Option<&Arc<Gpu>> {
        match self {
            Self::Gpu(gpu) => Some(gpu),
            Self::Cpu(_) | Self::Cuda(_) => None,
        }
    }

    /// Returns `DeviceLost` if there was a GPU and it was lost.
    pub(crate) fn check(&self) -> Result<()> {
        self.gpu().map_or(Ok(()), |gpu| gpu.check())
    }

    /// Copies values to the back-end's memory.
    pub(crate) async fn upload(&self, values: &[f32]) -> Result<Storage> {
        Ok(match self {
            Self::Cpu(cpu) => Storage::Host(Arc::new(cpu.copy(values)?)),
            Self::Gpu(gpu) => Storage::Gpu(gpu.upload(values).await?),
            Self::Cuda(cuda) => Storage::Cuda(cuda.upload(values)?),
        })
    }

    /// Copies values from the back-end's memory.
    pub(crate) async fn read(&self, storage: &Storage, cpu: Cpu) -> Result<Vec<f32>> {
        match (storage, self) {
            (Storage::Host(values), _) => cpu.copy(values),
            (Storage::Gpu(buffer), Self::Gpu(gpu)) => gpu.read(buffer).await,
            (Storage::Cuda(values), Self::Cuda(cuda)) => cuda.read(values),
            (Storage::Gpu(_) | Storage::Cuda(_), _) => Err(foreign()),
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

/// The back-end of a plan, with what it keeps of the plan from run to run.
pub(crate) enum PlanExecutor {
    Cpu(Cpu, PlanState),
    Gpu(Arc<Gpu>, Texts),
    Cuda(Arc<CudaBackend>),
}

impl PlanExecutor {
    pub(crate) fn new(executor: Executor, plan: &Plan) -> Self {
        match executor {
            Executor::Cpu(cpu) => Self::Cpu(cpu, PlanState::default()),
            Executor::Gpu(gpu) => Self::Gpu(gpu, Texts::new(plan)),
            Executor::Cuda(cuda) => Self::Cuda(cuda),
        }
    }

    pub(crate) fn is_cpu(&self) -> bool {
        matches!(self, Self::Cpu(..))
    }
}
