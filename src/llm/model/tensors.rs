//! The layers of a decoder as lazy tensors, which have gradients. They are recorded from the steps that all back-ends run.

mod attention;
mod texts;

use super::Model;
use super::steps::{Slot, Step, VectorId, WeightId};
use crate::device::{Backend, GpuDevice};
use crate::error::{Error, Result};
use crate::graph::steps::Activation;
use crate::lazy::{Tensor, Tensors};
use crate::llm::gguf::invalid;
use crate::llm::model::Executor;
use crate::simd::Cpu;
use std::ops::Range;
use std::sync::Arc;
pub(in crate::llm) use texts::{TextRows, TextTensors};

/// A decoder whose layers are recorded as tensors. Its weights stay in their blocks: a layer's are unpacked each time the
/// layer is recorded.
pub(in crate::llm) struct TensorModel<'a> {
    model: &'a Model,
    pub(in crate::llm) tensors: Tensors,
    cpu: Cpu,
}

/// The unpacked weights of some steps.
pub(in crate::llm) struct StepWeights {
    vectors: Vec<(usize, Tensor)>,
    matrices: Vec<(usize, Tensor)>,
}

/// The matrices of an adapter for a tensor of the model's file: `x · Aᵀ · Bᵀ` times a scale is added to its products.
#[derive(Clone, Debug)]
pub(in crate::llm) struct LowRankTensors {
    pub(in crate::llm) tensor: Arc<str>,
    /// `rank` rows, as long as the tensor's.
    pub(in crate::llm) a: Tensor,
    /// A row of `rank` elements for each of the tensor's.
    pub(in crate::llm) b: Tensor,
}

/// The adapter of a layer.
#[derive(Clone, Copy)]
pub(in crate::llm) struct LayerAdapter<'a> {
    pub(in crate::llm) matrices: &'a [LowRankTensors],
    pub(in crate::llm) scale: f32,
}

/// The adapter of a layer that has none.
const PLAIN: LayerAdapter<'_> = LayerAdapter {
    matrices: &[],
    scale: 0.0,
};

impl Model {
    /// Returns the device of the model's back-end.
    async fn device(&self) -> Result<GpuDevice> {
        match (&self.device, &self.executor) {
            (Some(device), _) => Ok(device.clone()),
            (None, Executor::Cpu(on)) => {
                let Cpu { isa, threads } = on.cpu();
                let device = GpuDevice::builder().backend(Backend::Simd);
                let device = device.instruction_set(isa).threads(threads);
                device.build_async().await
            }
            (None, _) => Err(partial(self)),
        }
    }
}

/// The error of a model whose weights are not in memory.
fn partial(model: &Model) -> Error {
    let requirement =
        "one whose file is in memory: the weights of an incoming model are only on its GPU";
    Error::invalid("model", model.config.architecture.name, requirement)
}

impl<'a> TensorModel<'a> {
    /// Prepares a model on its device.
    ///
    /// # Errors
    /// `InvalidArgument` for an encoder, for a mixture of experts, and for a model whose file is not in memory.
    pub(in crate::llm) async fn new(model: &'a Model) -> Result<Self> {
        model.check_decoder()?;
        if model.file.is_partial() {
            return Err(partial(model));
        }
        if model.config.experts.is_some() {
            return Err(without_gradient(model));
        }
        let device = model.device().await?;
        let cpu = device.cpu();
        let tensors = Tensors::new(&device);
        Ok(Self {
            model,
            tensors,
            cpu,
        })
    }

    /// Returns the values that enter the first layer for tokens: a row for each.
    pub(in crate::llm) fn embedded(&self, tokens: &[u32]) -> Result<Tensor> {
        let width = self.model.config.width;
        let mut rows = crate::alloc::try_zeros(tokens.len() * width)?;
        self.model.embed(super::Input::Tokens(tokens), &mut rows)?;
        self.tensors.own(rows, &[tokens.len(), width])
    }

    /// Unpacks the weights of a layer.
    pub(in crate::llm) fn layer_weights(&self, layer: usize) -> Result<StepWeights> {
        let steps = &self.model.steps.layers[layer];
        let matrices = steps.iter().filter_map(|step| step.weight());
        let matrices = matrices.map(|WeightId(id)| {
            let rows = 0..self.model.weights.matrices[id].rows;
            Ok((id, self.matrix(id, rows)?))
        });
        let matrices = matrices.collect::<Result<_>>()?;
        let vectors = self.vectors(steps)?;
        Ok(StepWeights { vectors, matrices })
    }

    /// Returns the weights of the norm after the last layer.
    pub(in crate::llm) fn norm_weights(&self) -> Result<StepWeights> {
        Ok(StepWeights {
            vectors: self.vectors(&self.model.steps.end)?,
            matrices: Vec::new(),
        })
    }

    /// Unpacks the rows of the matrix that gives the logits of some tokens of the vocabulary.
    pub(in crate::llm) fn head_weights(&self, tokens: Range<usize>) -> Result<StepWeights> {
        let head = self.model.weights.head.unwrap_or_default();
        Ok(StepWeights {
            vectors: Vec::new(),
            matrices: vec![(head, self.matrix(head, tokens)?)],
        })
    }

    /// Unpacks the rows of the matrix that gives logits for some tokens.
    pub(in crate::llm) fn head_rows(&self, tokens: &[u32]) -> Result<Tensor> {
        let head = self.model.weights.head.unwrap_or_default();
        let weight = &self.model.weights.matrices[head];
        let matrix = weight.matrix(&self.model.file)?;
        let mut rows = crate::alloc::try_zeros(tokens.len() * weight.cols)?;
        for (&token, row) in tokens.iter().zip(rows.chunks_exact_mut(weight.cols)) {
            matrix.dequantize_row(token as usize, row);
        }
        self.tensors.own(rows, &[tokens.len(), weight.cols])
    }

    fn matrix(&self, id: usize, rows: Range<usize>) -> Result<Tensor> {
        let weight = &self.model.weights.matrices[id];
        let shape = [rows.len(), weight.cols];
        let matrix = weight.matrix(&self.model.file)?;
        self.tensors
            .own(matrix.dequantized(self.cpu, rows)?, &shape)
    }

    fn vectors(&self, steps: &[Step]) -> Result<Vec<(usize, Tensor)>> {
        let used = steps.iter().flat_map(|step| step.vectors());
        let vectors = used.map(|VectorId(id)| {
            let values = &self.model.weights.vectors[id];
            Ok((id, self.tensors.tensor(values, &[values.len()])?))
        });
        vectors.collect()
    }

    /// Records a layer of rows that [`TextTensors`] describes.
    pub(in crate::llm) fn layer(
        &self,
        layer: usize,
        (weights, adapter): (&StepWeights, LayerAdapter<'_>),
        texts: &TextTensors,
        x: &Tensor,
    ) -> Result<Tensor> {
        let mut recording = Recording::new(self.model, weights, adapter);
        recording.texts = Some(texts);
        recording.set(Slot::Residual, x.clone());
        recording.run(&self.model.steps.layers[layer])?;
        recording.take(Slot::Residual)
    }

    /// Records the norm after the last layer.
    pub(in crate::llm) fn normed(&self, weights: &StepWeights, x: &Tensor) -> Result<Tensor> {
        let mut recording = Recording::new(self.model, weights, PLAIN);
        recording.set(Slot::Residual, x.clone());
        recording.run(&self.model.steps.end[..1])?;
        recording.take(Slot::Normed)
    }

    /// Records the logits that some rows of the head give for normalised rows.
    pub(in crate::llm) fn logits(&self, weights: &StepWeights, normed: &Tensor) -> Result<Tensor> {
        let mut recording = Recording::new(self.model, weights, PLAIN);
        recording.set(Slot::Normed, normed.clone());
        recording.run(&self.model.steps.end[1..])?;
        recording.take(Slot::Logits)
    }

    /// Records the logit that a row of the head gives for the normalised row beside it, in a column.
    pub(in crate::llm) fn logits_of_rows(&self, rows: &Tensor, normed: &Tensor) -> Result<Tensor> {
        let config = &self.model.config;
        let logits = normed.mul(rows)?.sum(-1)?.unsqueeze(-1)?;
        let logits = logits.mul(config.multipliers.logits)?;
        match config.soft_caps.logits {
            Some(cap) => soft_capped(&logits, cap),
            None => Ok(logits),
        }
    }
}

/// The error of an architecture with a step that has no gradient here.
fn without_gradient(model: &Model) -> Error {
    let requirement = "a decoder without experts, which cannot be tuned";
    Error::invalid("model", model.config.architecture.name, requirement)
}

/// The tensors of the slots while steps are recorded.
struct Recording<'a> {
    model: &'a Model,
    weights: &'a StepWeights,
    adapter: LayerAdapter<'a>,
    /// The positions of the rows; layers need them.
    texts: Option<&'a TextTensors>,
    slots: [Option<Tensor>; Slot::COUNT],
}

impl<'a> Recording<'a> {
    fn new(model: &'a Model, weights: &'a StepWeights, adapter: LayerAdapter<'a>) -> Self {
        Self {
            model,
            weights,
            adapter,
            texts: None,
            slots: [const { None }; Slot::COUNT],
        }
    }

    fn set(&mut self, slot: Slot, x: Tensor) {
        self.slots[slot as usize] = Some(x);
    }

    fn get(&self, slot: Slot) -> Result<&Tensor> {
        self.slots[slot as usize].as_ref().ok_or_else(unset)
    }

    fn take(mut self, slot: Slot) -> Result<Tensor> {
        self.slots[slot as usize].take().ok_or_else(unset)
    }

    fn vector(&self, VectorId(id): VectorId) -> Result<&Tensor> {
        found(&self.weights.vectors, id)
    }

    fn run(&mut self, steps: &[Step]) -> Result<()> {
        steps.iter().try_for_each(|&step| self.step(step))
    }

    fn step(&mut self, step: Step) -> Result<()> {
        match step {
            Step::Norm {
                from,
                gain,
                bias,
                to,
            } => {
                let (x, gain) = (self.get(from)?, self.vector(gain)?);
                let epsilon = self.model.config.epsilon;
                let y = match bias {
                    Some(bias) => x.layer_norm(gain, self.vector(bias)?, -1, epsilon)?,
                    None => x.rms_norm(gain, -1, epsilon)?,
                };
                self.set(to, y);
            }
            Step::Multiply {
                from,
                weight,
                to,
                adds,
                scale,
            } => {
                let mut y = self.multiply(self.get(from)?, weight)?;
                if scale != 1.0 {
                    y = y.mul(scale)?;
                }
                if adds {
                    y = self.get(to)?.add(&y)?;
                }
                self.set(to, y);
            }
            Step::AddVector { vector, to } => {
                let y = self.get(to)?.add(self.vector(vector)?)?;
                self.set(to, y);
            }
            Step::Add { from, to } => {
                let y = self.get(to)?.add(self.get(from)?)?;
                self.set(to, y);
            }
            Step::Place { gains, rotation } => self.place(gains, rotation)?,
            Step::Attend { window, .. } => {
                let mixed = self.attend(window.is_some())?;
                self.set(Slot::Mixed, mixed);
            }
            Step::Activate(activation) => {
                let gate = self.get(Slot::Gate)?;
                let gate = match activation {
                    Activation::Silu => gate.swish()?,
                    Activation::GeluTanh => gate.gelu_tanh()?,
                };
                let gated = gate.mul(self.get(Slot::Up)?)?;
                self.set(Slot::Gated, gated);
            }
            Step::SoftCap(cap) => {
                let logits = soft_capped(self.get(Slot::Logits)?, cap)?;
                self.set(Slot::Logits, logits);
            }
            Step::Gelu => {
                let gated = self.get(Slot::Gate)?.gelu()?;
                self.set(Slot::Gated, gated);
            }
            Step::AttendWithin { .. } | Step::Route(_) | Step::MultiplyExperts { .. } => {
                return Err(without_gradient(self.model));
            }
        }
        Ok(())
    }

    /// Multiplies rows by a matrix, and adds the products of the adapter.
    fn multiply(&self, x: &Tensor, WeightId(id): WeightId) -> Result<Tensor> {
        let y = x.matmul(&found(&self.weights.matrices, id)?.transpose()?)?;
        let weight = &self.model.weights.matrices[id];
        let LayerAdapter { matrices, scale } = self.adapter;
        let Some(own) = matrices.iter().find(|own| own.tensor == weight.tensor) else {
            return Ok(y);
        };
        let rows = weight.first_row as isize..(weight.first_row + weight.rows) as isize;
        let b = own.b.slice(0, rows)?;
        let low = x.matmul(&own.a.transpose()?)?.mul(scale)?;
        y.add(&low.matmul(&b.transpose()?)?)
    }
}

/// Records `cap · tanh(x / cap)`.
fn soft_capped(x: &Tensor, cap: f32) -> Result<Tensor> {
    x.mul(1.0 / cap)?.tanh()?.mul(cap)
}

fn found(all: &[(usize, Tensor)], id: usize) -> Result<&Tensor> {
    let found = all.iter().find(|(own, _)| *own == id);
    found.map(|(_, tensor)| tensor).ok_or_else(unset)
}

/// The error of steps in an order in which no model has them.
fn unset() -> Error {
    invalid(
        "a step reads values that no earlier step writes",
        "the layers",
    )
}
