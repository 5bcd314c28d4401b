//! The steps of a token with the kernels that run them.

use super::super::Model;
use super::super::steps::{Slot, Step, WeightId};
use super::{BackendModel, ModelBackend};
use crate::graph::steps::Activation;
use crate::llm::ModelStep;

impl<B: ModelBackend> BackendModel<B> {
    /// Returns the lookup of a token's embedding and then each kernel of the token, in order.
    pub(in crate::llm::model) fn explain(&self, model: &Model) -> Vec<ModelStep> {
        let mut steps = Explaining {
            on: self,
            model,
            norm: None,
            last: None,
            steps: vec![model.explain_embedding()],
        };
        for (layer, all) in self.layers.iter().enumerate() {
            for &step in all {
                steps.add(step, Some(layer));
            }
        }
        for &step in &model.steps.end {
            steps.add(step, None);
        }
        steps.steps
    }
}

/// The kernels so far.
struct Explaining<'a, B: ModelBackend> {
    on: &'a BackendModel<B>,
    model: &'a Model,
    /// The norm that the next products compute themselves.
    norm: Option<Step>,
    /// The step before, if it is a product.
    last: Option<Step>,
    steps: Vec<ModelStep>,
}

impl<B: ModelBackend> Explaining<'_, B> {
    fn add(&mut self, step: Step, layer: Option<usize>) {
        let last = self.last.take();
        let mut info = self.model.explain_step(step, layer);
        info.backend = self.model.backend();
        let cache_type = self.model.config.cache_type as usize;
        let of_encoder = B::KERNELS.encoder.unwrap_or_default();
        info.kernel = match step {
            Step::Norm { bias: Some(_), .. } => of_encoder.layer_norm,
            Step::Norm { from, .. } => {
                // Tiles, which normalise nothing, begin with more rows than one.
                let is_fused = from == Slot::Residual;
                self.norm = is_fused.then_some(step);
                if is_fused {
                    return;
                }
                B::KERNELS.norm
            }
            Step::Multiply { from, weight, .. } => {
                self.multiply(from, weight, &info);
                self.last = Some(step);
                return;
            }
            Step::AddVector { .. } | Step::Add { .. } => B::KERNELS.add,
            Step::Place { .. } => B::KERNELS.place[cache_type],
            Step::Attend { .. } => match B::KERNELS.attend_next {
                Some(kernels) => {
                    // This kernel also does the step before: it places the heads.
                    if let Some(mut place) = self.steps.pop() {
                        place.operations.append(&mut info.operations);
                        info.operations = place.operations;
                        info.weight_bytes += place.weight_bytes;
                    }
                    kernels[cache_type]
                }
                None => B::KERNELS.attend[cache_type],
            },
            Step::AttendWithin { .. } => of_encoder.attend_within,
            Step::Route(_) => {
                // The experts read the norm's result, too.
                if let Some(norm) = self.norm.take() {
                    let mut norm = self.model.explain_step(norm, layer);
                    norm.backend = info.backend;
                    norm.kernel = B::KERNELS.norm;
                    self.steps.push(norm);
                }
                B::KERNELS.route
            }
            Step::MultiplyExperts { weight, .. } => {
                let weights = self.on.matrices[weight.0].as_ref();
                weights.map_or("", B::expert_kernel)
            }
            Step::SoftCap(_) => B::KERNELS.soft_cap,
            Step::Gelu => of_encoder.gelu,
            Step::Activate(_) if self.gates(last) => {
                if let Some(product) = self.steps.last_mut() {
                    product.operations.extend(info.operations);
                }
                return;
            }
            Step::Activate(Activation::Silu) => B::KERNELS.silu,
            Step::Activate(Activation::GeluTanh) => B::KERNELS.gelu,
        };
        self.steps.push(info);
    }

    /// Returns whether a product applies the gates that it gives.
    fn gates(&self, product: Option<Step>) -> bool {
        let Some(Step::Multiply {
            weight,
            to: Slot::Gate,
            ..
        }) = product
        else {
            return false;
        };
        let weights = self.on.matrices[weight.0].as_ref();
        weights.is_some_and(|weights| self.on.backend.gates(weights, 1))
    }

    /// Adds a product, which is a kernel for each part of its weights.
    fn multiply(&mut self, from: Slot, weight: WeightId, info: &ModelStep) {
        let matrices = &self.model.weights.matrices;
        let Some(weights) = &self.on.matrices[weight.0] else {
            return;
        };
        let norm = self.norm.filter(|_| from == Slot::Normed);
        let joined = self.on.joined.iter().find(|rows| rows.contains(&weight.0));
        let alone = [weight.0];
        let tensors = joined.map_or(&alone[..], Vec::as_slice);
        let mut tensors: Vec<String> = tensors
            .iter()
            .map(|&matrix| matrices[matrix].tensor.to_string())
            .collect();
        // Matrices of one tensor are its rows.
        tensors.dedup();
        let (kernel, parts) = B::row_kernel(weights, norm.is_some());
        for (rows, bytes) in parts {
            let mut step = info.clone();
            if let Some(norm) = norm {
                step.operations.insert(0, "rms_norm");
                step.weight_bytes = self.model.vector_bytes(norm);
            } else {
                step.weight_bytes = 0;
            }
            step.kernel = kernel;
            step.weight_bytes += bytes;
            step.shape = vec![rows, matrices[weight.0].cols];
            step.tensors.clone_from(&tensors);
            self.steps.push(step);
        }
    }
}
