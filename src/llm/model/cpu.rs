//! The forward pass on SIMD.

mod tasks;
#[cfg_attr(
    all(relampago_threads, not(target_arch = "wasm32")),
    path = "cpu/threads.rs"
)]
#[cfg_attr(
    not(all(relampago_threads, not(target_arch = "wasm32"))),
    path = "cpu/callers_thread.rs"
)]
mod threads;

use super::adapter::{Part, Parts};
use super::forward::foreign;
use super::kv_cache::CachedLayer;
use super::steps::{Slot, Step, StepRunner, VectorId, WeightId};
use super::weights::Weights;
use super::{Block, BlockRequest, Config, KeptPositions, KvCache, Model, Output, Scaled, State};
use crate::alloc::{try_resize, try_zeros};
use crate::error::{Error, Result};
use crate::graph::choice::Choices;
use crate::graph::steps::{Activation, BLOCK};
use crate::llm::ModelStep;
use crate::ops::Op;
use crate::runtime::{Slice, pause};
use crate::simd::{AttentionShape, BlockMatrix, Cpu, attention, execute, multiply_blocks};
use crate::tensor::ggml::WeightType;
use std::future::{Ready, ready};
use std::iter::Peekable;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tasks::Tasks;
use threads::Threads;

/// The rows from which a product may take as long as a slice of work.
const LONG: usize = 8;

/// A model on SIMD, whose weights are in its file.
#[derive(Clone, Debug)]
pub(super) struct CpuModel {
    cpu: Cpu,
    /// The threads of passes.
    threads: Arc<Threads>,
}

#[allow(clippy::unnecessary_wraps, clippy::unused_self)] // `GpuModel` has the same methods.
impl CpuModel {
    pub(super) fn new(cpu: Cpu) -> Self {
        Self {
            cpu,
            threads: Arc::new(Threads::new(cpu)),
        }
    }

    /// Returns the tokens that go through the layers at a time.
    pub(super) fn block(&self) -> usize {
        BLOCK
    }

    /// Returns the memory of a sequence, which grows with its tokens.
    pub(super) fn state(&self, model: &Model) -> Result<State> {
        let sequence = CpuSequence::new(self.cpu, &model.config, model.vocabulary());
        Ok(State::Cpu(Box::new(sequence)))
    }

    /// Copies low-rank matrices to the back-end's memory, which is where they are.
    pub(super) fn adapter(&self, _: &Weights, parts: Vec<Option<Part>>) -> Ready<Result<Parts>> {
        ready(Ok(Parts::Cpu(parts)))
    }

    /// Reads a block of tokens, and returns their requested results. Pauses after each [`Slice`] of work.
    pub(super) async fn read(
        &self,
        model: &Model,
        state: &mut State,
        request: &BlockRequest<'_>,
    ) -> Result<Vec<f32>> {
        let State::Cpu(sequence) = state else {
            return Err(foreign());
        };
        let (tokens, output) = (request.tokens(model.config.width), request.output);
        let block = Block {
            first: request.first,
            tokens,
            skipped: 0,
        };
        sequence.resize(Slot::Residual, tokens)?;
        model.embed(request.input, &mut sequence.slots[Slot::Residual as usize])?;
        let layers = &model.steps.layers[request.layers.clone()];
        let (slot, wanted) = (output.slot(), output.rows(tokens));
        let end = (model.steps.end(output), block.last(wanted));
        let tasks = Tasks::new((layers, block), end);
        let mut pass = Pass::new(sequence, model, request.adapters, block);
        pass.run(&self.threads, tasks).await?;
        if output == Output::Largest {
            let logits = &sequence.slots[Slot::Logits as usize];
            let mut largest = [0.0];
            execute(sequence.cpu, &Op::Argmax, &[logits], &mut largest)?;
            return Ok(largest.to_vec());
        }
        // A slot that no step wrote has the rows of an earlier pass.
        let len = wanted * sequence.lens[slot as usize];
        Ok(sequence.slots[slot as usize][..len].to_vec())
    }

    /// Returns the most tokens that [`CpuModel::choose`] chooses: none, since the host draws from logits.
    pub(super) fn ahead(&self, _: &Model) -> usize {
        0
    }

    /// Returns an error: there are no tokens to choose ahead of the host.
    pub(super) fn choose(
        &self,
        _: &Model,
        _: &State,
        _: &BlockRequest<'_>,
        _: &Choices,
    ) -> Ready<Result<Vec<f32>>> {
        ready(Err(foreign()))
    }

    /// Returns the keys and values of some positions of a sequence.
    pub(super) fn export(
        &self,
        config: &Config,
        state: &State,
        kept: KeptPositions,
    ) -> Ready<Result<Vec<f32>>> {
        ready(if let State::Cpu(sequence) = state {
            sequence.cache.export(config, kept)
        } else {
            Err(foreign())
        })
    }

    /// Replaces the keys and values of some positions of a sequence.
    pub(super) fn import(
        &self,
        config: &Config,
        state: &mut State,
        kept: KeptPositions,
        values: &[f32],
    ) -> Ready<Result<()>> {
        ready(if let State::Cpu(sequence) = state {
            sequence.cache.import(config, kept, values)
        } else {
            Err(foreign())
        })
    }

    /// Returns the steps of one decoded token.
    pub(super) fn explain(&self, model: &Model) -> Vec<ModelStep> {
        let mut steps = vec![model.explain_embedding()];
        for (layer, all) in model.steps.layers.iter().enumerate() {
            let all = all
                .iter()
                .map(|&step| model.explain_step(step, Some(layer)));
            steps.extend(all);
        }
        steps.extend(model.steps.end.map(|step| model.explain_step(step, None)));
        steps
    }
}

/// A sequence's cache, and the values of its passes, whose memory is kept from pass to pass.
#[derive(Debug)]
pub(in crate::llm) struct CpuSequence {
    /// Tells sequences apart.
    id: u64,
    /// With the threads of the pass that runs.
    cpu: Cpu,
    cache: KvCache,
    slots: [Vec<f32>; Slot::COUNT],
    lens: [usize; Slot::COUNT],
    /// The product of an adapter's first matrix, and that of both of its matrices.
    low_rank: [Vec<f32>; 2],
}

impl CpuSequence {
    fn new(cpu: Cpu, config: &Config, vocabulary: usize) -> Self {
        static SEQUENCES: AtomicU64 = AtomicU64::new(0);
        Self {
            id: SEQUENCES.fetch_add(1, Ordering::Relaxed),
            cpu,
            cache: KvCache::new(config),
            slots: Default::default(),
            lens: Slot::lens(config, vocabulary),
            low_rank: Default::default(),
        }
    }

    /// Gives a slot this number of rows, with arbitrary contents.
    fn resize(&mut self, slot: Slot, rows: usize) -> Result<()> {
        let len = rows * self.lens[slot as usize];
        try_resize(&mut self.slots[slot as usize], len)
    }
}

/// `y = x · Wᵀ` for each row of `x`, for `rows` rows of weights.
fn multiply_floats(
    cpu: Cpu,
    (weights, rows, cols): (&[f32], usize, usize),
    x: &[f32],
    y: &mut [f32],
) -> Result<()> {
    let bytes = bytemuck::cast_slice(weights);
    match BlockMatrix::new(WeightType::F32, bytes, rows, cols) {
        Some(weights) => multiply_blocks(cpu, weights, x, y),
        None => Ok(()),
    }
}

/// Steps over a block of tokens.
struct Pass<'a> {
    sequence: &'a mut CpuSequence,
    model: &'a Model,
    adapters: &'a [Scaled],
    block: Block,
    /// The cosines and sines of each rotation at the block's positions.
    angles: [Vec<[f32; 2]>; 2],
}

impl<'a> Pass<'a> {
    fn new(
        sequence: &'a mut CpuSequence,
        model: &'a Model,
        adapters: &'a [Scaled],
        block: Block,
    ) -> Self {
        let (config, end) = (&model.config, block.first + block.tokens);
        let rotations = config.rotations.each_ref();
        Self {
            sequence,
            model,
            adapters,
            block,
            angles: rotations.map(|rotation| rotation.angles(block.first..end)),
        }
    }

    /// Runs tasks in slices that the threads of the model share.
    async fn run(&mut self, threads: &Threads, tasks: Tasks<'_>) -> Result<()> {
        let mut tasks = tasks.peekable();
        loop {
            let id = self.sequence.id;
            threads.run(id, |threads| {
                self.sequence.cpu.threads = threads;
                self.run_slice(&mut tasks)
            })?;
            if tasks.peek().is_none() {
                return Ok(());
            }
            pause().await;
        }
    }

    /// Runs tasks until a slice of work is over.
    fn run_slice(&mut self, tasks: &mut Peekable<Tasks<'_>>) -> Result<()> {
        let slice = Slice::new();
        for (step, block) in tasks {
            self.block = block;
            self.step(step)?;
            let may_be_long = match step {
                Step::Attend { .. } => true,
                Step::Multiply { .. } => block.tokens >= LONG,
                Step::Norm { .. }
                | Step::AddVector { .. }
                | Step::Add { .. }
                | Step::Place { .. }
                | Step::Activate(_) => false,
            };
            if may_be_long && slice.is_over() {
                break;
            }
        }
        Ok(())
    }

    /// The rows of a slot to read and of another one to write.
    fn rows(&mut self, from: Slot, to: Slot) -> Result<[&mut [f32]; 2]> {
        self.sequence.resize(to, self.block.tokens)?;
        let slots = self
            .sequence
            .slots
            .get_disjoint_mut([from as usize, to as usize]);
        let same = |_| Error::invalid("slots", format!("{from:?} and {to:?}"), "different");
        slots
            .map_err(same)
            .map(|slots| slots.map(Vec::as_mut_slice))
    }

    /// Adds the product of an adapter's two matrices.
    fn adapt(&mut self, part: &Part, scale: f32, from: Slot, to: Slot) -> Result<()> {
        let (cpu, tokens) = (self.sequence.cpu, self.block.tokens);
        let rows = part.b.len() / part.rank;
        let cols = part.a.len() / part.rank;
        // Out of the sequence, so that its slots can be read beside them.
        let mut low_rank = std::mem::take(&mut self.sequence.low_rank);
        let [low, more] = &mut low_rank;
        try_resize(low, tokens * part.rank)?;
        try_resize(more, tokens * rows)?;
        let [x, y] = self.rows(from, to)?;
        multiply_floats(cpu, (&part.a, part.rank, cols), x, low)?;
        for x in low.iter_mut() {
            *x *= scale;
        }
        multiply_floats(cpu, (&part.b, rows, part.rank), low, more)?;
        add(y, more);
        self.sequence.low_rank = low_rank;
        Ok(())
    }

    /// Normalises heads if there is a gain, and rotates them.
    fn turn(&mut self, slot: Slot, gain: Option<VectorId>, rotation: usize) -> Result<()> {
        let (cpu, config) = (self.sequence.cpu, &self.model.config);
        let row = self.sequence.lens[slot as usize];
        let rows = &mut self.sequence.slots[slot as usize];
        if let Some(gain) = gain {
            let mut normed = try_zeros(rows.len())?;
            let gain = &self.model.weights.vectors[gain.0];
            norm(cpu, config, rows, gain, &mut normed)?;
            *rows = normed;
        }
        let angles = &self.angles[rotation];
        let rotation = &config.rotations[rotation];
        let angles = angles.chunks_exact(rotation.rotated / 2);
        for (row, angles) in rows.chunks_exact_mut(row).zip(angles) {
            for head in row.chunks_exact_mut(config.head_len) {
                rotation.apply(head, angles);
            }
        }
        Ok(())
    }
}

impl StepRunner for Pass<'_> {
    fn norm(&mut self, from: Slot, gain: VectorId, to: Slot) -> Result<()> {
        let (cpu, model) = (self.sequence.cpu, self.model);
        let gain = &model.weights.vectors[gain.0];
        let skipped = match from {
            Slot::Residual => self.block.skipped * gain.len(),
            _ => 0,
        };
        let [from, to] = self.rows(from, to)?;
        norm(cpu, &model.config, &from[skipped..][..to.len()], gain, to)
    }

    fn multiply(&mut self, from: Slot, weight: WeightId, to: Slot, adds: bool) -> Result<()> {
        let (cpu, model) = (self.sequence.cpu, self.model);
        let matrix = model.weights.matrices[weight.0].matrix(&model.file)?;
        let product = if adds { Slot::Branch } else { to };
        let [x, y] = self.rows(from, product)?;
        multiply_blocks(cpu, matrix, x, y)?;
        for (adapter, scale) in self.adapters {
            if let Some(part) = adapter.on_cpu(weight.0) {
                self.adapt(part, *scale, from, product)?;
            }
        }
        if adds {
            let [product, to] = self.rows(product, to)?;
            add(to, product);
        }
        Ok(())
    }

    fn add_vector(&mut self, vector: VectorId, to: Slot) -> Result<()> {
        let vector = &self.model.weights.vectors[vector.0];
        let rows = self.sequence.slots[to as usize].chunks_exact_mut(vector.len());
        rows.for_each(|row| add(row, vector));
        Ok(())
    }

    fn add(&mut self, from: Slot, to: Slot) -> Result<()> {
        let [from, to] = self.rows(from, to)?;
        add(to, from);
        Ok(())
    }

    fn place(&mut self, gains: Option<[VectorId; 2]>, rotation: usize, layer: usize) -> Result<()> {
        self.turn(Slot::Queries, gains.map(|gains| gains[0]), rotation)?;
        self.turn(Slot::Keys, gains.map(|gains| gains[1]), rotation)?;
        let CpuSequence { slots, cache, .. } = &mut *self.sequence;
        let first = self.block.first;
        cache.write_keys(layer, first, &slots[Slot::Keys as usize])?;
        cache.write_values(layer, first, &slots[Slot::Values as usize])?;
        slots.swap(Slot::Queries as usize, Slot::Rotated as usize);
        Ok(())
    }

    fn attend(&mut self, layer: usize, window: Option<usize>) -> Result<()> {
        let (config, cpu) = (&self.model.config, self.sequence.cpu);
        let CachedLayer { room, first, .. } = self.sequence.cache.layer(layer);
        let shape = AttentionShape {
            tokens: self.block.tokens,
            first: self.block.first - first,
            all: None,
            heads: config.heads,
            kv_heads: config.kv_heads,
            head_len: config.head_len,
            capacity: room,
            scale: config.score_scale(),
            window,
            soft_cap: None,
            cache_type: config.cache_type,
        };
        self.sequence.resize(Slot::Mixed, self.block.tokens)?;
        // Out of their array, so that the queries can be read beside them.
        let mut mixed = std::mem::take(&mut self.sequence.slots[Slot::Mixed as usize]);
        let CachedLayer { keys, values, .. } = self.sequence.cache.layer(layer);
        let queries = &self.sequence.slots[Slot::Rotated as usize];
        let attended = attention(cpu, shape, queries, keys, values, &mut mixed);
        self.sequence.slots[Slot::Mixed as usize] = mixed;
        attended
    }

    fn activate(&mut self, activation: Activation) -> Result<()> {
        let op = match activation {
            Activation::Silu => Op::SiluMul,
            Activation::GeluTanh => Op::GeluMul,
        };
        let cpu = self.sequence.cpu;
        self.sequence.resize(Slot::Gated, self.block.tokens)?;
        let slots = [Slot::Gate, Slot::Up, Slot::Gated].map(|slot| slot as usize);
        match self.sequence.slots.get_disjoint_mut(slots) {
            Ok([gate, up, to]) => execute(cpu, &op, &[gate, up], to),
            Err(_) => Ok(()),
        }
    }
}

/// Normalises rows, which have the length of the gain.
fn norm(cpu: Cpu, config: &Config, x: &[f32], gain: &[f32], to: &mut [f32]) -> Result<()> {
    let op = Op::RmsNorm {
        rows: x.len() / gain.len(),
        cols: gain.len(),
        epsilon: config.epsilon,
    };
    execute(cpu, &op, &[x, gain], to)
}

fn add(x: &mut [f32], more: &[f32]) {
    x.iter_mut().zip(more).for_each(|(x, more)| *x += more);
}
