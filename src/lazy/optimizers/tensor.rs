//! Optimizers of tensors.

use std::sync::Arc;

use crate::alloc::try_zeros;
use crate::error::{Error, Result};
use crate::lazy::node::{Node, Source};
use crate::lazy::operand::Operand;
use crate::lazy::optimizers::Update;
use crate::lazy::shape::{mismatch, size_of};
use crate::lazy::structure::Described;
use crate::lazy::tensor::Tensor;
use crate::ops::shape::check_len;

/// A rule by which steps move parameters along their gradients, with optax's names and defaults.
///
/// ```
/// # #[cfg(not(target_arch = "wasm32"))] {
/// use relampago::{GpuDevice, Optimizer, Tensors};
///
/// let tensors = Tensors::new(&GpuDevice::new()?);
/// let mut x = tensors.tensor(&[3.0, -2.0], &[2])?;
/// let adam = Optimizer::adam();
/// let mut state = adam.init(&[&x])?;
/// for _ in 0..200 {
///     let loss = x.sub(1.0)?.square()?.sum(..)?;
///     let gradients = loss.gradients(&[&x])?;
///     let (mut moved, next) = adam.step(&[&x], &gradients, &state, 0.1)?;
///     (x, state) = (moved.remove(0), next);
///     tensors.run(&[&[&x], &state.tensors()[..]].concat())?;
/// }
/// assert!(x.read()?.iter().all(|x| (x - 1.0).abs() < 0.01));
/// assert_eq!(tensors.planned(), 1);
/// # }
/// # Ok::<(), relampago::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Optimizer {
    update: Update,
}

/// The tensors that an [`Optimizer`] carries from step to step: the number of steps, and moments of the gradients.
#[derive(Clone, Debug)]
pub struct OptimizerState {
    steps: Tensor,
    /// The moments of each parameter after those of the one before.
    moments: Vec<Tensor>,
}

impl OptimizerState {
    /// Returns all tensors, to run them together with the parameters.
    pub fn tensors(&self) -> Vec<&Tensor> {
        self.moments.iter().chain([&self.steps]).collect()
    }

    /// Returns the state with the tensors of another one: the number of steps, and the moments.
    #[cfg(feature = "llm-core")]
    pub(crate) fn restored(steps: Tensor, moments: Vec<Tensor>) -> Self {
        Self { steps, moments }
    }
}

impl Optimizer {
    /// Creates stochastic gradient descent.
    pub fn sgd() -> Self {
        Self::momentum(0.0)
    }

    /// Creates stochastic gradient descent that goes on in this part of its last direction.
    pub fn momentum(factor: f32) -> Self {
        Self::with_momentum(factor, false)
    }

    /// Creates stochastic gradient descent with Nesterov's momentum.
    pub fn nesterov(factor: f32) -> Self {
        Self::with_momentum(factor, true)
    }

    fn with_momentum(momentum: f32, is_nesterov: bool) -> Self {
        let decay = 0.0;
        let update = Update::Sgd {
            momentum,
            is_nesterov,
            decay,
        };
        Self { update }
    }

    /// Creates Adam: `b1` is 0.9, `b2` 0.999 and `epsilon` 1e-8.
    pub fn adam() -> Self {
        Self::adam_with(0.9, 0.999, 1e-8)
    }

    /// Creates Adam that keeps these parts of the means of gradients and of their squares, and adds `epsilon` to the root of
    /// the second one.
    pub fn adam_with(b1: f32, b2: f32, epsilon: f32) -> Self {
        let decay = 0.0;
        let update = Update::Adam {
            b1,
            b2,
            epsilon,
            decay,
        };
        Self { update }
    }

    /// Creates `AdamW`: Adam with a weight decay of 1e-4.
    pub fn adamw() -> Self {
        Self::adam().with_weight_decay(1e-4)
    }

    /// Creates Lion: `b1` is 0.9, `b2` 0.99, and the weight decay 1e-3.
    pub fn lion() -> Self {
        Self::lion_with(0.9, 0.99).with_weight_decay(1e-3)
    }

    /// Creates Lion without weight decay, with these weights of the mean in the direction, and in the next mean.
    pub fn lion_with(b1: f32, b2: f32) -> Self {
        let decay = 0.0;
        let update = Update::Lion { b1, b2, decay };
        Self { update }
    }

    /// Returns the rule with this weight decay: added to the gradient by stochastic gradient descent, and to the
    /// direction of the step by Adam and Lion.
    #[must_use]
    pub fn with_weight_decay(mut self, value: f32) -> Self {
        if let Update::Sgd { decay, .. } | Update::Adam { decay, .. } | Update::Lion { decay, .. } =
            &mut self.update
        {
            *decay = value;
        }
        self
    }

    /// Returns the state before the first step.
    ///
    /// # Errors
    /// `Empty` without parameters, `OutOfMemory`.
    pub fn init(&self, parameters: &[&Tensor]) -> Result<OptimizerState> {
        let Some(first) = parameters.first() else {
            return Err(Error::Empty { op: "init" });
        };
        let steps = zeros(first, &[])?;
        let mut moments = Vec::new();
        for parameter in parameters {
            for _ in 0..self.update.moments() {
                moments.push(zeros(parameter, parameter.shape())?);
            }
        }
        Ok(OptimizerState { steps, moments })
    }

    /// Returns the parameters and the state after a step. The learning rate may change from step to step without a new
    /// plan.
    ///
    /// # Errors
    /// `LengthMismatch` for another number of gradients or another state, `ShapeMismatch` for a gradient of another shape
    /// than its parameter, `Foreign` for tensors of other [`Tensors`](crate::Tensors).
    pub fn step<'a>(
        &self,
        parameters: &[&Tensor],
        gradients: &[Tensor],
        state: &OptimizerState,
        learning_rate: impl Into<Operand<'a>>,
    ) -> Result<(Vec<Tensor>, OptimizerState)> {
        let count = self.update.moments();
        check_len("gradients", parameters.len(), gradients.len())?;
        check_len("state", count * parameters.len(), state.moments.len())?;
        let steps = &state.steps;
        let mut leaves = Vec::new();
        for (at, (parameter, gradient)) in parameters.iter().zip(gradients).enumerate() {
            let moments = &state.moments[at * count..(at + 1) * count];
            for tensor in [*parameter, gradient].into_iter().chain(moments) {
                check_same_shape(parameter, tensor)?;
                leaves.push(steps.beside("parameters", tensor)?);
            }
        }
        leaves.push(Arc::clone(&steps.node));
        leaves.push(steps.beside("learning_rate", learning_rate)?);
        let mut results = apply(self.update, steps, leaves)?.into_iter();
        let (mut moved, mut moments) = (Vec::new(), Vec::new());
        for _ in parameters {
            moved.extend(results.next());
            moments.extend(results.by_ref().take(count));
        }
        let steps = results.next().unwrap_or_else(|| steps.clone());
        Ok((moved, OptimizerState { steps, moments }))
    }
}

/// Returns gradients that are scaled by one number, such that the norm of all their elements is at most `max_norm`.
///
/// # Errors
/// `Foreign` for tensors of several [`Tensors`](crate::Tensors).
pub fn clip_by_global_norm<'a>(
    gradients: &[Tensor],
    max_norm: impl Into<Operand<'a>>,
) -> Result<Vec<Tensor>> {
    let Some(first) = gradients.first() else {
        return Ok(Vec::new());
    };
    let leaves = gradients.iter().map(|own| first.beside("gradients", own));
    let mut leaves = leaves.collect::<Result<Vec<_>>>()?;
    leaves.push(first.beside("max_norm", max_norm)?);
    apply(Update::Clip, first, leaves)
}

/// Returns a leaf of zeros, so that the first step has the structure of all others.
fn zeros(beside: &Tensor, shape: &[usize]) -> Result<Tensor> {
    let values = Source::Values(Arc::new(try_zeros(size_of(shape))?));
    Ok(beside.tensors().leaf(shape, values))
}

fn check_same_shape(parameter: &Tensor, tensor: &Tensor) -> Result<()> {
    if parameter.shape() == tensor.shape() {
        return Ok(());
    }
    let (own, other) = (parameter.shape(), tensor.shape());
    let message = format!("a gradient or moment has shape {other:?}, but its parameter {own:?}");
    Err(mismatch("step", message))
}

/// Records an update of nodes; returns its results.
fn apply(update: Update, beside: &Tensor, mut nodes: Vec<Arc<Node>>) -> Result<Vec<Tensor>> {
    let shapes = nodes.iter().map(|node| node.shape.clone()).collect();
    let updated = update.record(shapes)?;
    Described::record(updated.nodes, &mut nodes);
    let results = updated.results.iter();
    Ok(results
        .map(|&at| beside.with(Arc::clone(&nodes[at])))
        .collect())
}
