//! The forward pass on a back-end.

mod adapter;
mod choose;
mod cpu;
mod explain;
mod join;
mod sequence;
mod slots;
mod upload;
mod variants;

use super::forward::foreign;
use super::rotation::Pairs;
use super::steps::{Slot, Step, VectorId, WeightId};
use super::{Block, BlockRequest, Model, ModelParts, Output, Scaled, State};
use crate::alloc::try_zeros;
use crate::error::Result;
use crate::graph::steps::{
    Activation, Attention, HeadPlaces, HeadRotation, Norm, Product, StepBackend, StepCache,
    StepPass, TextRows, no_encoders,
};
use crate::ops::HalfPrecision;
pub(super) use adapter::BackendAdapter;
use join::{groups, join};
pub(in crate::llm) use sequence::BackendSequence;
use slots::Slots;
use std::ops::Range;
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
                let angles = config.rotations.each_ref();
                let angles = angles.map(|rotation| rotation.angles(0..config.capacity));
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
    pub(super) async fn read(
        &self,
        model: &Model,
        state: &State,
        request: &BlockRequest<'_>,
    ) -> Result<Vec<f32>> {
        let slots = self.take_slots(model)?;
        let results = self.read_by(&slots, model, state, request).await;
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
        state: &State,
        request: &BlockRequest<'_>,
    ) -> Result<Vec<f32>> {
        let recorded = self.record(slots, model, state, request)?;
        for submitted in recorded.before {
            submitted.await?;
        }
        let mut results = recorded.last.await?;
        let mut block = recorded.block;
        let (tokens, output) = (request.tokens(model.config.width), request.output);
        if !matches!(output, Output::Logits(_)) {
            return Ok(results);
        }
        loop {
            block.skipped += block.tokens;
            if block.skipped >= tokens {
                return Ok(results);
            }
            block.tokens = (tokens - block.skipped).min(B::LOGIT_ROWS);
            let submitted = {
                let sequence = B::sequence(state).ok_or_else(foreign)?;
                let mut pass = Pass::new(self, slots, model, sequence, request, block)?;
                pass.end(block, output)?;
                let read = pass.rows(output.slot());
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
        state: &'a State,
        request: &BlockRequest<'a>,
    ) -> Result<Recorded<impl Future<Output = Result<Vec<f32>>>>> {
        let sequence = B::sequence(state).ok_or_else(foreign)?;
        let width = model.config.width;
        let (tokens, output) = (request.tokens(width), request.output);
        let mut block = Block {
            first: request.first,
            tokens,
            skipped: 0,
        };
        let mut embedded = try_zeros(tokens * width)?;
        model.first_input(request, &mut embedded)?;
        let new_pass = |block| Pass::new(self, slots, model, sequence, request, block);
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
        let read = match output {
            Output::Largest => pass.choose(None, None, 0)?,
            _ => pass.rows(output.slot()),
        };
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

/// Steps over a block of tokens.
struct Pass<'a, B: ModelBackend> {
    on: &'a BackendModel<B>,
    slots: &'a Slots<B>,
    model: &'a Model,
    sequence: &'a BackendSequence<B>,
    adapters: &'a [Scaled],
    texts: &'a [Range<usize>],
    block: Block,
    recorder: B::Pass<'a>,
    /// The norm that the next product may compute itself.
    pending: Option<PendingNorm<'a, B::Buffer>>,
    /// The heads that the next attention may place itself.
    heads: Option<HeadPlaces<'a, B::Buffer>>,
}

/// Returns the first row and the end of each row's text, as words.
fn bounds(texts: &[Range<usize>]) -> Vec<f32> {
    let rows = texts
        .iter()
        .flat_map(|text| text.clone().map(move |_| text));
    let words = rows.flat_map(|text| [text.start, text.end]);
    words.map(|row| f32::from_bits(row as u32)).collect()
}

/// A norm that is not recorded yet.
struct PendingNorm<'a, T> {
    from: Slot,
    norm: Norm<'a, T>,
    to: Slot,
}

impl<'a, B: ModelBackend> Pass<'a, B> {
    fn new(
        on: &'a BackendModel<B>,
        slots: &'a Slots<B>,
        model: &'a Model,
        sequence: &'a BackendSequence<B>,
        request: &BlockRequest<'a>,
        block: Block,
    ) -> Result<Self> {
        let BlockRequest {
            adapters, texts, ..
        } = *request;
        let mut recorder = on.backend.sequence_pass(sequence.id)?;
        if on.angles.is_none() {
            let rotations = &model.config.rotations;
            for (rotation, to) in rotations.iter().zip(&slots.angles) {
                let angles = if texts.is_empty() {
                    rotation.angles(block.first..block.first + block.tokens)
                } else {
                    rotation.angles(texts.iter().flat_map(|text| 0..text.len()))
                };
                if !angles.is_empty() {
                    recorder.write(angles.as_flattened(), to)?;
                }
            }
        }
        if B::IS_GPU && !texts.is_empty() {
            recorder.write(&bounds(texts), &slots.bounds)?;
        }
        Ok(Self {
            on,
            slots,
            model,
            sequence,
            adapters,
            texts,
            block,
            recorder,
            pending: None,
            heads: None,
        })
    }

    /// Adds the steps from a block's residual to a result.
    fn end(&mut self, block: Block, output: Output) -> Result<()> {
        self.block = block;
        self.run(self.model.steps.end(output))?;
        if output == Output::Normed {
            return self.normalise();
        }
        Ok(())
    }

    /// Returns a slot with a separate buffer, and the number of elements of the block's rows.
    fn rows(&self, slot: Slot) -> (&'a B::Buffer, usize) {
        let slots = self.slots;
        (slots.own(slot), self.block.tokens * slots.len(slot))
    }

    /// Records the norm that no product computes.
    fn normalise(&mut self) -> Result<()> {
        let Some(PendingNorm { from, norm, to }) = self.pending.take() else {
            return Ok(());
        };
        let (slots, tokens) = (self.slots, self.block.tokens);
        self.recorder
            .norm(slots.own(from), norm, slots.own(to), tokens)
    }

    fn run(&mut self, steps: &[Step]) -> Result<()> {
        let mut rest = steps;
        while let [step, after @ ..] = rest {
            rest = after;
            match (*step, after) {
                (
                    Step::Multiply {
                        from,
                        weight,
                        to: Slot::Gate,
                        ..
                    },
                    [Step::Activate(activation), after @ ..],
                ) if self.gates(weight) => {
                    let product = Product {
                        gate: Some(*activation),
                        ..Product::of(self.block.tokens)
                    };
                    self.multiply_by(from, weight, Slot::Gated, product)?;
                    rest = after;
                }
                _ => self.step(*step)?,
            }
        }
        Ok(())
    }

    /// Returns whether the matmul that computes the gates and the gated values can apply the gates, too.
    fn gates(&self, weight: WeightId) -> bool {
        let weights = self.on.matrices[weight.0].as_ref();
        self.adapters.is_empty()
            && weights.is_some_and(|weights| self.on.backend.gates(weights, self.block.tokens))
    }

    fn multiply_by(
        &mut self,
        from: Slot,
        weight: WeightId,
        to: Slot,
        product: Product,
    ) -> Result<()> {
        let on = self.on;
        let Some(weights) = &on.matrices[weight.0] else {
            return Ok(());
        };
        let pending = self.pending.as_ref();
        let pending = pending.filter(|_| B::IS_GPU && from == Slot::Normed);
        let (from, norm) = match pending {
            Some(PendingNorm { from, norm, .. }) => (*from, Some(*norm)),
            None => (from, None),
        };
        let (from, to) = (self.slots.own(from), self.slots.get(to));
        if self.adapters.is_empty() {
            return self.recorder.multiply(from, weights, to, product, norm);
        }
        let adapters = self.low_rank_products(weight, to);
        self.recorder
            .multiply_adapted(from, weights, to, product, norm, &adapters)
    }

    fn places(
        &self,
        gains: Option<[VectorId; 2]>,
        rotation: usize,
        layer: usize,
    ) -> HeadPlaces<'a, B::Buffer> {
        let (config, on) = (&self.model.config, self.on);
        let gains = gains.map(|gains| gains.map(|gain| &on.vectors[gain.0]));
        let angles = &self.slots.angles[rotation];
        let rotation = &config.rotations[rotation];
        HeadPlaces {
            tokens: self.block.tokens,
            heads: config.heads,
            kv_heads: config.kv_heads,
            head_len: config.head_len,
            position: self.block.first,
            capacity: config.room(layer),
            gains: gains.map(|gains| (gains, config.epsilon)),
            rotation: HeadRotation {
                angles,
                pairs: rotation.rotated / 2,
                neighbours: rotation.pairs == Pairs::Neighbours,
            },
            cache_type: config.cache_type,
        }
    }
}

impl<B: ModelBackend> Pass<'_, B> {
    /// Records a step.
    ///
    /// # Errors
    /// `OutOfMemory`; on a GPU also `LimitExceeded` and `DeviceLost`.
    fn step(&mut self, step: Step) -> Result<()> {
        match step {
            Step::Norm {
                from,
                gain,
                bias,
                to,
            } => self.norm(from, gain, bias, to),
            Step::Multiply {
                from,
                weight,
                to,
                adds,
            } => {
                let product = Product {
                    adds,
                    ..Product::of(self.block.tokens)
                };
                self.multiply_by(from, weight, to, product)
            }
            Step::AddVector { vector, to } => self.add_vector(vector, to),
            Step::Add { from, to } => self.add(from, to),
            Step::Place {
                gains,
                rotation,
                layer,
            } => {
                self.heads = Some(self.places(gains, rotation, layer));
                Ok(())
            }
            Step::Attend { layer, window } => self.attend(layer, window),
            Step::AttendWithin { layer } => self.attend_within(layer),
            Step::Activate(activation) => self.activate(activation),
            Step::Gelu => {
                let (slots, from) = (self.slots, Slot::Gate);
                let len = self.block.tokens * slots.len(from);
                self.recorder
                    .gelu(slots.own(from), slots.own(Slot::Gated), len)
            }
        }
    }

    fn norm(&mut self, from: Slot, gain: VectorId, bias: Option<VectorId>, to: Slot) -> Result<()> {
        let norm = Norm {
            gain: &self.on.vectors[gain.0],
            bias: bias.map(|bias| &self.on.vectors[bias.0]),
            cols: self.slots.len(from),
            epsilon: self.model.config.epsilon,
            skipped: match from {
                Slot::Residual => self.block.skipped,
                _ => 0,
            },
        };
        // Norms of results are added to the residual; the others precede products.
        self.pending = Some(PendingNorm { from, norm, to });
        let is_small = self.block.tokens < self.on.backend.tiled_from();
        if from == Slot::Residual && bias.is_none() && is_small {
            return Ok(());
        }
        self.normalise()
    }

    fn add_vector(&mut self, vector: VectorId, to: Slot) -> Result<()> {
        let slots = self.slots;
        let vector = (&self.on.vectors[vector.0], slots.len(to));
        self.recorder.add(vector, slots.get(to), self.block.tokens)
    }

    fn add(&mut self, from: Slot, to: Slot) -> Result<()> {
        let slots = self.slots;
        // One long row.
        let len = self.block.tokens * slots.len(to);
        let from = (slots.own(from), len);
        self.recorder.add(from, (slots.own(to), 0, len), 1)
    }

    /// Records the attention to a layer's cache, after its heads were placed there.
    fn attend(&mut self, layer: usize, window: Option<usize>) -> Result<()> {
        let Some(heads) = self.heads.take() else {
            return Ok(());
        };
        let slots = self.slots;
        let attention = self.attention(layer, window);
        // Keys and values lie after queries.
        self.recorder.place_and_attend(
            slots.own(Slot::Queries),
            &heads,
            (
                slots.own(Slot::Rotated),
                self.sequence.layers[layer].memory(),
            ),
            &attention,
            &slots.parts,
            slots.own(Slot::Mixed),
        )
    }

    /// Records the attention of each token to its text, after the heads of all were placed in a layer's cache.
    fn attend_within(&mut self, layer: usize) -> Result<()> {
        let Some(heads) = self.heads.take() else {
            return Ok(());
        };
        let slots = self.slots;
        let (queries, cached) = (
            slots.own(Slot::Rotated),
            self.sequence.layers[layer].memory(),
        );
        self.recorder
            .place(slots.own(Slot::Queries), &heads, queries, cached)?;
        let texts = TextRows {
            rows: self.texts,
            bounds: &slots.bounds,
        };
        let attention = self.attention(layer, None);
        let mixed = slots.own(Slot::Mixed);
        self.recorder
            .attend_within((queries, cached), &attention, texts, mixed)
    }

    fn attention(&self, layer: usize, window: Option<usize>) -> Attention {
        let config = &self.model.config;
        Attention {
            tokens: self.block.tokens,
            heads: config.heads,
            kv_heads: config.kv_heads,
            head_len: config.head_len,
            position: self.block.first,
            capacity: config.room(layer),
            window,
            scale: config.score_scale(),
            cache_type: config.cache_type,
        }
    }

    fn activate(&mut self, activation: Activation) -> Result<()> {
        let slots = self.slots;
        let (gate, hidden) = (slots.own(Slot::Gate), slots.len(Slot::Gate));
        let to = slots.own(Slot::Gated);
        let shape = [self.block.tokens, hidden];
        self.recorder.gate(gate, to, shape, activation)
    }
}
