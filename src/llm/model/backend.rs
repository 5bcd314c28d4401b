//! The forward pass on a back-end.

mod adapter;
mod choose;
mod cpu;
mod explain;
mod join;
mod pass;
mod sequence;
mod slots;
mod upload;
mod variants;

use super::steps::{Slot, Step};
use super::{Block, BlockRequest, Model, ModelParts, Output, State};
use crate::alloc::try_zeros;
use crate::error::Result;
use crate::graph::steps::{StepBackend, StepCache, StepPass, no_encoders};
use crate::ops::HalfPrecision;
pub(super) use adapter::BackendAdapter;
use join::{groups, join};
use pass::Pass;
pub(in crate::llm) use sequence::BackendSequence;
#[cfg(feature = "llm")]
pub(in crate::llm) use sequence::next_number;
use slots::Slots;
use std::sync::{Mutex, MutexGuard, PoisonError};
pub(in crate::llm) use upload::Upload;
pub(super) use variants::ModelBackend;

/// A model's weights on a back-end, and memory for the values of a pass.
pub(super) struct BackendModel<B: StepBackend> {
    backend: B,
    /// The number of tokens that go through the layers at a time.
    block: usize,
    /// The steps of each layer, with successive matrices for the same rows as one.
    layers: Vec<Vec<Step>>,
    /// The numbers of the matrices that became one.
    joined: Vec<Vec<usize>>,
    /// The matrices by number; `None` if another matrix holds its rows, and if only the host reads them.
    matrices: Vec<Option<B::Weights>>,
    vectors: Vec<B::Buffer>,
    /// The cosines and sines of each rotation for all positions of a session; `None` where each pass writes its own.
    angles: Option<[B::Buffer; 2]>,
    /// Unused memory for the values of passes. Each read takes a set, since several threads may read.
    slots: Mutex<Vec<Slots<B>>>,
}

impl<B: StepBackend> std::fmt::Debug for BackendModel<B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "BackendModel({} layers)", self.layers.len())
    }
}

/// Returns the number of layers, of `count`, that a submission takes. It has at most the work of a quarter of a block in all
/// layers, since systems end programs whose submissions take seconds.
fn layers_at_once(count: usize, tokens: usize, block: usize) -> usize {
    (count * block / (4 * tokens.max(1))).max(1)
}

/// Returns the matrices of the first layer.
fn first_layer<'a, W>(layers: &[Vec<Step>], matrices: &'a [Option<W>]) -> Vec<&'a W> {
    let steps = layers.first().into_iter().flatten().copied();
    let weights = steps.filter_map(Step::weight);
    let matrices = weights.filter_map(|weight| matrices[weight.0].as_ref());
    matrices.collect()
}

impl<B: ModelBackend> BackendModel<B> {
    /// Returns the tokens that go through the layers at a time.
    pub(super) fn block(&self) -> usize {
        self.block
    }

    /// Returns whether the back-end multiplies in f16.
    pub(super) fn half_precision(&self) -> HalfPrecision {
        self.backend.half_precision()
    }

    /// Copies the weights of a model to a GPU.
    ///
    /// # Errors
    /// `LimitExceeded` if a buffer would be too large, `OutOfMemory`, `DeviceLost`; `InvalidArgument` for an encoder on a
    /// back-end that does not run encoders.
    pub(super) async fn new(gpu: &B, model: ModelParts<'_>) -> Result<Self> {
        if model.config.is_encoder() && B::KERNELS.encoder.is_none() {
            no_encoders()?;
        }
        let weights = model.weights;
        let (_, joined) = join::<B>(model.steps, weights);
        let mut matrices = Vec::new();
        for (weight, rows) in weights.matrices.iter().zip(groups(weights, &joined)) {
            let blocks = rows.iter().map(|&row| weights.matrices[row].range.clone());
            let blocks: Vec<&[u8]> = blocks.map(|range| model.file.slice(range)).collect();
            matrices.push(if blocks.is_empty() {
                None
            } else {
                Some(gpu.weights(weight.kind, &blocks, weight.cols).await?)
            });
        }
        Self::checked(gpu, model, matrices).await
    }

    /// Copies the vectors of a model to a GPU that has its matrices, by number. Checks products in f16 by the matrices of
    /// the first layer.
    async fn checked(
        gpu: &B,
        model: ModelParts<'_>,
        matrices: Vec<Option<B::Weights>>,
    ) -> Result<Self> {
        let (on_gpu, writing) = Self::with_matrices(gpu, model, matrices)?;
        writing.await?;
        let matrices = first_layer(&on_gpu.layers, &on_gpu.matrices);
        gpu.check_f16(&matrices).await?;
        Ok(on_gpu)
    }

    /// Copies the vectors of a model to a back-end that has its matrices, by number. On a GPU they are there when the future
    /// is.
    fn with_matrices(
        backend: &B,
        model: ModelParts<'_>,
        matrices: Vec<Option<B::Weights>>,
    ) -> Result<(Self, impl Future<Output = Result<Vec<f32>>>)> {
        let ModelParts {
            config, weights, ..
        } = model;
        let (layers, joined) = join::<B>(model.steps, weights);
        let block = config.block(backend.block());
        let (vectors, angles, slots, writing) = {
            let mut pass = backend.pass()?;
            let vectors = weights.vectors.iter().map(|vector| pass.upload(vector));
            let vectors = vectors.collect::<Result<Vec<_>>>()?;
            let angles = if B::IS_GPU && !config.is_encoder() {
                let positions: Vec<usize> = (0..config.capacity).collect();
                let angles = config.rotations.each_ref();
                let angles = angles.map(|rotation| rotation.angles(&positions));
                Some([
                    pass.upload(angles[0].as_flattened())?,
                    pass.upload(angles[1].as_flattened())?,
                ])
            } else {
                None
            };
            let lens = Slot::lens(config, weights.vocabulary());
            let sizes = [block, config.head_len];
            let slots = Slots::new(lens, sizes, angles.as_ref(), &mut pass)?;
            (vectors, angles, slots, pass.submit(None)?)
        };
        let model = Self {
            backend: backend.clone(),
            block,
            layers,
            joined,
            matrices,
            vectors,
            angles,
            slots: Mutex::new(vec![slots]),
        };
        Ok((model, writing))
    }

    /// Allocates the memory of a sequence.
    pub(super) fn state(&self, model: &Model) -> Result<State> {
        let config = &model.config;
        let mut pass = self.backend.pass()?;
        let layouts = config.cached_layers();
        let layouts = layouts.map(|layer| config.cache_layout(layer));
        let layers = layouts.map(|layout| B::Cache::new(layout, &mut pass));
        layers
            .collect::<Result<_>>()
            .map(|layers| B::state(BackendSequence::new(layers)))
    }

    /// Reads a block of tokens, and returns their requested results.
    pub(super) async fn read(&self, model: &Model, request: &BlockRequest<'_>) -> Result<Vec<f32>> {
        let slots = self.take_slots(model)?;
        let results = self.read_by(&slots, model, request).await;
        self.free_slots().push(slots);
        results
    }

    fn free_slots(&self) -> MutexGuard<'_, Vec<Slots<B>>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes unused memory for the values of a pass, or allocates it.
    fn take_slots(&self, model: &Model) -> Result<Slots<B>> {
        if let Some(slots) = self.free_slots().pop() {
            return Ok(slots);
        }
        let lens = Slot::lens(&model.config, model.vocabulary());
        let sizes = [self.block, model.config.head_len];
        Slots::new(lens, sizes, self.angles.as_ref(), &mut self.backend.pass()?)
    }

    async fn read_by(
        &self,
        slots: &Slots<B>,
        model: &Model,
        request: &BlockRequest<'_>,
    ) -> Result<Vec<f32>> {
        let recorded = self.record(slots, model, request)?;
        for submitted in recorded.before {
            submitted.await?;
        }
        let mut results = recorded.last.await?;
        let mut block = recorded.block;
        let (tokens, output) = (request.tokens(model.config.width), request.output);
        if !matches!(output, Output::Logits(_) | Output::LargestOfEach) {
            return Ok(results);
        }
        loop {
            block.skipped += block.tokens;
            if block.skipped >= tokens {
                return Ok(results);
            }
            block.tokens = (tokens - block.skipped).min(B::LOGIT_ROWS);
            let submitted = {
                let mut pass = Pass::new(self, slots, model, request, block)?;
                pass.end(block, output)?;
                let read = pass.result(output)?;
                pass.recorder.submit(Some(read))?
            };
            results.extend(submitted.await?);
        }
    }

    /// Submits the steps of a block.
    fn record<'a>(
        &'a self,
        slots: &'a Slots<B>,
        model: &'a Model,
        request: &BlockRequest<'a>,
    ) -> Result<Recorded<impl Future<Output = Result<Vec<f32>>>>> {
        let width = model.config.width;
        let (tokens, output) = (request.tokens(width), request.output);
        let mut block = Block { tokens, skipped: 0 };
        let mut embedded = try_zeros(tokens * width)?;
        model.first_input(request, &mut embedded)?;
        let new_pass = |block| Pass::new(self, slots, model, request, block);
        let mut before = Vec::new();
        let mut pass = new_pass(block)?;
        pass.recorder.write(&embedded, slots.own(Slot::Residual))?;
        let layers = &self.layers[request.layers.clone()];
        let at_once = layers_at_once(layers.len(), tokens, self.block());
        for (index, layer) in layers.iter().enumerate() {
            if B::IS_GPU && index > 0 && index.is_multiple_of(at_once) {
                before.push(pass.recorder.submit(None)?);
                pass = new_pass(block)?;
            }
            pass.run(layer)?;
        }
        block = block.last(output.rows(tokens));
        if output.slot() == Slot::Logits {
            block.tokens = block.tokens.min(B::LOGIT_ROWS);
        }
        pass.end(block, output)?;
        let read = pass.result(output)?;
        let last = pass.recorder.submit(Some(read))?;
        Ok(Recorded {
            before,
            last,
            block,
        })
    }
}

/// The submissions of a block. A pass that records them may live between two awaits only.
struct Recorded<F> {
    before: Vec<F>,
    /// Gives the first results.
    last: F,
    /// The rows of these results.
    block: Block,
}
