//! The steps of a token with the functions that run them.

use super::Model;
use super::steps::{Slot, Step};
use super::weights::Weight;
use crate::device::Backend;
use crate::graph::steps::{Activation, StepBackend};
use crate::llm::ModelStep;
use crate::simd::Cpu;

impl Model {
    /// Returns the steps of one decoded token as its back-end runs them.
    pub(crate) fn explain(&self) -> Vec<ModelStep> {
        by_executor!(self.executor, _cpu => self.explain_on_cpu(), gpu => gpu.explain(self))
    }

    fn explain_on_cpu(&self) -> Vec<ModelStep> {
        let mut steps = vec![self.explain_embedding()];
        for (layer, all) in self.steps.layers.iter().enumerate() {
            let all = all.iter();
            steps.extend(all.map(|&step| self.explain_step(step, Some(layer))));
        }
        let end = self.steps.end.iter();
        steps.extend(end.map(|&step| self.explain_step(step, None)));
        steps
    }

    /// The lookup of the token's embedding, which every back-end does on the CPU.
    pub(super) fn explain_embedding(&self) -> ModelStep {
        let embedding = &self.weights.matrices[self.weights.embedding];
        let bytes = embedding.kind.row_bytes(embedding.cols);
        ModelStep {
            layer: None,
            operations: vec!["gather_rows"],
            kernel: "dequantize_row",
            backend: Backend::Simd,
            shape: vec![1, embedding.cols],
            tensors: vec![embedding.tensor.to_string()],
            weight_type: Some(embedding.kind),
            weight_bytes: bytes.unwrap_or_default(),
        }
    }

    /// A step on SIMD.
    pub(super) fn explain_step(&self, step: Step, layer: Option<usize>) -> ModelStep {
        let lens = Slot::lens(&self.config, self.vocabulary());
        let len = |slot: Slot| lens[slot as usize];
        let heads = |slots: &[Slot]| {
            let len: usize = slots.iter().map(|&slot| len(slot)).sum();
            vec![len / self.config.head_len, self.config.head_len]
        };
        let matrix = step.weight().map(|weight| &self.weights.matrices[weight.0]);
        let kernels = <Cpu as StepBackend>::KERNELS;
        let of_encoder = kernels.encoder.unwrap_or_default();
        let (kernel, shape) = match step {
            Step::Norm { bias, to, .. } => {
                let kernel = bias.map_or(kernels.norm, |_| of_encoder.layer_norm);
                (kernel, vec![len(to)])
            }
            Step::Multiply { .. } => (
                "multiply_blocks",
                matrix.map_or(Vec::new(), |weight| vec![weight.rows, weight.cols]),
            ),
            Step::AddVector { to, .. } | Step::Add { to, .. } => (kernels.add, vec![len(to)]),
            Step::Place { .. } => (
                kernels.place[0],
                heads(&[Slot::Queries, Slot::Keys, Slot::Values]),
            ),
            Step::Attend { .. } => (kernels.attend[0], heads(&[Slot::Mixed])),
            Step::AttendWithin { .. } => (of_encoder.attend_within, heads(&[Slot::Mixed])),
            Step::Activate(activation) => (gated(activation), vec![len(Slot::Gated)]),
            Step::Route(routing) => (kernels.route, vec![routing.experts]),
            Step::MultiplyExperts { rows, .. } => (
                "multiply_blocks",
                matrix.map_or(Vec::new(), |weight| vec![rows, weight.cols]),
            ),
            Step::SoftCap(_) => (kernels.soft_cap, vec![len(Slot::Logits)]),
            Step::Gelu => (of_encoder.gelu, vec![len(Slot::Gated)]),
        };
        ModelStep {
            layer,
            operations: operations(step),
            kernel,
            backend: Backend::Simd,
            shape,
            tensors: matrix.map_or(Vec::new(), |weight| vec![weight.tensor.to_string()]),
            weight_type: matrix.map(|weight| weight.kind),
            weight_bytes: self.matrix_bytes(step) + self.vector_bytes(step),
        }
    }

    /// The size of the matrix of weights that a step reads: of experts, those of one token.
    pub(super) fn matrix_bytes(&self, step: Step) -> usize {
        let matrix = step.weight().map(|weight| &self.weights.matrices[weight.0]);
        let bytes = matrix.map_or(0, Weight::size);
        match (step, self.config.experts) {
            (Step::MultiplyExperts { .. }, Some(experts)) => bytes / experts.count * experts.used,
            _ => bytes,
        }
    }

    /// The size of the vectors of weights that a step reads.
    pub(super) fn vector_bytes(&self, step: Step) -> usize {
        let vectors = match step {
            Step::Norm { gain, bias, .. } => [Some(gain), bias].into_iter().flatten().collect(),
            Step::Place { gains, .. } => gains.map_or(Vec::new(), Vec::from),
            Step::AddVector { vector, .. } => vec![vector],
            Step::Multiply { .. }
            | Step::Add { .. }
            | Step::Attend { .. }
            | Step::AttendWithin { .. }
            | Step::Activate(_)
            | Step::Route(_)
            | Step::MultiplyExperts { .. }
            | Step::SoftCap(_)
            | Step::Gelu => Vec::new(),
        };
        let sizes = vectors
            .into_iter()
            .map(|vector| size_of_val(&*self.weights.vectors[vector.0]));
        sizes.sum()
    }
}

/// The names of a step's operations.
fn operations(step: Step) -> Vec<&'static str> {
    match step {
        Step::Norm { bias: None, .. } => vec!["rms_norm"],
        Step::Norm { .. } => vec!["layer_norm"],
        Step::Multiply { adds: true, .. }
        | Step::MultiplyExperts {
            to: Slot::Residual, ..
        } => vec!["matmul", "add"],
        Step::Multiply { .. } | Step::MultiplyExperts { .. } => vec!["matmul"],
        Step::AddVector { .. } | Step::Add { .. } => vec!["add"],
        Step::Place {
            gains, rotation, ..
        } => {
            let norm = gains.map(|_| "rms_norm");
            let rope = rotation.map(|_| "rope");
            let all = [norm, rope, Some("write_cache")];
            all.into_iter().flatten().collect()
        }
        Step::Attend { .. } | Step::AttendWithin { .. } => vec!["attention"],
        Step::Activate(activation) => vec![gated(activation)],
        Step::Route(_) => vec!["top_k", "softmax"],
        Step::SoftCap(_) => vec!["soft_cap"],
        Step::Gelu => vec!["gelu"],
    }
}

fn gated(activation: Activation) -> &'static str {
    match activation {
        Activation::Silu => "silu_mul",
        Activation::GeluTanh => "gelu_mul",
    }
}
