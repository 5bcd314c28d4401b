//! The forward pass on a GPU.

use super::architecture::Activation;
use super::rotation::Pairs;
use super::steps::{Place, Slot, Step};
use super::{Block, Config, Model};
use crate::error::Result;
use crate::gpu::{Attention, BlockWeights, Gpu, GpuBuffer, HeadRotation, Heads, TransformerPass};
use std::sync::Arc;

/// The most tokens whose logits are computed at a time: each has as many as the vocabulary.
const LOGIT_ROWS: usize = 8;

/// A model's weights on a GPU, and memory for the values of a pass.
pub(super) struct GpuModel {
    gpu: Arc<Gpu>,
    matrices: Vec<BlockWeights>,
    vectors: Vec<GpuBuffer>,
    /// The cosines and sines of each rotation for all positions of a session.
    angles: [GpuBuffer; 2],
    slots: Vec<GpuBuffer>,
    lens: [usize; Slot::COUNT],
}

impl std::fmt::Debug for GpuModel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "GpuModel({} matrices)", self.matrices.len())
    }
}

/// The keys and the values of a sequence, for each layer.
pub(in crate::llm) struct GpuSequence {
    keys: Vec<GpuBuffer>,
    values: Vec<GpuBuffer>,
}

impl std::fmt::Debug for GpuSequence {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "GpuSequence({} layers)", self.keys.len())
    }
}

impl GpuModel {
    /// Copies the weights of a model to a GPU.
    ///
    /// # Errors
    /// `LimitExceeded` if a buffer would be too large, `OutOfMemory`, `DeviceLost`.
    pub(super) async fn new(gpu: &Arc<Gpu>, model: &Model) -> Result<Self> {
        let Model {
            config, weights, ..
        } = model;
        let mut matrices = Vec::new();
        for weight in &weights.matrices {
            let blocks = weight.bytes(&model.file);
            matrices.push(BlockWeights::new(gpu, weight.kind, blocks, weight.cols).await?);
        }
        let lens = Slot::lens(config, weights.vocabulary());
        let angles = config.rotations.each_ref();
        let angles = angles.map(|rotation| rotation.angles(0..config.capacity));
        let (vectors, angles, slots, writing) = {
            let mut pass = TransformerPass::new(gpu)?;
            let vectors = weights.vectors.iter().map(|vector| pass.upload(vector));
            let vectors = vectors.collect::<Result<Vec<_>>>()?;
            let angles = [
                pass.upload(angles[0].as_flattened())?,
                pass.upload(angles[1].as_flattened())?,
            ];
            let rows = |slot: usize| match slot {
                slot if slot == Slot::Logits as usize => LOGIT_ROWS,
                _ => super::BLOCK,
            };
            let slots = lens.iter().enumerate();
            let slots = slots.map(|(slot, len)| pass.allocate(rows(slot) * len));
            let slots = slots.collect::<Result<Vec<_>>>()?;
            (vectors, angles, slots, pass.submit(None)?)
        };
        writing.await?;
        Ok(Self {
            gpu: gpu.clone(),
            matrices,
            vectors,
            angles,
            slots,
            lens,
        })
    }

    /// Allocates the memory of a sequence.
    pub(super) fn sequence(&self, config: &Config) -> Result<GpuSequence> {
        let mut pass = TransformerPass::new(&self.gpu)?;
        let len = config.kv_heads * config.capacity * config.head_len;
        let mut layers = || {
            let layers = (0..config.layers).map(|_| pass.allocate(len));
            layers.collect::<Result<Vec<_>>>()
        };
        Ok(GpuSequence {
            keys: layers()?,
            values: layers()?,
        })
    }

    /// Reads a block of tokens, and returns the logits of its last `wanted` ones.
    pub(super) async fn read(
        &self,
        model: &Model,
        sequence: &GpuSequence,
        first: usize,
        tokens: &[u32],
        wanted: usize,
    ) -> Result<Vec<f32>> {
        let mut embedded = crate::alloc::try_zeros(tokens.len() * model.config.width)?;
        model.embed(tokens, &mut embedded)?;
        let mut block = Block {
            first,
            tokens: tokens.len(),
            skipped: 0,
        };
        let mut logits = Vec::new();
        // What is recorded lives between two awaits.
        let mut submitted = {
            let mut pass = Pass::new(self, model, sequence, block)?;
            pass.begin(&embedded)?;
            pass.run(&model.steps.body)?;
            block.skipped = tokens.len() - wanted;
            block.tokens = wanted.min(LOGIT_ROWS);
            pass.block = block;
            pass.submit()?
        };
        loop {
            logits.extend(submitted.await?);
            block.skipped += block.tokens;
            if block.skipped >= tokens.len() {
                return Ok(logits);
            }
            block.tokens = (tokens.len() - block.skipped).min(LOGIT_ROWS);
            submitted = Pass::new(self, model, sequence, block)?.submit()?;
        }
    }
}

/// Steps over a block of tokens.
struct Pass<'a> {
    on: &'a GpuModel,
    model: &'a Model,
    sequence: &'a GpuSequence,
    block: Block,
    recorder: TransformerPass<'a>,
}

impl<'a> Pass<'a> {
    fn new(
        on: &'a GpuModel,
        model: &'a Model,
        sequence: &'a GpuSequence,
        block: Block,
    ) -> Result<Self> {
        Ok(Self {
            on,
            model,
            sequence,
            block,
            recorder: TransformerPass::new(&on.gpu)?,
        })
    }

    fn slot(&self, slot: Slot) -> &'a GpuBuffer {
        &self.on.slots[slot as usize]
    }

    /// Adds up the number of elements in the block's rows of a slot.
    fn len(&self, slot: Slot) -> usize {
        self.block.tokens * self.on.lens[slot as usize]
    }

    /// Writes the residual.
    fn begin(&mut self, embedded: &[f32]) -> Result<()> {
        let to = self.slot(Slot::Residual);
        self.recorder.write(embedded, to)
    }

    /// Adds the steps from the block's residual to logits, if it has rows, and submits all.
    fn submit(mut self) -> Result<impl Future<Output = Result<Vec<f32>>> + use<>> {
        let len = self.len(Slot::Logits);
        if len > 0 {
            self.run(&self.model.steps.head)?;
        }
        let logits = self.slot(Slot::Logits);
        self.recorder.submit(Some((logits, len)))
    }

    fn run(&mut self, steps: &[Step]) -> Result<()> {
        steps.iter().try_for_each(|step| self.step(step))
    }

    fn step(&mut self, step: &Step) -> Result<()> {
        let (config, on, tokens) = (&self.model.config, self.on, self.block.tokens);
        match *step {
            Step::Norm { from, gain, to } => {
                let skipped = match from {
                    Slot::Residual => self.block.skipped,
                    _ => 0,
                };
                let inputs = [self.slot(from), &on.vectors[gain.0]];
                let to = self.slot(to);
                self.recorder
                    .norm(inputs, to, tokens, skipped, config.epsilon)
            }
            Step::Multiply {
                from,
                weight,
                to,
                adds,
            } => {
                let (from, to) = (self.slot(from), self.slot(to));
                let weights = &on.matrices[weight.0];
                self.recorder.multiply(from, weights, to, tokens, adds)
            }
            Step::AddVector { vector, to } => {
                let (vector, len) = (&on.vectors[vector.0], self.len(to));
                let to = self.slot(to);
                self.recorder.add((vector, vector.len()), to, len)
            }
            Step::Add { from, to } => {
                let len = self.len(to);
                let (from, to) = (self.slot(from), self.slot(to));
                self.recorder.add((from, len), to, len)
            }
            Step::Place {
                from,
                gain,
                rotation,
                to,
            } => {
                let gain = gain.map(|gain| (&on.vectors[gain.0], config.epsilon));
                let rotation = rotation.map(|index| self.rotation(index));
                self.place(from, gain, rotation, to)
            }
            Step::Attend { layer, window } => {
                let attention = Attention {
                    tokens,
                    heads: config.heads,
                    kv_heads: config.kv_heads,
                    head_len: config.head_len,
                    position: self.block.first,
                    capacity: config.capacity,
                    window,
                    scale: config.score_scale(),
                };
                let (keys, values) = (&self.sequence.keys[layer], &self.sequence.values[layer]);
                let inputs = [self.slot(Slot::Rotated), keys, values];
                let mixed = self.slot(Slot::Mixed);
                self.recorder.attend(inputs, &attention, mixed)
            }
            Step::Activate(activation) => {
                let len = self.len(Slot::Gate);
                let (up, gate) = (self.slot(Slot::Up), self.slot(Slot::Gate));
                let gelu = activation == Activation::GeluTanh;
                self.recorder.gate(up, gate, len, gelu)
            }
        }
    }

    fn rotation(&self, index: usize) -> HeadRotation<'a> {
        let rotation = &self.model.config.rotations[index];
        HeadRotation {
            angles: &self.on.angles[index],
            pairs: rotation.rotated / 2,
            neighbours: rotation.pairs == Pairs::Neighbours,
        }
    }

    fn place(
        &mut self,
        from: Slot,
        gain: Option<(&GpuBuffer, f32)>,
        rotation: Option<HeadRotation<'_>>,
        to: Place,
    ) -> Result<()> {
        let (config, Block { first, tokens, .. }) = (&self.model.config, self.block);
        let (heads, head_len) = (
            self.on.lens[from as usize] / config.head_len,
            config.head_len,
        );
        let cached = |buffer| {
            (
                buffer,
                first * head_len,
                head_len,
                config.capacity * head_len,
            )
        };
        let (to, start, token_stride, head_stride) = match to {
            Place::Queries => (self.slot(Slot::Rotated), 0, heads * head_len, head_len),
            Place::Keys(layer) => cached(&self.sequence.keys[layer]),
            Place::Values(layer) => cached(&self.sequence.values[layer]),
        };
        let placed = Heads {
            tokens,
            heads,
            head_len,
            position: first,
            gain,
            rotation,
            start,
            token_stride,
            head_stride,
        };
        let from = self.slot(from);
        self.recorder.place(from, &placed, to)
    }
}
