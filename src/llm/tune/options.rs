//! The options of tuning.

use super::Progress;
use crate::error::Result;
use crate::llm::Message;
use crate::llm::tools::{parsed, wrong};
use serde_json::Value;
use std::ops::{ControlFlow, Range};

/// Something that a model learns from.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum TuneExample {
    /// A conversation, of which the model learns the assistant's messages and the token that ends each of them.
    Conversation(Vec<Message>),
    /// A text, of which the model learns all tokens after the first one. It ends without an end token.
    Text(String),
}

impl TuneExample {
    /// Reads an example as files of examples have it, one in a line: `{ "messages": [{ "role", "content" }, …] }`, or
    /// `{ "text": "…" }`.
    ///
    /// ```
    /// use relampago::llm::TuneExample;
    ///
    /// let example = TuneExample::from_json(r#"{"text": "Poseidonis is the capital of Atlantis."}"#)?;
    /// assert_eq!(example, "Poseidonis is the capital of Atlantis.".into());
    /// # Ok::<(), relampago::Error>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidArgument` for other JSON, and the errors of [`Message::list_from_json`].
    pub fn from_json(text: &str) -> Result<Self> {
        let value = parsed("example", text)?;
        match (value.get("messages"), value.get("text")) {
            (Some(messages), None) => Message::list_from_value(messages).map(Self::Conversation),
            (None, Some(Value::String(text))) => Ok(Self::Text(text.clone())),
            _ => Err(wrong(
                "example",
                &value,
                "an object with `messages`, or with a string `text`",
            )),
        }
    }
}

impl From<Vec<Message>> for TuneExample {
    fn from(messages: Vec<Message>) -> Self {
        Self::Conversation(messages)
    }
}

impl<const N: usize> From<[Message; N]> for TuneExample {
    fn from(messages: [Message; N]) -> Self {
        Self::Conversation(messages.into())
    }
}

impl From<String> for TuneExample {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&str> for TuneExample {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

/// The course of the learning rate after the steps in which it rises.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Schedule {
    /// It stays.
    Constant,
    /// It falls to 0 along a line.
    Linear,
    /// It falls to 0 along half a cosine.
    #[default]
    Cosine,
}

/// The point from which tuning goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Resume(pub(super) Vec<u8>);

/// A function that gets the progress of each step.
#[cfg(not(target_arch = "wasm32"))]
pub(crate) type OnStep = Box<dyn FnMut(&Progress) -> ControlFlow<()> + Send>;
/// A function that gets the progress of each step; one of JavaScript's stays in its thread.
#[cfg(target_arch = "wasm32")]
pub(crate) type OnStep = Box<dyn FnMut(&Progress) -> ControlFlow<()>>;

/// Options of [`LanguageModel::tune_async`](crate::llm::LanguageModel::tune_async).
#[non_exhaustive]
pub struct TuneOptions {
    /// The rank of the adapter's matrices, 8 by default.
    pub rank: usize,
    /// The numerator of the adapter's scale `alpha / rank`, 16 by default.
    pub alpha: f32,
    /// The linear layers that get matrices, by PEFT's names: `q_proj` and `v_proj` by default, and any of `k_proj`,
    /// `o_proj`, `gate_proj`, `up_proj`, `down_proj`; of architectures with joined matrices `qkv_proj` and `gate_up_proj`.
    /// `all-linear` stands for all of them.
    pub targets: Vec<String>,
    /// The layers that get matrices, from 0; all by default.
    pub layers: Option<Range<usize>>,
    /// The number of times that each example is learned from, 3 by default.
    pub epochs: usize,
    /// The largest learning rate, 2e-4 by default.
    pub learning_rate: f32,
    /// The course of the learning rate, a cosine by default.
    pub schedule: Schedule,
    /// The number of first steps in which the learning rate rises along a line, 0 by default.
    pub warmup: usize,
    /// The weight decay of `AdamW`, 0 by default.
    pub weight_decay: f32,
    /// The largest norm of all gradients of a step together, 1 by default; longer ones are scaled.
    pub max_norm: f32,
    /// The number of rows of a step, 4 by default. Each row has as many tokens as the longest example, and short examples
    /// share a row.
    pub batch: usize,
    /// The most tokens of an example, 256 by default, and at most those that the model was trained for. The rest of a longer
    /// example is left out.
    pub max_tokens: usize,
    /// The share of the examples that is not learned from, 0 by default. Their loss is measured after each epoch.
    pub held_back: f32,
    /// The seed of the first matrices and of the order of examples.
    pub seed: u64,
    pub(super) resume: Option<Resume>,
    pub(crate) on_step: Option<OnStep>,
}

impl Default for TuneOptions {
    fn default() -> Self {
        Self {
            rank: 8,
            alpha: 16.0,
            targets: ["q_proj", "v_proj"].map(str::to_owned).into(),
            layers: None,
            epochs: 3,
            learning_rate: 2e-4,
            schedule: Schedule::default(),
            warmup: 0,
            weight_decay: 0.0,
            max_norm: 1.0,
            batch: 4,
            max_tokens: 256,
            held_back: 0.0,
            seed: 0,
            resume: None,
            on_step: None,
        }
    }
}

impl std::fmt::Debug for TuneOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut debug = f.debug_struct("TuneOptions");
        debug.field("rank", &self.rank).field("alpha", &self.alpha);
        debug.field("targets", &self.targets);
        debug.field("epochs", &self.epochs);
        debug.field("learning_rate", &self.learning_rate);
        debug.finish_non_exhaustive()
    }
}

impl TuneOptions {
    /// Returns the options with this rank and this numerator of the scale.
    #[must_use]
    pub fn with_rank(self, rank: usize, alpha: f32) -> Self {
        Self {
            rank,
            alpha,
            ..self
        }
    }

    /// Returns the options with these linear layers.
    #[must_use]
    pub fn with_targets<T: Into<String>>(self, targets: impl IntoIterator<Item = T>) -> Self {
        let targets = targets.into_iter().map(Into::into).collect();
        Self { targets, ..self }
    }

    /// Returns the options with this number of epochs.
    #[must_use]
    pub fn with_epochs(self, epochs: usize) -> Self {
        Self { epochs, ..self }
    }

    /// Returns the options with this largest learning rate.
    #[must_use]
    pub fn with_learning_rate(self, learning_rate: f32) -> Self {
        Self {
            learning_rate,
            ..self
        }
    }

    /// Returns the options with a function that gets the progress after each step, and ends the tuning by
    /// [`ControlFlow::Break`].
    #[must_use]
    pub fn with_on_step(
        self,
        on_step: impl FnMut(&Progress) -> ControlFlow<()> + Send + 'static,
    ) -> Self {
        Self {
            on_step: Some(Box::new(on_step)),
            ..self
        }
    }

    /// Returns the options with a point to go on from: the bytes of
    /// [`TunedLora::state`](super::TunedLora::state), with the same examples and options as before, or of an adapter, which
    /// is learned further from step 0. An adapter in safetensors has the `alpha` of the options.
    #[must_use]
    pub fn with_resume(self, bytes: Vec<u8>) -> Self {
        Self {
            resume: Some(Resume(bytes)),
            ..self
        }
    }

    /// Returns the learning rate of a step of `steps`.
    pub(super) fn rate(&self, step: usize, steps: usize) -> f32 {
        if step < self.warmup {
            return self.learning_rate * (step + 1) as f32 / self.warmup as f32;
        }
        let done = (step - self.warmup) as f32 / steps.saturating_sub(self.warmup).max(1) as f32;
        let share = match self.schedule {
            Schedule::Constant => 1.0,
            Schedule::Linear => 1.0 - done,
            Schedule::Cosine => 0.5 * (1.0 + libm::cosf(std::f32::consts::PI * done)),
        };
        self.learning_rate * share
    }
}
