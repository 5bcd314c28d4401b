//! The steps of a block of tokens, as they are recorded.

use super::super::architecture::HeadNorms;
use super::super::forward::foreign;
use super::super::rotation::Pairs;
use super::super::steps::{Slot, Step, VectorId, WeightId};
use super::super::{Block, BlockRequest, Model, Output, Scaled, SequenceRows};
use super::slots::Slots;
use super::{BackendModel, BackendSequence, ModelBackend};
use crate::error::Result;
use crate::graph::steps::{
    ALONE_BELOW, Activation, Attention, ExpertProduct, HeadGains, HeadPlaces, HeadRotation, Norm,
    Product, StepCache, StepPass, TextRows, TokenRows,
};
use std::ops::Range;

/// Steps over a block of tokens.
pub(super) struct Pass<'a, B: ModelBackend> {
    pub(super) on: &'a BackendModel<B>,
    pub(super) slots: &'a Slots<B>,
    pub(super) model: &'a Model,
    sequences: Vec<Rows<'a, B>>,
    pub(super) adapters: &'a [Scaled],
    texts: &'a [Range<usize>],
    block: Block,
    pub(super) recorder: B::Pass<'a>,
    /// The norm that the next product may compute itself.
    pending: Option<PendingNorm<'a, B::Buffer>>,
    /// The heads that the next attention may place itself.
    heads: Option<Heads>,
}

/// The rows of a sequence's tokens.
struct Rows<'a, B: ModelBackend> {
    sequence: &'a BackendSequence<B>,
    /// The first token's position.
    first: usize,
    tokens: usize,
    /// The rows of the sequences before.
    before: usize,
}

/// Returns the rows of each sequence.
///
/// # Errors
/// `Foreign` for one of another model.
fn rows_of<'a, B: ModelBackend>(sequences: &[SequenceRows<'a>]) -> Result<Vec<Rows<'a, B>>> {
    let mut before = 0;
    let rows = sequences.iter().map(|rows| {
        let sequence = B::sequence(rows.state).ok_or_else(foreign)?;
        before += rows.tokens;
        Ok(Rows {
            sequence,
            first: rows.first,
            tokens: rows.tokens,
            before: before - rows.tokens,
        })
    });
    rows.collect()
}

/// The numbers of the vectors that normalise heads, and the number of the rotation.
type Heads = (Option<[VectorId; 2]>, Option<usize>);

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
    pub(super) fn new(
        on: &'a BackendModel<B>,
        slots: &'a Slots<B>,
        model: &'a Model,
        request: &BlockRequest<'a>,
        block: Block,
    ) -> Result<Self> {
        let BlockRequest {
            adapters, texts, ..
        } = *request;
        let sequences = rows_of::<B>(request.sequences)?;
        let number = sequences.first().map_or(0, |rows| rows.sequence.number);
        let mut recorder = on.backend.sequence_pass(number)?;
        if on.angles.is_none() {
            let positions: Vec<usize> = if texts.is_empty() {
                let rows = sequences.iter();
                rows.flat_map(|rows| rows.first..rows.first + rows.tokens)
                    .collect()
            } else {
                texts.iter().flat_map(|text| 0..text.len()).collect()
            };
            let rotations = &model.config.rotations;
            for (rotation, to) in rotations.iter().zip(&slots.angles) {
                let angles = rotation.angles(&positions);
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
            sequences,
            adapters,
            texts,
            block,
            recorder,
            pending: None,
            heads: None,
        })
    }

    /// Adds the steps from a block's residual to a result.
    pub(super) fn end(&mut self, block: Block, output: Output) -> Result<()> {
        self.block = block;
        self.run(self.model.steps.end(output))?;
        if output == Output::Normed {
            return self.normalise();
        }
        Ok(())
    }

    /// Records what makes a result of the rows after [`Pass::end`]; returns where it is, and the number of its elements.
    pub(super) fn result(&mut self, output: Output) -> Result<(&'a B::Buffer, usize)> {
        match output {
            Output::Largest => self.choose(None, None, 0),
            Output::LargestOfEach => self.choose_each(),
            Output::Logits(_) | Output::Residual | Output::Normed => Ok(self.rows(output.slot())),
        }
    }

    /// Returns a slot with a separate buffer, and the number of elements of the block's rows.
    pub(super) fn rows(&self, slot: Slot) -> (&'a B::Buffer, usize) {
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

    pub(super) fn run(&mut self, steps: &[Step]) -> Result<()> {
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
                        ..self.product()
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

    /// Returns the plain product of the block's rows.
    fn product(&self) -> Product {
        Product {
            alone: self.alone(),
            ..Product::of(self.block.tokens)
        }
    }

    /// Whether each row has the bits that it has by itself: those of several sequences, and few tokens. Texts of encoders
    /// are multiplied alike, however many there are.
    fn alone(&self) -> bool {
        let few = self.block.tokens < ALONE_BELOW || self.sequences.len() > 1;
        self.texts.is_empty() && few
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
        let adapters = self.low_rank_products(weight, to, product.scale);
        self.recorder
            .multiply_adapted(from, weights, to, product, norm, &adapters)
    }

    fn places(
        &self,
        (gains, rotation): Heads,
        layer: usize,
        rows: &Rows<'a, B>,
    ) -> HeadPlaces<'a, B::Buffer> {
        let (config, on) = (&self.model.config, self.on);
        let gains = gains.map(|gains| gains.map(|gain| &on.vectors[gain.0]));
        let number = rotation.unwrap_or_default();
        let angles = &self.slots.angles[number];
        let rotation = rotation.map(|number| &config.rotations[number]);
        let positions = match on.angles {
            Some(_) => config.capacity,
            None => self.block.tokens,
        };
        HeadPlaces {
            tokens: rows.tokens,
            rows: self.token_rows(rows),
            heads: config.heads,
            kv_heads: config.kv_heads,
            head_len: config.head_len,
            position: rows.first,
            capacity: config.room(layer),
            gains: gains.map(|gains| HeadGains {
                gains,
                epsilon: config.epsilon,
                joint: config.architecture.norms_heads == HeadNorms::Joint,
            }),
            rotation: HeadRotation {
                angles,
                pairs: rotation.map_or(0, |rotation| rotation.rotated / 2),
                query_angles: rotation.map_or(0, |rotation| rotation.query_angles(positions)),
                neighbours: rotation.is_some_and(|rotation| rotation.pairs == Pairs::Neighbours),
            },
            cache_type: config.cache_type,
        }
    }

    fn token_rows(&self, rows: &Rows<'a, B>) -> TokenRows {
        TokenRows {
            before: rows.before,
            all: self.block.tokens,
        }
    }
}

impl<'a, B: ModelBackend> Pass<'a, B> {
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
                scale,
            } => {
                let product = Product {
                    adds,
                    scale,
                    ..self.product()
                };
                self.multiply_by(from, weight, to, product)
            }
            Step::AddVector { vector, to } => self.add_vector(vector, to),
            Step::Add { from, to } => self.add(from, to),
            Step::Place { gains, rotation } => {
                self.heads = Some((gains, rotation));
                Ok(())
            }
            Step::Attend { layer, window } => self.attend(layer, window),
            Step::AttendWithin { layer } => self.attend_within(layer),
            Step::Activate(activation) => self.activate(activation),
            Step::Route(routing) => {
                // Not only the router reads the norm's result.
                self.normalise()?;
                let [logits, routes] =
                    [Slot::Router, Slot::Routes].map(|slot| self.slots.own(slot));
                self.recorder
                    .route(logits, routes, self.block.tokens, routing)
            }
            Step::MultiplyExperts {
                from,
                weight,
                rows,
                to,
            } => self.multiply_experts(from, weight, rows, to),
            Step::SoftCap(cap) => {
                let (logits, len) = self.rows(Slot::Logits);
                self.recorder.soft_cap(logits, len, cap)
            }
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
        for rows in &self.sequences {
            let heads = self.places(heads, layer, rows);
            let attention = self.attention(layer, window, rows);
            let cached = rows.sequence.layers[layer].memory();
            // Keys and values lie after queries.
            self.recorder.place_and_attend(
                slots.own(Slot::Queries),
                &heads,
                (slots.own(Slot::Rotated), cached),
                &attention,
                &slots.parts,
                slots.own(Slot::Mixed),
            )?;
        }
        Ok(())
    }

    /// Records the attention of each token to its text, after the heads of all were placed in a layer's cache.
    fn attend_within(&mut self, layer: usize) -> Result<()> {
        let Some(heads) = self.heads.take() else {
            return Ok(());
        };
        let Some(rows) = self.sequences.first() else {
            return Ok(());
        };
        let slots = self.slots;
        let cached = rows.sequence.layers[layer].memory();
        let queries = slots.own(Slot::Rotated);
        let heads = self.places(heads, layer, rows);
        self.recorder
            .place(slots.own(Slot::Queries), &heads, queries, cached)?;
        let texts = TextRows {
            rows: self.texts,
            bounds: &slots.bounds,
        };
        let attention = self.attention(layer, None, rows);
        let mixed = slots.own(Slot::Mixed);
        self.recorder
            .attend_within((queries, cached), &attention, texts, mixed)
    }

    fn attention(&self, layer: usize, window: Option<usize>, rows: &Rows<'a, B>) -> Attention {
        let config = &self.model.config;
        Attention {
            tokens: rows.tokens,
            rows: self.token_rows(rows),
            heads: config.heads,
            kv_heads: config.kv_heads,
            head_len: config.head_len,
            position: rows.first,
            capacity: config.room(layer),
            window,
            scale: config.multipliers.scores,
            soft_cap: config.soft_caps.scores,
            cache_type: config.cache_type,
        }
    }

    fn multiply_experts(
        &mut self,
        from: Slot,
        weight: WeightId,
        rows: usize,
        to: Slot,
    ) -> Result<()> {
        let slots = self.slots;
        let Some(weights) = &self.on.matrices[weight.0] else {
            return Ok(());
        };
        let product = ExpertProduct {
            tokens: self.block.tokens,
            used: slots.len(Slot::Routes) / 2,
            rows,
            mixes: to == Slot::Residual,
            scale: self.model.config.multipliers.additions,
            alone: self.alone(),
        };
        let routes = slots.own(Slot::Routes);
        self.recorder
            .multiply_experts(slots.own(from), weights, slots.get(to), routes, product)
    }

    fn activate(&mut self, activation: Activation) -> Result<()> {
        let slots = self.slots;
        let (gate, hidden) = (slots.own(Slot::Gate), slots.len(Slot::Gate));
        let to = slots.own(Slot::Gated);
        let shape = [self.block.tokens, hidden];
        self.recorder.gate(gate, to, shape, activation)
    }
}
