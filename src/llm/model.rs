//! A model: its hyperparameters, its weights, and the forward pass.

/// Evaluates the code for a [`BackendModel`] on its back-end: the same for all, or that for SIMD and that for GPUs.
macro_rules! by_executor {
    ($executor:expr, $on:ident => $run:expr $(,)?) => {
        by_executor!($executor, $on => $run, $on => $run)
    };
    ($executor:expr, $cpu:ident => $run_on_cpu:expr, $on:ident => $run:expr $(,)?) => {
        match &$executor {
            crate::llm::model::Executor::Cpu($cpu) => $run_on_cpu,
            crate::llm::model::Executor::Gpu($on) => $run,
            #[cfg(all(feature = "cuda", not(target_arch = "wasm32")))]
            crate::llm::model::Executor::Cuda($on) => $run,
        }
    };
}

mod adapter;
mod architecture;
mod backend;
mod encode;
mod experts;
mod explain;
mod factors;
mod forward;
mod known_keys;
mod layout;
mod metadata;
mod rotation;
mod rotations;
mod steps;
mod tensors;
mod weights;
mod yarn;

use super::gguf::{Gguf, invalid};
use super::{CacheType, LoadOptions};
#[cfg(all(feature = "cuda", not(target_arch = "wasm32")))]
use crate::cuda::SharedCuda;
use crate::device::executor::Executor as DeviceExecutor;
use crate::device::executor::SharedGpu;
use crate::device::{Backend, GpuDevice};
use crate::error::{Error, Result};
use crate::ops::HalfPrecision;
use crate::simd::Cpu;
pub(super) use adapter::{Adapter, HeadOrder, LowRank, Scaled};
pub(super) use architecture::Config;
pub(super) use backend::Upload;
#[cfg(feature = "llm")]
pub(super) use backend::next_number;
use backend::{BackendModel, BackendSequence};
pub(super) use forward::{BlockRequest, Input, Output, SequenceRows};
pub(crate) use forward::{MOST_CHOICES, Wanted};
pub(super) use layout::KeptPositions;
use std::sync::Arc;
use steps::Steps;
pub(super) use tensors::{
    LayerAdapter, LowRankTensors, StepWeights, TensorModel, TextRows, TextTensors,
};
use weights::Weights;

/// A model whose weights stay in blocks of few bits. Clones share them.
#[derive(Clone, Debug)]
pub(super) struct Model {
    pub(super) file: Arc<Gguf>,
    pub(super) config: Config,
    weights: Arc<Weights>,
    steps: Arc<Steps>,
    executor: Executor,
    /// The device of the executor; `None` for SIMD.
    device: Option<GpuDevice>,
    /// Marks the adapters of this model on this back-end. Clones share it until one of them moves.
    identity: Arc<()>,
}

/// The file of a model, and what was read from it.
#[derive(Clone, Copy)]
struct ModelParts<'a> {
    file: &'a Arc<Gguf>,
    config: &'a Config,
    weights: &'a Weights,
    steps: &'a Steps,
}

/// The back-end of a model.
#[derive(Clone, Debug)]
enum Executor {
    Cpu(Arc<BackendModel<Cpu>>),
    Gpu(Arc<BackendModel<SharedGpu>>),
    #[cfg(all(feature = "cuda", not(target_arch = "wasm32")))]
    Cuda(Arc<BackendModel<SharedCuda>>),
}

/// The memory of a sequence of tokens on its back-end.
#[derive(Debug)]
pub(super) enum State {
    Cpu(BackendSequence<Cpu>),
    Gpu(BackendSequence<SharedGpu>),
    #[cfg(all(feature = "cuda", not(target_arch = "wasm32")))]
    Cuda(BackendSequence<SharedCuda>),
}

#[cfg(feature = "llm")]
impl State {
    /// Sets the number that tells sequences apart whose passes may run at the same time, and share the threads of SIMD.
    pub(super) fn set_number(&mut self, number: u64) {
        match self {
            State::Cpu(sequence) => sequence.number = number,
            State::Gpu(sequence) => sequence.number = number,
            #[cfg(all(feature = "cuda", not(target_arch = "wasm32")))]
            State::Cuda(sequence) => sequence.number = number,
        }
    }
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

/// Returns the hyperparameters of a file's model, the number of its embedding's rows, and the names of the tensors that no
/// GPU holds, checked as for a model that is loaded.
///
/// # Errors
/// `InvalidModel` for what is not supported, damaged or missing; `InvalidArgument` for a context out of range.
pub(super) fn inspect(
    file: &Gguf,
    capacity: Option<usize>,
) -> Result<(Config, usize, Vec<Arc<str>>)> {
    let (config, _, weights) = read(file, capacity, CacheType::F32)?;
    let on_host = (0..weights.matrices.len()).filter(|&matrix| weights.is_on_host(matrix));
    let on_host = on_host.map(|matrix| weights.matrices[matrix].tensor.clone());
    Ok((config, weights.vocabulary(), on_host.collect()))
}

/// Tokens that go through the steps together.
#[derive(Clone, Copy, Debug)]
struct Block {
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
        let file = Arc::new(file);
        let parts = ModelParts {
            file: &file,
            config: &config,
            weights: &weights,
            steps: &steps,
        };
        let executor = Executor::Cpu(Arc::new(BackendModel::on_cpu(&options.cpu(), parts)?));
        Ok(Self {
            file,
            config,
            weights: Arc::new(weights),
            steps: Arc::new(steps),
            executor,
            device: None,
            identity: Arc::default(),
        })
    }

    fn parts(&self) -> ModelParts<'_> {
        ModelParts {
            file: &self.file,
            config: &self.config,
            weights: &self.weights,
            steps: &self.steps,
        }
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
            DeviceExecutor::Gpu(gpu) => {
                Executor::Gpu(Arc::new(BackendModel::new(gpu, self.parts()).await?))
            }
            #[cfg(all(feature = "cuda", not(target_arch = "wasm32")))]
            DeviceExecutor::Cuda(cuda) => {
                Executor::Cuda(Arc::new(BackendModel::new(cuda, self.parts()).await?))
            }
            _ => Executor::Cpu(Arc::new(BackendModel::on_cpu(&device.cpu(), self.parts())?)),
        };
        self.device = Some(device.clone());
        self.identity = Arc::default();
        Ok(())
    }

    /// Whether both are clones on the same back-end.
    #[cfg(feature = "llm")]
    pub(super) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.identity, &other.identity)
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
