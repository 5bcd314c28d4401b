//! The forward pass on a GPU, by whichever interface.

mod adapter;
mod backend;
mod choose;
mod explain;
mod join;
mod sequence;
mod slots;
mod upload;

use super::forward::foreign;
use super::rotation::Pairs;
use super::steps::{Slot, Step, StepRunner, VectorId, WeightId};
use super::{Block, BlockRequest, Model, Output, Scaled, State};
use crate::alloc::try_zeros;
use crate::error::Result;
use crate::graph::steps::{
    Activation, Attention, HeadPlaces, HeadRotation, Norm, Product, StepBackend, StepPass,
};
use crate::ops::HalfPrecision;
pub(super) use adapter::GpuAdapter;
pub(super) use backend::ModelBackend;
use join::{groups, join};
pub(in crate::llm) use sequence::GpuSequence;
use slots::{LOGIT_ROWS, Slots};
use std::sync::{Mutex, MutexGuard, PoisonError};
pub(in crate::llm) use upload::Upload;

/// A model's weights on a GPU, and memory for the values of a pass.
pub(super) struct GpuModel<B: StepBackend> {
    gpu: B,
    /// The steps of each layer, with successive matrices for the same rows as one.
    layers: Vec<Vec<Step>>,
    /// The numbers of the matrices that became one.
    joined: Vec<Vec<usize>>,
    /// The matrices by number; `None` if another matrix holds its rows.
    matrices: Vec<Option<B::Weights>>,
    vectors: Vec<B::Buffer>,
    /// The cosines and sines of each rotation for all positions of a session.
    angles: [B::Buffer; 2],
    /// Unused memory for the values of passes. Each read takes a set, since several threads may read.
    slots: Mutex<Vec<Slots<B>>>,
}

impl<B: StepBackend> std::fmt::Debug for GpuModel<B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "GpuModel({} layers)", self.layers.len())
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

impl<B: ModelBackend> GpuModel<B> {
    /// Returns the tokens that go through the layers at a time.
    pub(super) fn block(&self) -> usize {
        self.gpu.block()
    }

    /// Returns whether the back-end multiplies in f16.
    pub(super) fn half_precision(&self) -> HalfPrecision {
        self.gpu.half_precision()
    }

    /// Copies the weights of a model to a GPU.
    ///
    /// # Errors
    /// `LimitExceeded` if a buffer would be too large, `OutOfMemory`, `DeviceLost`.
    pub(super) async fn new(gpu: &B, model: &Model) -> Result<Self> {
        let weights = &model.weights;
        let (_, joined) = join(&model.steps, weights);
        let mut matrices = Vec::new();
        for (weight, rows) in weights.matrices.iter().zip(groups(weights, &joined)) {
            let blocks = rows.iter().map(|&row| &weights.matrices[row]);
            let blocks: Vec<&[u8]> = blocks.map(|weight| weight.bytes(&model.file)).collect();
            matrices.push(if blocks.is_empty() {
                None
            } else {
                Some(gpu.weights(weight.kind, &blocks, weight.cols).await?)
            });
        }
        Self::with_matrices(gpu, model, matrices).await
    }

    /// Copies the vectors of a model to a GPU that has its matrices, by number. Checks products in f16 by the matrices of the
    /// first layer.
    async fn with_matrices(
        gpu: &B,
        model: &Model,
        matrices: Vec<Option<B::Weights>>,
    ) -> Result<Self> {
        let (config, weights) = (&model.config, &model.weights);
        let (layers, joined) = join(&model.steps, weights);
        gpu.check_f16(&first_layer(&layers, &matrices)).await?;
        let angles = config.rotations.each_ref();
        let angles = angles.map(|rotation| rotation.angles(0..config.capacity));
        let (vectors, angles, slots, writing) = {
            let mut pass = gpu.pass()?;
            let vectors = weights.vectors.iter().map(|vector| pass.upload(vector));
            let vectors = vectors.collect::<Result<Vec<_>>>()?;
            let angles = [
                pass.upload(angles[0].as_flattened())?,
                pass.upload(angles[1].as_flattened())?,
            ];
            let lens = Slot::lens(config, weights.vocabulary());
            let slots = Slots::new(lens, [gpu.block(), config.head_len], &mut pass)?;
            (vectors, angles, slots, pass.submit(None)?)
        };
        writing.await?;
        Ok(Self {
            gpu: gpu.clone(),
            layers,
            joined,
            matrices,
            vectors,
            angles,
            slots: Mutex::new(vec![slots]),
        })
    }

    /// Allocates the memory of a sequence.
    pub(super) fn state(&self, model: &Model) -> Result<State> {
        let config = &model.config;
        let mut pass = self.gpu.pass()?;
        let lens = (0..config.layers).map(|layer| config.layer_words(layer).saturating_mul(2));
        let layers = lens.map(|len| pass.allocate(len));
        layers
            .collect::<Result<_>>()
            .map(|layers| B::state(GpuSequence(layers)))
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
        let sizes = [self.block(), model.config.head_len];
        Slots::new(lens, sizes, &mut self.gpu.pass()?)
    }

    async fn read_by(
        &self,
        slots: &Slots<B>,
        model: &Model,
        state: &State,
        request: &BlockRequest<'_>,
    ) -> Result<Vec<f32>> {
        let sequence = B::sequence(state).ok_or_else(foreign)?;
        let width = model.config.width;
        let (tokens, output) = (request.tokens(width), request.output);
        let slot = output.slot();
        let mut block = Block {
            first: request.first,
            tokens,
            skipped: 0,
        };
        let mut embedded = try_zeros(tokens * width)?;
        model.embed(request.input, &mut embedded)?;
        let new_pass = |block| Pass::new(self, slots, model, sequence, request.adapters, block);
        let mut before = Vec::new();
        // What is recorded lives between two awaits.
        let submitted = {
            let mut pass = new_pass(block)?;
            let residual = slots.own(Slot::Residual);
            pass.recorder.write(&embedded, residual)?;
            let layers = &self.layers[request.layers.clone()];
            let at_once = layers_at_once(layers.len(), tokens, self.block());
            for (index, layer) in layers.iter().enumerate() {
                if index > 0 && index.is_multiple_of(at_once) {
                    before.push(pass.recorder.submit(None)?);
                    pass = new_pass(block)?;
                }
                pass.run(layer)?;
            }
            block = block.last(output.rows(tokens));
            if slot == Slot::Logits {
                block.tokens = block.tokens.min(LOGIT_ROWS);
            }
            pass.end(block, output)?;
            let read = match output {
                Output::Largest => pass.choose(None, None, 0)?,
                _ => pass.rows(slot),
            };
            pass.recorder.submit(Some(read))?
        };
        for submitted in before {
            submitted.await?;
        }
        let mut results = submitted.await?;
        let is_whole = !matches!(output, Output::Logits(_));
        loop {
            block.skipped += block.tokens;
            if is_whole || block.skipped >= tokens {
                return Ok(results);
            }
            block.tokens = (tokens - block.skipped).min(LOGIT_ROWS);
            let submitted = {
                let mut pass = new_pass(block)?;
                pass.end(block, output)?;
                let read = pass.rows(slot);
                pass.recorder.submit(Some(read))?
            };
            results.extend(submitted.await?);
        }
    }
}

/// Steps over a block of tokens.
struct Pass<'a, B: ModelBackend> {
    on: &'a GpuModel<B>,
    slots: &'a Slots<B>,
    model: &'a Model,
    sequence: &'a GpuSequence<B>,
    adapters: &'a [Scaled],
    block: Block,
    recorder: B::Pass<'a>,
    /// The norm that the next product may compute itself.
    pending: Option<PendingNorm<'a, B::Buffer>>,
    /// The heads that the next attention may place itself.
    heads: Option<HeadPlaces<'a, B::Buffer>>,
}

/// A norm that is not recorded yet.
struct PendingNorm<'a, T> {
    from: Slot,
    norm: Norm<'a, T>,
    to: Slot,
}

impl<'a, B: ModelBackend> Pass<'a, B> {
    fn new(
        on: &'a GpuModel<B>,
        slots: &'a Slots<B>,
        model: &'a Model,
        sequence: &'a GpuSequence<B>,
        adapters: &'a [Scaled],
        block: Block,
    ) -> Result<Self> {
        Ok(Self {
            on,
            slots,
            model,
            sequence,
            adapters,
            block,
            recorder: on.gpu.pass()?,
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
            && weights.is_some_and(|weights| self.on.gpu.gates(weights, self.block.tokens))
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
        let pending = self.pending.as_ref().filter(|_| from == Slot::Normed);
        let (from, norm) = match pending {
            Some(PendingNorm { from, norm, .. }) => (*from, Some(*norm)),
            None => (from, None),
        };
        let (from, (to, mut column, columns)) = (self.slots.own(from), self.slots.get(to));
        let result = (to, column, columns);
        self.recorder
            .multiply(from, weights, result, product, norm)?;
        if self.adapters.is_empty() {
            return Ok(());
        }
        let joined = on.joined.iter().find(|rows| rows.contains(&weight.0));
        for &matrix in joined.map_or(&[weight.0][..], Vec::as_slice) {
            self.adapt(matrix, (from, norm), (to, column, columns))?;
            column += self.model.weights.matrices[matrix].rows;
        }
        Ok(())
    }

    fn places(
        &self,
        gains: Option<[VectorId; 2]>,
        rotation: usize,
        layer: usize,
    ) -> HeadPlaces<'a, B::Buffer> {
        let (config, on) = (&self.model.config, self.on);
        let gains = gains.map(|gains| gains.map(|gain| &on.vectors[gain.0]));
        let angles = &on.angles[rotation];
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

impl<B: ModelBackend> StepRunner for Pass<'_, B> {
    fn norm(&mut self, from: Slot, gain: VectorId, to: Slot) -> Result<()> {
        let norm = Norm {
            gain: &self.on.vectors[gain.0],
            cols: self.slots.len(from),
            epsilon: self.model.config.epsilon,
            skipped: match from {
                Slot::Residual => self.block.skipped,
                _ => 0,
            },
        };
        // Norms of results are added to the residual; the others precede products.
        self.pending = Some(PendingNorm { from, norm, to });
        if from == Slot::Residual && self.block.tokens < self.on.gpu.tiled_from() {
            return Ok(());
        }
        self.normalise()
    }

    fn multiply(&mut self, from: Slot, weight: WeightId, to: Slot, adds: bool) -> Result<()> {
        let product = Product {
            adds,
            ..Product::of(self.block.tokens)
        };
        self.multiply_by(from, weight, to, product)
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

    fn place(&mut self, gains: Option<[VectorId; 2]>, rotation: usize, layer: usize) -> Result<()> {
        self.heads = Some(self.places(gains, rotation, layer));
        Ok(())
    }

    /// Records the attention to a layer's cache, after its heads were placed there.
    fn attend(&mut self, layer: usize, window: Option<usize>) -> Result<()> {
        let Some(heads) = self.heads.take() else {
            return Ok(());
        };
        let (config, slots) = (&self.model.config, self.slots);
        let attention = Attention {
            tokens: self.block.tokens,
            heads: config.heads,
            kv_heads: config.kv_heads,
            head_len: config.head_len,
            position: self.block.first,
            capacity: config.room(layer),
            window,
            scale: config.score_scale(),
            cache_type: config.cache_type,
        };
        // Keys and values lie after queries.
        self.recorder.place_and_attend(
            slots.own(Slot::Queries),
            &heads,
            [slots.own(Slot::Rotated), &self.sequence.0[layer]],
            &attention,
            &slots.parts,
            slots.own(Slot::Mixed),
        )
    }

    fn activate(&mut self, activation: Activation) -> Result<()> {
        let slots = self.slots;
        let (gate, hidden) = (slots.own(Slot::Gate), slots.len(Slot::Gate));
        let to = slots.own(Slot::Gated);
        let shape = [self.block.tokens, hidden];
        self.recorder.gate(gate, to, shape, activation)
    }
}
