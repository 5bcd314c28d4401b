//! The steps of a token, to inspect or print.

use super::{LanguageModel, WeightType};
use crate::device::Backend;
use std::fmt::{self, Display, Formatter};

/// The steps of one decoded token, in order: [`LanguageModel::explain`].
///
/// Its `Display` is a table with one line for each step.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModelExplanation {
    /// The back-end that runs the model.
    pub backend: Backend,
    /// The steps.
    pub steps: Vec<ModelStep>,
    /// The number of bytes of weights that all steps read.
    pub weight_bytes: usize,
}

/// One step of a decoded token: on a GPU one kernel, on SIMD one function.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModelStep {
    /// The layer, by its index; `None` before the first layer and after the last one.
    pub layer: Option<usize>,
    /// The names of the step's operations, in order.
    pub operations: Vec<&'static str>,
    /// The kernel of the GPU, as profiles name it, or the function on SIMD.
    pub kernel: &'static str,
    /// The back-end that runs the step.
    pub backend: Backend,
    /// The shape of the step's matrix, rows before columns; of other steps, that of the result.
    pub shape: Vec<usize>,
    /// The names of the file's tensors that the matrix consists of.
    pub tensors: Vec<String>,
    /// The type of the matrix in the file.
    pub weight_type: Option<WeightType>,
    /// The number of bytes of weights that the step reads where it runs.
    pub weight_bytes: usize,
}

impl ModelExplanation {
    fn new(backend: Backend, steps: Vec<ModelStep>) -> Self {
        Self {
            backend,
            weight_bytes: steps.iter().map(|step| step.weight_bytes).sum(),
            steps,
        }
    }
}

impl LanguageModel {
    /// Returns the steps of one decoded token, without adapters: the kernels or functions in the order in which they
    /// run. The token is the first of its session; GPUs add a kernel to the attention of long ones, which adds up parts.
    ///
    /// ```no_run
    /// use relampago::llm::LanguageModel;
    ///
    /// let model = LanguageModel::load("smollm2-135m.gguf", Default::default())?;
    /// println!("{}", model.explain());
    /// # Ok::<(), relampago::Error>(())
    /// ```
    pub fn explain(&self) -> ModelExplanation {
        ModelExplanation::new(self.model.backend(), self.model.explain())
    }
}

impl Display for ModelExplanation {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:?}: {} steps for a token, {} bytes of weights",
            self.backend,
            self.steps.len(),
            self.weight_bytes
        )?;
        writeln!(
            f,
            "| step | layer | operations | kernel | back-end | shape | weights | bytes of weights |"
        )?;
        writeln!(f, "|---:|---:|---|---|---|---|---|---:|")?;
        for (index, step) in self.steps.iter().enumerate() {
            writeln!(f, "| {index} {step}")?;
        }
        Ok(())
    }
}

/// The columns of a table's line after the first one.
impl Display for ModelStep {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let layer = self.layer.map_or(String::new(), |layer| layer.to_string());
        let shape: Vec<String> = self.shape.iter().map(ToString::to_string).collect();
        let tensors = self.tensors.join(" + ");
        let weights = match self.weight_type {
            Some(kind) => format!("{tensors}, {kind:?}"),
            None => tensors,
        };
        write!(
            f,
            "| {layer} | {} | {} | {:?} | {} | {weights} | {} |",
            self.operations.join(" + "),
            self.kernel,
            self.backend,
            shape.join(" × "),
            self.weight_bytes
        )
    }
}
