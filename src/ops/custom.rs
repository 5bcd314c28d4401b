//! Elementwise operations of the user's own: a function in Rust, and the same in WGSL.

mod wgsl;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::error::{Error, Result};
use crate::instruction_set::InstructionSet;
use crate::ops::Op;
use crate::ops::shape::{check_len, check_limit};

/// Most inputs of an operation.
pub(crate) const MAX_INPUTS: usize = 3;
/// Most parameters, as of the op table's operations: kernels have room for so many of each.
const MAX_PARAMETERS: usize = 2;

/// An elementwise operation of one's own, of one to three inputs of equal length and up to two
/// parameters. Batches and programs treat it as any other: it is fused with its neighbours,
/// computed once where it was recorded twice, and named in plans.
///
/// ```
/// # #[cfg(not(target_arch = "wasm32"))] {
/// use relampago::{CustomOp, GpuCommandBatch, GpuDevice};
///
/// let shrink = CustomOp::new(
///     "shrink",
///     &["x"],
///     &["limit"],
///     "sign(x) * max(abs(x) - limit, 0.0)",
///     |[x], [limit]| x.signum() * (x.abs() - limit).max(0.0),
/// )?;
/// let mut batch = GpuCommandBatch::new(GpuDevice::new()?);
/// let x = batch.upload(&[-3.0, 0.5, 2.0]);
/// let y = batch.custom_elementwise(&shrink, &[x], &[1.0]);
/// let z = batch.scale(y, 2.0);
/// assert_eq!(batch.explain().kernels[0].operations, ["shrink", "scale"]);
/// batch.execute_sync()?;
/// assert_eq!(batch.read_sync(z)?, [-4.0, 0.0, 2.0]);
/// # }
/// # Ok::<(), relampago::Error>(())
/// ```
#[derive(Clone)]
pub struct CustomOp {
    definition: Arc<Definition>,
}

struct Definition {
    name: &'static str,
    inputs: &'static [&'static str],
    parameters: &'static [&'static str],
    /// A function in WGSL without its name, on numbers.
    wgsl: String,
    function: Box<Function>,
    /// What the function said when it failed, until it is told.
    failure: Mutex<Option<String>>,
}

/// Applies the function, with parameters, to values at every place, or says why it cannot; inputs
/// that are too short end it.
type Function =
    dyn Fn(InstructionSet, &[f32], &[&[f32]], &mut [f32]) -> Result<(), String> + Send + Sync;

impl CustomOp {
    /// [`CustomOp::new`] where the numbers of inputs and parameters are not known to the compiler.
    pub(crate) fn define(
        name: &'static str,
        inputs: &'static [&'static str],
        parameters: &'static [&'static str],
        wgsl: &str,
        function: Box<Function>,
    ) -> Result<Self> {
        check_limit("the number of inputs", inputs.len(), MAX_INPUTS)?;
        check_limit("the number of parameters", parameters.len(), MAX_PARAMETERS)?;
        if inputs.is_empty() {
            return Err(Error::invalid("inputs", "[]", "one to three names"));
        }
        let names = || inputs.iter().chain(parameters).copied();
        if let Some(name) = names().find(|name| !wgsl::is_identifier(name)) {
            let requirement = "ASCII letters, digits and `_`, and no digit first";
            return Err(Error::invalid("inputs", name, requirement));
        }
        let text = wgsl;
        let wgsl = wgsl::function(names(), text);
        wgsl::check(name, &wgsl, text, names().count())?;
        let definition = Definition {
            name,
            inputs,
            parameters,
            wgsl,
            function,
            failure: Mutex::default(),
        };
        Ok(Self {
            definition: Arc::new(definition),
        })
    }

    /// The name, as plans show it.
    pub fn name(&self) -> &'static str {
        self.definition.name
    }

    /// The operation with its parameters, for whatever takes an [`Op`].
    ///
    /// # Errors
    /// `LengthMismatch` where there are more or fewer parameters than the operation has.
    pub fn with(&self, parameters: &[f32]) -> Result<Op> {
        check_len(
            "parameters",
            self.definition.parameters.len(),
            parameters.len(),
        )?;
        let op = self.clone();
        let mut values = [0.0; MAX_PARAMETERS];
        values[..parameters.len()].copy_from_slice(parameters);
        Ok(Op::Custom(CustomCall { op, values }))
    }
}

impl fmt::Debug for CustomOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Definition { inputs, wgsl, .. } = &*self.definition;
        let mut debug = f.debug_struct("CustomOp");
        debug.field("name", &self.name()).field("inputs", inputs);
        debug.field("wgsl", wgsl).finish_non_exhaustive()
    }
}

/// A [`CustomOp`] with its parameters: what [`CustomOp::with`] puts into an [`Op`].
#[derive(Clone, Debug)]
pub struct CustomCall {
    op: CustomOp,
    values: [f32; MAX_PARAMETERS],
}

impl CustomCall {
    /// The operation.
    pub fn op(&self) -> &CustomOp {
        &self.op
    }

    /// Its parameters.
    pub fn parameters(&self) -> &[f32] {
        &self.values[..self.op.definition.parameters.len()]
    }

    /// The parameters, zeros after them.
    pub(crate) fn scalars(&self) -> [f32; MAX_PARAMETERS] {
        self.values
    }

    pub(crate) fn inputs(&self) -> &'static [&'static str] {
        self.op.definition.inputs
    }

    /// On SIMD; everything is of the length of `out`. Whether all went well, [`Self::outcome`] tells.
    pub(crate) fn run(&self, isa: InstructionSet, inputs: &[&[f32]], out: &mut [f32]) {
        let definition = &self.op.definition;
        if let Err(message) = (definition.function)(isa, self.parameters(), inputs, out) {
            *self.failure() = Some(message);
        }
    }

    /// `Function` if the function has failed since this was asked last.
    pub(crate) fn outcome(&self) -> Result<()> {
        let name = self.op.name();
        match self.failure().take() {
            Some(message) => Err(Error::Function { name, message }),
            None => Ok(()),
        }
    }

    fn failure(&self) -> MutexGuard<'_, Option<String>> {
        let failure = self.op.definition.failure.lock();
        failure.unwrap_or_else(PoisonError::into_inner)
    }

    /// The function in WGSL without its name: numbers to a number, the parameters last.
    #[cfg(feature = "gpu")]
    pub(crate) fn wgsl(&self) -> &str {
        &self.op.definition.wgsl
    }
}

#[cfg(feature = "gpu")]
pub(crate) use wgsl::library;

/// The function `combine` of a [`ReduceOp`](crate::ReduceOp), and those that it may call; `Wgsl` unless
/// the text is an expression of `a` and `b`, or a body. What was right before is not looked at again.
#[cfg(feature = "gpu")]
pub(crate) fn combine(text: &'static str) -> Result<String> {
    static RIGHT: Mutex<Vec<&'static str>> = Mutex::new(Vec::new());
    let function = wgsl::function(["a", "b"].into_iter(), text);
    let mut right = RIGHT.lock().unwrap_or_else(PoisonError::into_inner);
    if !right.contains(&text) {
        wgsl::check("ReduceOp", &function, text, 2)?;
        right.push(text);
    }
    Ok([library(), "fn combine", &function].concat())
}

/// The same operation, and not one like it, with the same bits for parameters.
impl PartialEq for CustomCall {
    fn eq(&self, other: &Self) -> bool {
        let bits = |call: &Self| call.values.map(f32::to_bits);
        Arc::ptr_eq(&self.op.definition, &other.op.definition) && bits(self) == bits(other)
    }
}
