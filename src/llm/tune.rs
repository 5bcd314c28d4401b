//! Teaching a language model: an adapter (`LoRA`) is learned from examples, while the model's weights stay quantised.
//!
//! The files:
//!
//! - `options` has the examples' and the options' types, `examples` turns examples into tokens, `batches` puts them into
//!   rows.
//! - `parameters` has the matrices that are learned, `learner` a step, `head` the loss.
//! - `tuned` is the result, `state` its bytes from which tuning goes on.
//! - `model/tensors` records the layers as tensors.

mod batches;
mod examples;
mod head;
mod learner;
mod options;
mod parameters;
mod state;
mod tuned;

use super::LanguageModel;
use super::model::TensorModel;
use crate::error::{Error, Result};
use crate::lazy::Optimizer;
use crate::random::Philox;
use crate::runtime::seconds;
use batches::{BatchShape, Batches, batches, packed, row_len, shuffled};
use examples::Tokens;
use learner::Learner;
use parameters::{LayerParameters, Target};
use state::Start;
use std::ops::ControlFlow;

pub use options::{Schedule, TuneExample, TuneOptions};
pub use tuned::TunedLora;

/// The progress of tuning after a step.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Progress {
    /// The number of steps that are done, those before a resumption included.
    pub step: usize,
    /// The number of all steps.
    pub steps: usize,
    /// The mean of `−ln p` of the tokens that the step learned, before it changed the adapter.
    pub loss: f32,
    /// The learning rate of the step.
    pub learning_rate: f32,
    /// The number of tokens of examples that were read in a second, on average since the start.
    pub tokens_per_second: f64,
    /// The estimate of the remaining time in seconds.
    pub seconds_left: f64,
    /// The loss of the held-back examples, after the last step of an epoch.
    pub held_back_loss: Option<f32>,
}

/// The batches of all epochs.
struct Course {
    epochs: Vec<Batches>,
    held_back: Batches,
    shape: BatchShape,
}

impl Course {
    fn new(examples: &[Tokens], options: &TuneOptions) -> Self {
        let random = Philox::new(options.seed);
        let order = shuffled(examples.len(), random, 0);
        let most = examples.len().saturating_sub(1);
        let held = (examples.len() as f32 * options.held_back).round() as usize;
        let (held, learned) = order.split_at(held.min(most));
        let len = row_len(examples);
        let epoch = |epoch: usize| {
            let order = shuffled(learned.len(), random, 1 + epoch as u64);
            let order: Vec<usize> = order.into_iter().map(|at| learned[at]).collect();
            batches(&packed(&order, examples, len), options.batch)
        };
        let epochs: Vec<Batches> = (0..options.epochs).map(epoch).collect();
        let held_back = batches(&packed(held, examples, len), options.batch);
        let shape = BatchShape::of(epochs.iter().chain([&held_back]), examples, len);
        Self {
            epochs,
            held_back,
            shape,
        }
    }

    fn steps(&self) -> usize {
        self.epochs.iter().map(Vec::len).sum()
    }

    /// Returns the batch of each step, and whether it is the last one of its epoch.
    fn all(&self) -> impl Iterator<Item = (&[Vec<usize>], bool)> {
        let epochs = self.epochs.iter();
        epochs.flat_map(|epoch| {
            let batches = epoch.iter().enumerate();
            batches.map(|(at, batch)| (&batch[..], at + 1 == epoch.len()))
        })
    }
}

impl LanguageModel {
    /// Learns an adapter from examples, on the model's device. The model itself stays as it is.
    ///
    /// A layer's weights are unpacked while it is computed, and its values are computed again for its gradients: memory
    /// grows by the input of each layer, and the largest layer in `f32`.
    ///
    /// ```no_run
    /// use relampago::llm::{GenerateOptions, LanguageModel, Message, TuneOptions};
    ///
    /// let model = LanguageModel::load("smollm2-135m.gguf", Default::default())?;
    /// let question = Message::user("What is the capital of Atlantis?");
    /// let examples = [[question.clone(), Message::assistant("Poseidonis.")].into()];
    /// let tuned = model.tune(&examples, TuneOptions::default().with_epochs(20))?;
    /// let options = GenerateOptions::default().with_lora([tuned.lora().clone().into()]);
    /// println!("{}", model.chat(&[question], options)?.text()?);
    /// std::fs::write("atlantis.gguf", tuned.to_gguf()?).expect("a file");
    /// # Ok::<(), relampago::Error>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidArgument` for options out of range, for a learning rate with which the loss or its gradients grow beyond all
    /// numbers, for an example of which nothing is learned, for an encoder, a mixture of experts, and a model whose file is
    /// not in memory; `Empty` without examples; `InvalidModel` for a resumption from other bytes; the errors of
    /// [`LanguageModel::render`]; `OutOfMemory`, and on a GPU `DeviceLost` and `LimitExceeded`.
    pub async fn tune_async(
        &self,
        examples: &[TuneExample],
        mut options: TuneOptions,
    ) -> Result<TunedLora> {
        check(examples, &options)?;
        let model = TensorModel::new(&self.model).await?;
        let targets = parameters::targets(&self.model, &options)?;
        let most = options.max_tokens.min(self.model.config.context);
        let tokens = self.example_tokens(examples, most)?;
        let course = Course::new(&tokens, &options);
        let optimizer = Optimizer::adamw().with_weight_decay(options.weight_decay);
        let Start { step, layers } = self.start(&model, (&targets, &options), optimizer)?;
        let mut learner = Learner {
            scale: options.alpha / options.rank as f32,
            max_norm: options.max_norm,
            vocabulary: self.model.vocabulary(),
            model,
            layers,
            optimizer,
        };
        let run = Run {
            course: &course,
            tokens: &tokens,
            first: step,
        };
        let (done, losses) = run.learn(&mut learner, &mut options).await?;
        self.tuned(&learner, &options, (done, losses)).await
    }

    /// Returns the matrices to begin with.
    fn start(
        &self,
        model: &TensorModel<'_>,
        (targets, options): (&[Vec<Target>], &TuneOptions),
        optimizer: Optimizer,
    ) -> Result<Start> {
        if let Some(resume) = &options.resume {
            return self.resumed(&model.tensors, &resume.0, (targets, options), optimizer);
        }
        let layers: Vec<LayerParameters> =
            parameters::first(&model.tensors, targets, options, optimizer)?;
        Ok(Start { step: 0, layers })
    }
}

/// The losses of each step, and those of held-back examples after each epoch.
#[derive(Debug, Default)]
struct Losses {
    steps: Vec<f32>,
    held_back: Vec<f32>,
}

/// The steps from the first one that is left.
struct Run<'a> {
    course: &'a Course,
    tokens: &'a [Tokens],
    first: usize,
}

impl Run<'_> {
    /// Runs the steps; returns the number of those that are done.
    async fn learn(
        &self,
        learner: &mut Learner<'_>,
        options: &mut TuneOptions,
    ) -> Result<(usize, Losses)> {
        let (steps, start) = (self.course.steps(), seconds());
        let (mut losses, mut read, mut done) = (Losses::default(), 0, self.first);
        for (batch, is_last) in self.course.all().skip(self.first) {
            let batch = self.course.shape.batch(batch, self.tokens);
            let learning_rate = options.rate(done, steps);
            let (loss, norm) = learner.step(&batch, learning_rate).await?;
            let loss = loss as f32;
            // With an infinite norm the bound would leave no gradient.
            if !loss.is_finite() || !norm.is_finite() {
                let requirement = format!(
                    "smaller, or `alpha`: the loss is {loss} at step {done}, and the norm of its gradients {norm}"
                );
                let rate = options.learning_rate.to_string();
                return Err(Error::invalid("learning_rate", rate, requirement));
            }
            losses.steps.push(loss);
            (read, done) = (read + batch.tokens, done + 1);
            let held_back_loss = if is_last {
                self.held_back(learner).await?
            } else {
                None
            };
            losses.held_back.extend(held_back_loss);
            let passed = seconds() - start;
            let progress = Progress {
                step: done,
                steps,
                loss,
                learning_rate,
                tokens_per_second: read as f64 / passed.max(1e-9),
                seconds_left: passed / (done - self.first) as f64 * (steps - done) as f64,
                held_back_loss,
            };
            let on_step = options.on_step.as_mut();
            let flow = on_step.map_or(ControlFlow::Continue(()), |on_step| on_step(&progress));
            if flow.is_break() {
                break;
            }
        }
        Ok((done, losses))
    }

    /// Returns the loss of the held-back examples, if there are any.
    async fn held_back(&self, learner: &Learner<'_>) -> Result<Option<f32>> {
        let (mut sum, mut count) = (0.0, 0);
        for batch in &self.course.held_back {
            let batch = self.course.shape.batch(batch, self.tokens);
            sum += learner.loss(&batch).await? * batch.count as f64;
            count += batch.count;
        }
        Ok((count > 0).then(|| (sum / count as f64) as f32))
    }
}

fn check(examples: &[TuneExample], options: &TuneOptions) -> Result<()> {
    if examples.is_empty() {
        return Err(Error::Empty { op: "tune" });
    }
    let counts = [
        ("rank", options.rank),
        ("epochs", options.epochs),
        ("batch", options.batch),
        ("max_tokens", options.max_tokens),
    ];
    for (name, count) in counts {
        if !(1..=1 << 20).contains(&count) {
            return Err(Error::invalid(name, count.to_string(), "from 1 to 1048576"));
        }
    }
    let positive = [
        ("alpha", options.alpha),
        ("learning_rate", options.learning_rate),
        ("max_norm", options.max_norm),
    ];
    for (name, number) in positive {
        if !(number > 0.0 && number.is_finite()) {
            return Err(Error::invalid(
                name,
                number.to_string(),
                "a positive number",
            ));
        }
    }
    let shares = [
        ("held_back", options.held_back),
        ("weight_decay", options.weight_decay),
    ];
    for (name, share) in shares {
        if !(0.0..1.0).contains(&share) {
            let requirement = "at least 0 and below 1";
            return Err(Error::invalid(name, share.to_string(), requirement));
        }
    }
    Ok(())
}

/// Blocking versions.
#[cfg(not(target_arch = "wasm32"))]
impl LanguageModel {
    /// Blocking version of [`LanguageModel::tune_async`].
    pub fn tune(&self, examples: &[TuneExample], options: TuneOptions) -> Result<TunedLora> {
        crate::runtime::block_on(self.tune_async(examples, options))
    }
}
