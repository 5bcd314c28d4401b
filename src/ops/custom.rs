//! Custom elementwise operations: a function in Rust and its equivalent in WGSL.

mod wgsl;
pub(crate) mod words;

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::error::{Error, Result};
use crate::instruction_set::InstructionSet;
use crate::ops::Op;
#[cfg(feature = "gpu")]
use crate::ops::reduce_op::ReductionText;
use crate::ops::shape::{check_len, check_limit};

/// The largest number of inputs of a custom operation.
pub(crate) const MAX_INPUTS: usize = 3;
/// The largest number of parameters, as in the op table: kernels have room for this many.
const MAX_PARAMETERS: usize = 2;

/// A custom elementwise operation of one to three inputs of equal length and up to two parameters.
/// Batches and programs treat it like any other operation: it is fused with its neighbours,
/// computed once if it was recorded twice, and named in plans.
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
    /// The derivative by each input; empty if none are stated.
    derivatives: Arc<[CustomOp]>,
}

static NEXT_NUMBER: AtomicU64 = AtomicU64::new(0);

struct Definition {
    /// The number that identifies the definition.
    number: u64,
    name: &'static str,
    inputs: &'static [&'static str],
    parameters: &'static [&'static str],
    /// The function in WGSL, without its name, on scalars.
    wgsl: String,
    function: Box<Function>,
    /// The error of the last call that failed, until it is returned.
    failure: Mutex<Option<String>>,
}

/// Applies the function with its parameters to every element, or returns an error message; stops at
/// the end of the shortest input.
type Function =
    dyn Fn(InstructionSet, &[f32], &[&[f32]], &mut [f32]) -> Result<(), String> + Send + Sync;

impl CustomOp {
    /// Creates an operation like [`CustomOp::new`] with numbers of inputs and parameters known only
    /// at run time.
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
        for (what, names) in [("inputs", inputs), ("parameters", parameters)] {
            if let Some(name) = names.iter().find(|name| !wgsl::is_identifier(name)) {
                let requirement = "ASCII letters, digits and `_`, and no digit first";
                return Err(Error::invalid(what, *name, requirement));
            }
        }
        let names = || inputs.iter().chain(parameters).copied();
        let text = wgsl;
        let wgsl = wgsl::function(names(), text);
        wgsl::check(name, &wgsl, text, names().count())?;
        let definition = Definition {
            number: NEXT_NUMBER.fetch_add(1, Ordering::Relaxed),
            name,
            inputs,
            parameters,
            wgsl,
            function,
            failure: Mutex::default(),
        };
        Ok(Self {
            definition: Arc::new(definition),
            derivatives: Arc::default(),
        })
    }

    /// Returns the operation with its derivatives, by which gradients of tensors flow through it: for each input a
    /// custom operation of the same inputs and parameters, whose result is the derivative of this one's.
    ///
    /// ```
    /// # #[cfg(not(target_arch = "wasm32"))] {
    /// use relampago::{CustomOp, GpuDevice, Tensors};
    ///
    /// let slope = CustomOp::new("cube_slope", &["x"], &[], "3.0 * x * x", |[x], []| 3.0 * x * x)?;
    /// let cube = CustomOp::new("cube", &["x"], &[], "x * x * x", |[x], []| x * x * x)?;
    /// let cube = cube.with_derivatives(&[slope])?;
    ///
    /// let x = Tensors::new(&GpuDevice::new()?).tensor(&[1.0, 2.0], &[2])?;
    /// let loss = x.custom_elementwise(&cube, &[], &[])?.sum(..)?;
    /// assert_eq!(loss.gradients(&[&x])?[0].read()?, [3.0, 12.0]);
    /// # }
    /// # Ok::<(), relampago::Error>(())
    /// ```
    ///
    /// # Errors
    /// `LengthMismatch` for another number of derivatives than of inputs, or for a derivative with another number of
    /// inputs or parameters.
    pub fn with_derivatives(self, derivatives: &[CustomOp]) -> Result<Self> {
        let Definition {
            inputs, parameters, ..
        } = &*self.definition;
        check_len("derivatives", inputs.len(), derivatives.len())?;
        for derivative in derivatives {
            let own = &derivative.definition;
            check_len("inputs", inputs.len(), own.inputs.len())?;
            check_len("parameters", parameters.len(), own.parameters.len())?;
        }
        let derivatives = derivatives.into();
        Ok(Self {
            derivatives,
            ..self
        })
    }

    /// Returns the derivative by each input; an empty list if none are stated.
    pub(crate) fn derivatives(&self) -> &[CustomOp] {
        &self.derivatives
    }

    /// Returns the number that identifies the definition: definitions with one WGSL text may have different functions.
    pub(crate) fn number(&self) -> u64 {
        self.definition.number
    }

    /// Returns the name that plans show.
    pub fn name(&self) -> &'static str {
        self.definition.name
    }

    /// Returns the operation with its parameters as an [`Op`].
    ///
    /// # Errors
    /// `LengthMismatch` if the number of parameters is wrong.
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
        let Definition {
            number,
            inputs,
            wgsl,
            ..
        } = &*self.definition;
        let mut debug = f.debug_struct("CustomOp");
        debug.field("number", number);
        debug.field("name", &self.name()).field("inputs", inputs);
        debug.field("wgsl", wgsl).finish_non_exhaustive()
    }
}

/// A [`CustomOp`] with its parameters, as returned by [`CustomOp::with`] in an [`Op`].
#[derive(Clone, Debug)]
pub struct CustomCall {
    op: CustomOp,
    values: [f32; MAX_PARAMETERS],
}

impl CustomCall {
    /// Returns the operation.
    pub fn op(&self) -> &CustomOp {
        &self.op
    }

    /// Returns the parameters.
    pub fn parameters(&self) -> &[f32] {
        &self.values[..self.op.definition.parameters.len()]
    }

    /// Returns the parameters, filled up with zeros.
    pub(crate) fn scalars(&self) -> [f32; MAX_PARAMETERS] {
        self.values
    }

    pub(crate) fn inputs(&self) -> &'static [&'static str] {
        self.op.definition.inputs
    }

    /// Runs the operation on SIMD; the inputs have the length of `out`. [`Self::outcome`] returns
    /// an error of the function.
    pub(crate) fn run(&self, isa: InstructionSet, inputs: &[&[f32]], out: &mut [f32]) {
        let definition = &self.op.definition;
        if let Err(message) = (definition.function)(isa, self.parameters(), inputs, out) {
            *self.failure() = Some(message);
        }
    }

    /// Returns `Function` if the function has failed since the last call of this method.
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

    /// Returns the function in WGSL without its name: scalars to a scalar, the parameters last.
    #[cfg(feature = "gpu")]
    pub(crate) fn wgsl(&self) -> &str {
        &self.op.definition.wgsl
    }
}

#[cfg(feature = "gpu")]
pub(crate) use wgsl::library;

/// Returns the WGSL functions `combine` and `mapped` of a [`ReduceOp`](crate::ReduceOp) with the
/// functions that they may call; `Wgsl` if a text is not an expression of `a` and `b`, or of `x`, or
/// a function body.
#[cfg(feature = "gpu")]
pub(crate) fn reduction(text: ReductionText) -> Result<String> {
    let combine = valid("ReduceOp::wgsl", &["a", "b"], text.combine)?;
    let mapped = valid("ReduceOp::MAP", &["x"], text.map.unwrap_or("x"))?;
    Ok([library(), "fn combine", &combine, "fn mapped", &mapped].concat())
}

/// Returns a WGSL function without its name. Texts that were valid before are not checked again.
#[cfg(feature = "gpu")]
fn valid(
    name: &'static str,
    parameters: &'static [&'static str],
    text: &'static str,
) -> Result<String> {
    static RIGHT: Mutex<Vec<(&'static str, usize)>> = Mutex::new(Vec::new());
    let function = wgsl::function(parameters.iter().copied(), text);
    let mut right = RIGHT.lock().unwrap_or_else(PoisonError::into_inner);
    let key = (text, parameters.len());
    if !right.contains(&key) {
        wgsl::check(name, &function, text, parameters.len())?;
        right.push(key);
    }
    Ok(function)
}

/// Equality: the identical operation with bit-identical parameters.
impl PartialEq for CustomCall {
    fn eq(&self, other: &Self) -> bool {
        let bits = |call: &Self| call.values.map(f32::to_bits);
        Arc::ptr_eq(&self.op.definition, &other.op.definition) && bits(self) == bits(other)
    }
}
