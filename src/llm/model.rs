//! A model: its hyperparameters, its weights, and the forward pass.

/// Evaluates the code for a model on its back-end. [`CpuModel`] and [`GpuModel`] have methods of the same names.
macro_rules! by_executor {
    ($executor:expr, $on:ident => $run:expr $(,)?) => {
        match &$executor {
            crate::llm::model::Executor::Cpu($on) => $run,
            crate::llm::model::Executor::Gpu($on) => $run,
            #[cfg(all(feature = "cuda", not(target_arch = "wasm32")))]
            crate::llm::model::Executor::Cuda($on) => $run,
        }
    };
}

mod adapter;
mod architecture;
mod cpu;
mod explain;
mod forward;
mod gpu;
mod known_keys;
mod kv_cache;
mod layout;
mod metadata;
mod rotation;
mod steps;
mod weights;

use super::gguf::{Gguf, invalid};
use super::{CacheType, LoadOptions};
#[cfg(all(feature = "cuda", not(target_arch = "wasm32")))]
use crate::cuda::SharedCuda;
use crate::device::executor::Executor as DeviceExecutor;
use crate::device::executor::SharedGpu;
use crate::device::{Backend, GpuDevice};
use crate::error::{Error, Result};
use crate::ops::HalfPrecision;
pub(super) use adapter::{Adapter, LowRank, Scaled};
pub(super) use architecture::Config;
use cpu::{CpuModel, CpuSequence};
pub(super) use forward::{BlockRequest, Input, Output};
pub(crate) use forward::{MOST_CHOICES, Wanted};
pub(super) use gpu::Upload;
use gpu::{GpuModel, GpuSequence};
use kv_cache::KvCache;
pub(super) use layout::KeptPositions;
use std::sync::Arc;
use steps::Steps;
use weights::Weights;

/// A model whose weights stay in blocks of few bits. Clones share them.
#[derive(Clone, Debug)]
pub(super) struct Model {
    pub(super) file: Arc<Gguf>,
    pub(super) config: Config,
    weights: Arc<Weights>,
    steps: Arc<Steps>,
    executor: Executor,
    /// Marks the adapters of this model on this back-end. Clones share it until one of them moves.
    identity: Arc<()>,
}

/// The back-end of a model.
#[derive(Clone, Debug)]
enum Executor {
    Cpu(CpuModel),
    Gpu(Arc<GpuModel<SharedGpu>>),
    #[cfg(all(feature = "cuda", not(target_arch = "wasm32")))]
    Cuda(Arc<GpuModel<SharedCuda>>),
}

/// The memory of a sequence of tokens on its back-end.
#[derive(Debug)]
pub(super) enum State {
    Cpu(Box<CpuSequence>),
    Gpu(GpuSequence<SharedGpu>),
    #[cfg(all(feature = "cuda", not(target_arch = "wasm32")))]
    Cuda(GpuSequence<SharedCuda>),
}

/// Reads the hyperparameters of a file's model, its steps, and the positions of its weights. It checks everything that
/// can be checked without the weights.
///
/// # Errors
/// `InvalidModel` for what is not supported, damaged or missing; `InvalidArgument` for a context out of range.
fn read(
    file: &Gguf,
    capacity: Option<usize>,
    cache_type: CacheType,
) -> Result<(Config, Steps, Weights)> {
    let config = Config::new(file, capacity, cache_type)?;
    let (steps, weights) = Steps::new(file, &config)?;
    Ok((config, steps, weights))
}

/// Returns the hyperparameters of a file's model and the number of its embedding's rows, checked as for a model that is
/// loaded.
///
/// # Errors
/// `InvalidModel` for what is not supported, damaged or missing; `InvalidArgument` for a context out of range.
pub(super) fn inspect(file: &Gguf, capacity: Option<usize>) -> Result<(Config, usize)> {
    let (config, _, weights) = read(file, capacity, CacheType::F32)?;
    Ok((config, weights.vocabulary()))
}

/// Tokens that go through the steps together.
#[derive(Clone, Copy, Debug)]
struct Block {
    /// The first one's position.
    first: usize,
    tokens: usize,
    /// The number of rows of the residual before the row of the first token.
    skipped: usize,
}

impl Block {
    /// Returns the last `count` tokens.
    fn last(self, count: usize) -> Self {
        Self {
            tokens: count,
            skipped: self.skipped + self.tokens - count,
            ..self
        }
    }
}

impl Model {
    /// Reads the description of a model in its file; the model runs on SIMD.
    pub(super) fn new(file: Gguf, options: &LoadOptions) -> Result<Self> {
        if file.is_head() {
            let place = format!("byte {}", file.bytes());
            return Err(invalid("only the file's beginning was read", place));
        }
        let (config, steps, weights) = read(&file, options.context_length, options.cache_type)?;
        Ok(Self {
            file: Arc::new(file),
            config,
            weights: Arc::new(weights),
            steps: Arc::new(steps),
            executor: Executor::Cpu(CpuModel::new(options.cpu())),
            identity: Arc::default(),
        })
    }

    /// Moves the model to a device's back-end. On a GPU it has a copy of the weights. Adapters and
    /// clones stay where they are; adapters have to be made anew.
    pub(super) async fn move_to(&mut self, device: &GpuDevice) -> Result<()> {
        if self.file.is_partial() {
            let requirement =
                "the one that has the weights, which are not in memory: load the model again";
            return Err(Error::invalid(
                "device",
                device.backend().to_string(),
                requirement,
            ));
        }
        self.executor = match device.executor() {
            DeviceExecutor::Gpu(gpu) => Executor::Gpu(Arc::new(GpuModel::new(gpu, self).await?)),
            #[cfg(all(feature = "cuda", not(target_arch = "wasm32")))]
            DeviceExecutor::Cuda(cuda) => {
                Executor::Cuda(Arc::new(GpuModel::new(cuda, self).await?))
            }
            _ => Executor::Cpu(CpuModel::new(device.cpu())),
        };
        self.identity = Arc::default();
        Ok(())
    }

    /// Returns the back-end that runs the model.
    pub(super) fn backend(&self) -> Backend {
        match &self.executor {
            Executor::Cpu(_) => Backend::Simd,
            Executor::Gpu(_) => Backend::Gpu,
            #[cfg(all(feature = "cuda", not(target_arch = "wasm32")))]
            Executor::Cuda(_) => Backend::Cuda,
        }
    }

    /// Returns whether the back-end multiplies in f16.
    pub(super) fn half_precision(&self) -> HalfPrecision {
        match &self.executor {
            Executor::Cpu(_) => HalfPrecision::NoGpu,
            Executor::Gpu(model) => model.half_precision(),
            #[cfg(all(feature = "cuda", not(target_arch = "wasm32")))]
            Executor::Cuda(model) => model.half_precision(),
        }
    }

    /// Returns memory for a sequence of tokens, which on SIMD grows with them.
    ///
    /// # Errors
    /// `OutOfMemory`, `LimitExceeded` if the GPU has no buffers of that size.
    pub(super) fn state(&self) -> Result<State> {
        by_executor!(self.executor, on => on.state(self))
    }
}
