//! A step: forward layer by layer, backward with each layer computed again, and the update.

use super::batches::Batch;
use super::head::Head;
use super::parameters::LayerParameters;
use crate::error::Result;
use crate::lazy::{Optimizer, Tensor};
use crate::llm::model::{LayerAdapter, StepWeights, TensorModel, TextTensors};
use crate::runtime::pause;

/// A model with an adapter that is learned.
pub(super) struct Learner<'a> {
    pub(super) model: TensorModel<'a>,
    pub(super) vocabulary: usize,
    pub(super) layers: Vec<LayerParameters>,
    pub(super) optimizer: Optimizer,
    pub(super) scale: f32,
    pub(super) max_norm: f32,
}

/// The gradients of a layer's matrices.
struct LayerGradients {
    layer: usize,
    gradients: Vec<Tensor>,
    /// The sum of their squares.
    square: Tensor,
}

impl Learner<'_> {
    /// Returns the loss of a batch.
    pub(super) async fn loss(&self, batch: &Batch) -> Result<f64> {
        let texts = self.model.texts(&batch.texts)?;
        let mut x = self.model.embedded(&batch.ids)?;
        for layer in 0..self.layers.len() {
            x = self.forward(layer, &texts, &x).await?;
        }
        let head = Head::new(&self.model, batch, self.vocabulary, &x)?;
        head.loss().await
    }

    /// Learns from a batch; returns the loss before, and the norm of all gradients.
    pub(super) async fn step(&mut self, batch: &Batch, rate: f32) -> Result<(f64, f32)> {
        let texts = self.model.texts(&batch.texts)?;
        let mut x = self.model.embedded(&batch.ids)?;
        let mut inputs = Vec::new();
        for layer in 0..self.layers.len() {
            inputs.push(x.clone());
            x = self.forward(layer, &texts, &x).await?;
        }
        let head = Head::new(&self.model, batch, self.vocabulary, &x)?;
        let (loss, mut slope) = head.gradient().await?;
        let learns = |layer: &LayerParameters| !layer.matrices.is_empty();
        let lowest = self.layers.iter().position(learns).unwrap_or_default();
        let mut all = Vec::new();
        for layer in (lowest..self.layers.len()).rev() {
            let Some(input) = inputs.pop() else { break };
            let needs_input = layer > lowest;
            let (before, own) = self
                .backward(layer, &texts, [&input, &slope], needs_input)
                .await?;
            all.extend(own);
            slope = before.unwrap_or(slope);
        }
        Ok((loss, self.update(all, rate).await?))
    }

    fn record(
        &self,
        layer: usize,
        weights: &StepWeights,
        texts: &TextTensors,
        x: &Tensor,
    ) -> Result<Tensor> {
        let adapter = LayerAdapter {
            matrices: &self.layers[layer].matrices,
            scale: self.scale,
        };
        self.model.layer(layer, (weights, adapter), texts, x)
    }

    async fn forward(&self, layer: usize, texts: &TextTensors, x: &Tensor) -> Result<Tensor> {
        pause().await;
        let weights = self.model.layer_weights(layer)?;
        self.record(layer, &weights, texts, x)?.run_async().await
    }

    /// Returns the gradient of a layer's input, and those of its matrices, given the input and the gradient of the result.
    async fn backward(
        &self,
        layer: usize,
        texts: &TextTensors,
        [x, slope]: [&Tensor; 2],
        needs_input: bool,
    ) -> Result<(Option<Tensor>, Option<LayerGradients>)> {
        pause().await;
        let weights = self.model.layer_weights(layer)?;
        let y = self.record(layer, &weights, texts, x)?;
        let mut wanted = self.layers[layer].tensors();
        if needs_input {
            wanted.push(x);
        }
        let mut gradients = y.mul(slope)?.sum(..)?.gradients(&wanted)?;
        let before = if needs_input { gradients.pop() } else { None };
        let mut square: Option<Tensor> = None;
        for gradient in &gradients {
            let own = gradient.square()?.sum(..)?;
            square = Some(match square {
                Some(square) => square.add(&own)?,
                None => own,
            });
        }
        let mut results: Vec<&Tensor> = gradients.iter().chain(&before).collect();
        results.extend(&square);
        self.model.tensors.run_async(&results).await?;
        let own = square.map(|square| LayerGradients {
            layer,
            gradients,
            square,
        });
        Ok((before, own))
    }

    /// Moves the matrices along gradients whose common norm is bounded; returns the norm before.
    async fn update(&mut self, all: Vec<LayerGradients>, rate: f32) -> Result<f32> {
        let squares: Vec<&Tensor> = all.iter().map(|own| &own.square).collect();
        let squares = self.model.tensors.read_async(&squares).await?;
        let norm = squares.iter().flatten().map(|&square| f64::from(square));
        let norm = libm::sqrt(norm.sum()) as f32;
        let factor = self.max_norm / norm.max(self.max_norm);
        for own in all {
            let parameters = &mut self.layers[own.layer];
            let Some(moments) = &parameters.moments else {
                continue;
            };
            let gradients = own.gradients.iter().map(|gradient| gradient.mul(factor));
            let gradients = gradients.collect::<Result<Vec<_>>>()?;
            let (moved, moments) =
                self.optimizer
                    .step(&parameters.tensors(), &gradients, moments, rate)?;
            let mut results: Vec<&Tensor> = moved.iter().collect();
            results.extend(moments.tensors());
            self.model.tensors.run_async(&results).await?;
            parameters.replace(moved, moments);
        }
        Ok(norm)
    }
}

#[cfg(all(test, not(target_arch = "wasm32")))]
mod tests {
    use super::super::batches::{BatchShape, batches, packed};
    use super::super::examples::Tokens;
    use super::super::options::TuneOptions;
    use super::super::parameters;
    use super::*;
    use crate::llm::model::Model;
    use crate::llm::{Gguf, GgufWriter, LoadOptions};
    use crate::random::Philox;
    use crate::runtime::block_on;

    const WIDTH: usize = 32;
    const VOCABULARY: usize = 40;

    fn model() -> Result<Model> {
        let mut writer = GgufWriter::default();
        writer.string("general.architecture", "llama");
        for (key, count) in [
            ("block_count", 3),
            ("context_length", 64),
            ("embedding_length", WIDTH),
            ("feed_forward_length", WIDTH),
            ("attention.head_count", 4),
            ("attention.head_count_kv", 2),
        ] {
            writer.unsigned(&format!("llama.{key}"), count as u32);
        }
        writer.float("llama.attention.layer_norm_rms_epsilon", 1e-5);
        let random = Philox::new(1);
        let mut matrix = |name: &str, rows: usize| {
            let mut values = vec![0.0; WIDTH * rows];
            random.normal(0, &mut values);
            writer.f32_tensor(
                name,
                &[WIDTH, rows][..if rows == 1 { 1 } else { 2 }],
                &values,
            )
        };
        matrix("token_embd.weight", VOCABULARY)?;
        matrix("output_norm.weight", 1)?;
        for layer in 0..3 {
            for (name, rows) in [
                ("attn_norm", 1),
                ("attn_q", WIDTH),
                ("attn_k", WIDTH / 2),
                ("attn_v", WIDTH / 2),
                ("attn_output", WIDTH),
                ("ffn_norm", 1),
                ("ffn_gate", WIDTH),
                ("ffn_up", WIDTH),
                ("ffn_down", WIDTH),
            ] {
                matrix(&format!("blk.{layer}.{name}.weight"), rows)?;
            }
        }
        Model::new(Gguf::from_bytes(writer.finish())?, &LoadOptions::default())
    }

    #[test]
    fn a_step_plans_nothing_after_the_first() -> Result<()> {
        let model = model()?;
        let tensor_model = block_on(TensorModel::new(&model))?;
        let options = TuneOptions::default();
        let optimizer = Optimizer::adamw();
        let targets = parameters::targets(&model, &options)?;
        let layers = parameters::first(&tensor_model.tensors, &targets, &options, optimizer)?;
        let mut learner = Learner {
            model: tensor_model,
            vocabulary: VOCABULARY,
            layers,
            optimizer,
            scale: 2.0,
            max_norm: 1.0,
        };
        let example = |len: u32| Tokens {
            ids: (0..len).collect(),
            learned: vec![true; len as usize],
        };
        let examples = [example(30), example(20), example(9)];
        let all = batches(&packed(&[0, 1, 2], &examples, 32), 1);
        let shape = BatchShape::of([&all].into_iter(), &examples, 32);
        let mut planned = Vec::new();
        for batch in &all {
            let batch = shape.batch(batch, &examples);
            let (loss, norm) = block_on(learner.step(&batch, 1e-3))?;
            assert!(loss.is_finite() && norm > 0.0);
            planned.push(learner.model.tensors.planned());
        }
        assert_eq!(planned[0], planned[1]);
        Ok(())
    }
}
