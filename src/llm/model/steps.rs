//! The forward pass as a list of steps, which every back-end runs.

mod encoder;
mod experts;

use super::architecture::HeadNorms;
use super::known_keys::is_other_tensor;
use super::rotations::is_factors;
use super::weights::{Weight, Weights, optional_vector, vector};
use super::{Config, Output};
use crate::error::Result;
use crate::graph::steps::{Activation, Routing};
use crate::llm::TensorInfo;
use crate::llm::gguf::{Gguf, invalid};
use std::collections::HashSet;

/// Values of a pass, one row for each token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Slot {
    /// The values that pass from layer to layer.
    Residual,
    /// The last norm's result.
    Normed,
    /// The result of attention or of the feed-forward network, before its norm.
    Branch,
    /// All heads of queries, keys and values, as the matrices give them.
    Queries,
    Keys,
    Values,
    /// The queries' heads as attention reads them.
    Rotated,
    /// The result of attention, all heads.
    Mixed,
    /// The feed-forward network's gate, the values that it multiplies, and the products.
    Gate,
    Up,
    Gated,
    /// The logits of experts, and the chosen experts with their weights.
    Router,
    Routes,
    Logits,
}

impl Slot {
    /// The number of slots.
    pub(super) const COUNT: usize = Slot::Logits as usize + 1;

    /// Returns the length of a row for each slot, by its number.
    pub(super) fn lens(config: &Config, vocabulary: usize) -> [usize; Slot::COUNT] {
        let (queries, keys) = config.projections();
        let (width, hidden) = (config.width, config.hidden);
        // Values that are no gates have nothing beside them.
        let encoder = config.architecture.encoder.as_ref();
        let up = encoder
            .filter(|encoder| !encoder.gates)
            .map_or(hidden, |_| 0);
        // Memory without elements would be an exception.
        let [experts, routes] = config
            .experts
            .map_or([1; 2], |experts| [experts.count, 2 * experts.used]);
        [
            width, width, width, queries, keys, keys, queries, queries, hidden, up, hidden,
            experts, routes, vocabulary,
        ]
    }
}

/// A vector of weights, by its number.
#[derive(Clone, Copy, Debug)]
pub(super) struct VectorId(pub(super) usize);

/// A matrix of weights, by its number.
#[derive(Clone, Copy, Debug)]
pub(super) struct WeightId(pub(super) usize);

/// A step of the forward pass. Rows are those of the block's tokens.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    /// Divides rows by their root mean square and multiplies them by a gain. With a bias, subtracts their mean first, and
    /// adds the bias last.
    Norm {
        from: Slot,
        gain: VectorId,
        bias: Option<VectorId>,
        to: Slot,
    },
    /// Multiplies rows by a matrix and a factor. If `adds` is set, adds the result to the elements of `to`.
    Multiply {
        from: Slot,
        weight: WeightId,
        to: Slot,
        adds: bool,
        scale: f32,
    },
    /// Adds a vector to each row.
    AddVector { vector: VectorId, to: Slot },
    /// Adds rows to rows.
    Add { from: Slot, to: Slot },
    /// Writes heads where the attention after it reads them: queries to `Rotated`, keys and values to the layer's cache.
    /// Queries and keys are normalised first if there are gains for them, and then rotated if there is a rotation.
    Place {
        gains: Option<[VectorId; 2]>,
        rotation: Option<usize>,
    },
    /// Attends to a layer's keys and values, of a window of positions if there is one.
    Attend { layer: usize, window: Option<usize> },
    /// Attends to the keys and values of the same text.
    AttendWithin { layer: usize },
    /// Multiplies the gate's activation by `Up`, to `Gated`.
    Activate(Activation),
    /// Chooses experts by the logits in `Router`, to `Routes`.
    Route(Routing),
    /// Multiplies rows by the matrices of their experts, of `rows` rows each. If `to` is `Residual`, adds the weighted sums.
    MultiplyExperts {
        from: Slot,
        weight: WeightId,
        rows: usize,
        to: Slot,
    },
    /// Bounds logits: each becomes `c · tanh(logit / c)`.
    SoftCap(f32),
    /// Writes the GELU of `Gate`, by its definition with the error function, to `Gated`.
    Gelu,
}

impl Step {
    /// Returns the matrix that the step multiplies by, if there is one.
    pub(super) fn weight(self) -> Option<WeightId> {
        match self {
            Self::Multiply { weight, .. } | Self::MultiplyExperts { weight, .. } => Some(weight),
            Self::Norm { .. }
            | Self::AddVector { .. }
            | Self::Add { .. }
            | Self::Place { .. }
            | Self::Attend { .. }
            | Self::AttendWithin { .. }
            | Self::Activate(_)
            | Self::Route(_)
            | Self::SoftCap(_)
            | Self::Gelu => None,
        }
    }
}

impl Step {
    /// Returns the vectors that the step reads.
    pub(super) fn vectors(self) -> impl Iterator<Item = VectorId> {
        let vectors = match self {
            Self::Norm { gain, bias, .. } => [Some(gain), bias],
            Self::AddVector { vector, .. } => [Some(vector), None],
            Self::Place {
                gains: Some([queries, keys]),
                ..
            } => [Some(queries), Some(keys)],
            Self::Place { gains: None, .. }
            | Self::Multiply { .. }
            | Self::MultiplyExperts { .. }
            | Self::Add { .. }
            | Self::Attend { .. }
            | Self::AttendWithin { .. }
            | Self::Activate(_)
            | Self::Route(_)
            | Self::SoftCap(_)
            | Self::Gelu => [None; 2],
        };
        vectors.into_iter().flatten()
    }
}

/// The steps of a model.
#[derive(Debug)]
pub(super) struct Steps {
    /// The steps of each layer.
    pub(super) layers: Vec<Vec<Step>>,
    /// The norm after the last layer, and the product that gives logits; none of an encoder.
    pub(super) end: Vec<Step>,
}

impl Steps {
    /// Lists the steps of a model, and finds the weights that they need.
    ///
    /// # Errors
    /// `InvalidModel` for a tensor that is missing or has another shape, and for one that no step reads, unless it is known
    /// to change no logits.
    pub(super) fn new(file: &Gguf, config: &Config) -> Result<(Self, Weights)> {
        let mut builder = Builder {
            file,
            config,
            steps: Vec::new(),
            weights: Weights::new(file, config)?,
            vectors: HashSet::new(),
        };
        let encoder = config.architecture.encoder.as_ref();
        let mut layers = Vec::new();
        for layer in 0..config.layers {
            if let Some(encoder) = encoder {
                builder.encoder_layer(encoder, layer)?;
            } else {
                builder.attention(layer)?;
                builder.feed_forward(layer)?;
            }
            layers.push(std::mem::take(&mut builder.steps));
        }
        match encoder {
            Some(encoder) => builder.input(encoder)?,
            None => builder.end()?,
        }
        builder.check_other_tensors()?;
        let end = builder.steps;
        Ok((Self { layers, end }, builder.weights))
    }

    /// Returns the steps after the layers that lead to a result.
    pub(super) fn end(&self, output: Output) -> &[Step] {
        match output {
            Output::Residual | Output::Logits(0) => &[],
            Output::Normed => self.end.get(..1).unwrap_or_default(),
            Output::Logits(_) | Output::Largest | Output::LargestOfEach => &self.end,
        }
    }
}

struct Builder<'a> {
    file: &'a Gguf,
    config: &'a Config,
    steps: Vec<Step>,
    weights: Weights,
    /// The names of the tensors that are vectors.
    vectors: HashSet<String>,
}

impl Builder<'_> {
    /// The norm after the last layer, and the product that gives logits.
    fn end(&mut self) -> Result<()> {
        self.norm(Slot::Residual, "output_norm", Slot::Normed)?;
        if let Some(head) = self.weights.head {
            let scale = self.config.multipliers.logits;
            self.multiply(Slot::Normed, WeightId(head), Slot::Logits, false, scale);
        }
        if let Some(cap) = self.config.soft_caps.logits {
            self.steps.push(Step::SoftCap(cap));
        }
        Ok(())
    }

    fn attention(&mut self, layer: usize) -> Result<()> {
        let config = self.config;
        let name = |part: &str| format!("blk.{layer}.{part}");
        let from = self.input_norm(&name("attn_norm"))?;
        self.projections(from, layer)?;
        let local = config.is_local(layer);
        let (queries, keys) = config.projections();
        let lens = match config.architecture.norms_heads {
            HeadNorms::None => None,
            HeadNorms::Each => Some([config.head_len; 2]),
            HeadNorms::Joint => Some([queries, keys]),
        };
        let gains = match lens {
            Some([queries, keys]) => Some([
                self.vector(&name("attn_q_norm.weight"), queries)?,
                self.vector(&name("attn_k_norm.weight"), keys)?,
            ]),
            None => None,
        };
        self.steps.push(Step::Place {
            gains,
            rotation: config.rotates(layer).then_some(usize::from(local)),
        });
        let window = config.window.filter(|_| local);
        self.steps.push(Step::Attend { layer, window });
        self.result(
            Slot::Mixed,
            &name("attn_output"),
            &name("post_attention_norm"),
        )
    }

    /// The matrices that give queries, keys and values.
    fn projections(&mut self, from: Slot, layer: usize) -> Result<()> {
        let name = |part: &str| format!("blk.{layer}.{part}");
        let (queries, keys) = self.config.projections();
        let parts = [
            (Slot::Queries, "attn_q", queries),
            (Slot::Keys, "attn_k", keys),
            (Slot::Values, "attn_v", keys),
        ];
        if self.config.architecture.fused {
            let fused = name("attn_qkv");
            return self.fused(from, &fused, &parts.map(|(slot, _, rows)| (slot, rows)));
        }
        let mut parts = parts.into_iter();
        parts.try_for_each(|(slot, part, rows)| self.linear(from, &name(part), rows, slot, false))
    }

    fn feed_forward(&mut self, layer: usize) -> Result<()> {
        let config = self.config;
        if let Some(experts) = config.experts {
            return self.expert_feed_forward(layer, experts);
        }
        let name = |part: &str| format!("blk.{layer}.{part}");
        let from = self.input_norm(&name("ffn_norm"))?;
        let parts = [
            (Slot::Gate, "ffn_gate", config.hidden),
            (Slot::Up, "ffn_up", config.hidden),
        ];
        if config.architecture.fused {
            let parts = parts.map(|(slot, _, rows)| (slot, rows));
            self.fused(from, &name("ffn_up"), &parts)?;
        } else {
            for (slot, part, rows) in parts {
                self.linear(from, &name(part), rows, slot, false)?;
            }
        }
        let activation = config.architecture.activation;
        self.steps.push(Step::Activate(activation));
        self.result(Slot::Gated, &name("ffn_down"), &name("post_ffw_norm"))
    }

    /// Normalises the residual where the architecture does before attention and the feed-forward network. Returns the slot
    /// with their input.
    fn input_norm(&mut self, name: &str) -> Result<Slot> {
        if !self.config.architecture.norms_inputs {
            return Ok(Slot::Residual);
        }
        self.norm(Slot::Residual, name, Slot::Normed)?;
        Ok(Slot::Normed)
    }

    /// Adds a matrix's result to the residual, normalised where the architecture has norms there.
    fn result(&mut self, from: Slot, name: &str, norm: &str) -> Result<()> {
        let width = self.config.width;
        if !self.config.architecture.norms_results {
            return self.linear(from, name, width, Slot::Residual, true);
        }
        self.linear(from, name, width, Slot::Branch, false)?;
        self.norm(Slot::Branch, norm, Slot::Normed)?;
        self.steps.push(Step::Add {
            from: Slot::Normed,
            to: Slot::Residual,
        });
        Ok(())
    }

    /// A matrix and the bias after it, if the file has one. Results that are added have the factor of additions.
    fn linear(&mut self, from: Slot, name: &str, rows: usize, to: Slot, adds: bool) -> Result<()> {
        let cols = self.len_of(from);
        let weight = Weight::new(self.file, &format!("{name}.weight"), rows, cols)?;
        let weight = self.weights.push_matrix(weight);
        let scale = if adds {
            self.config.multipliers.additions
        } else {
            1.0
        };
        self.multiply(from, weight, to, adds, scale);
        let name = format!("{name}.bias");
        if let Some(mut bias) = optional_vector(self.file, &name, rows)? {
            for bias in &mut bias {
                *bias *= scale;
            }
            let vector = self.weights.push_vector(bias);
            self.vectors.insert(name);
            self.steps.push(Step::AddVector { vector, to });
        }
        Ok(())
    }

    /// Matrices that are rows of one tensor, one after the other.
    fn fused(&mut self, from: Slot, name: &str, parts: &[(Slot, usize)]) -> Result<()> {
        let rows = parts.iter().map(|part| part.1).sum();
        let name = format!("{name}.weight");
        let all = Weight::new(self.file, &name, rows, self.config.width)?;
        let mut first = 0;
        for &(slot, rows) in parts {
            let weight = self.weights.push_matrix(all.rows(first..first + rows));
            self.multiply(from, weight, slot, false, 1.0);
            first += rows;
        }
        Ok(())
    }

    fn multiply(&mut self, from: Slot, weight: WeightId, to: Slot, adds: bool, scale: f32) {
        self.steps.push(Step::Multiply {
            from,
            weight,
            to,
            adds,
            scale,
        });
    }

    fn norm(&mut self, from: Slot, name: &str, to: Slot) -> Result<()> {
        let gain = self.vector(&format!("{name}.weight"), self.config.width)?;
        self.steps.push(Step::Norm {
            from,
            gain,
            bias: None,
            to,
        });
        Ok(())
    }

    fn vector(&mut self, name: &str, len: usize) -> Result<VectorId> {
        let vector = vector(self.file, name, len)?;
        self.vectors.insert(name.to_owned());
        Ok(self.weights.push_vector(vector))
    }

    /// Refuses tensors that no step reads, such as a bias or a norm that the architecture does not have: the logits would
    /// silently be others.
    fn check_other_tensors(&self) -> Result<()> {
        let matrices = self.weights.matrices.iter();
        let matrices: HashSet<&str> = matrices.map(|matrix| &*matrix.tensor).collect();
        let mut names = self.file.tensors().iter().map(TensorInfo::name);
        let other = names.find(|&name| {
            let is_read = matrices.contains(name) || self.vectors.contains(name);
            !(is_read || is_factors(self.file, name) || is_other_tensor(name))
        });
        let Some(name) = other else {
            return Ok(());
        };
        let architecture = self.config.architecture.name;
        let what = format!(
            "the forward pass of `{architecture}` with {} layers has no such tensor, which would change the logits",
            self.config.layers
        );
        Err(invalid(what, format!("tensor `{name}`")))
    }

    fn len_of(&self, slot: Slot) -> usize {
        Slot::lens(self.config, self.weights.vocabulary())[slot as usize]
    }
}
