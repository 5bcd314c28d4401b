//! WebAssembly generated at run time: a loop that computes an expression of elementwise functions
//! and keeps intermediate results in registers. It uses the module's own memory.

mod module;
mod trace;

use std::mem::MaybeUninit;

use js_sys::Function;
use wasm_bindgen::JsValue;

use super::elementwise::{Binary, GentleRelu, Unary, Visitor};
use super::functions::with_function;
use crate::ops::Op;
use module::instantiate;
use trace::Tracer;
pub(crate) use trace::{Trace, Value};

/// The elements of an input that a loop reads.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Input {
    /// An element for each element of the result.
    Whole,
    /// The first element, for all elements of the result.
    Single,
}

/// The largest number of inputs of a loop.
const MAX_INPUTS: usize = 8;
/// The number of bytes of the machine's own values in a vector.
const VECTOR: usize = 16;
/// The number of elements in a call. Engines replace a function by better-compiled code when it is called, not while it
/// runs.
const CALL: usize = 1 << 16;
/// The number of vectors that a turn takes together.
const UNROLLED: usize = 4;
/// The number of operations above which a turn takes one vector: compiling more code would take
/// longer than it saves.
const LONG: usize = 256;

impl Trace {
    /// Adds an elementwise operation; `None` of one that is not known here.
    pub(crate) fn operation(&self, op: &Op, operands: &[Value]) -> Option<Value> {
        let traced = Traced {
            trace: self,
            operands,
        };
        if let Some(gentle) = GentleRelu::of(op) {
            return traced.unary(gentle);
        }
        with_function(op, traced)?
    }
}

struct Traced<'a> {
    trace: &'a Trace,
    operands: &'a [Value],
}

impl Visitor for Traced<'_> {
    type Output = Option<Value>;

    fn unary<F: Unary>(self, f: F) -> Option<Value> {
        let &[x] = self.operands else { return None };
        Some(f.eval(Tracer(self.trace), x))
    }

    fn binary<F: Binary>(self, f: F) -> Option<Value> {
        let &[a, b] = self.operands else { return None };
        Some(f.eval(Tracer(self.trace), a, b))
    }
}

/// The code of one vector, which identifies the expression.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Code {
    body: Vec<u8>,
    inputs: Vec<Input>,
    operations: usize,
}

impl Code {
    /// Returns the code of an expression of these inputs; `None` if there are none or too many, or
    /// `expression` is `None`.
    pub(crate) fn of(
        inputs: Vec<Input>,
        expression: impl Fn(&Trace, &[Value]) -> Option<Value>,
    ) -> Option<Self> {
        if inputs.is_empty() || inputs.len() > MAX_INPUTS {
            return None;
        }
        let traced = trace::body(&inputs, 1, expression)?;
        Some(Self {
            body: traced.code,
            inputs,
            operations: traced.operations,
        })
    }
}

/// A loop that was compiled.
#[derive(Clone)]
pub(crate) struct Loop {
    function: Function,
    inputs: Vec<Input>,
    /// The number of values that a turn takes.
    turn: usize,
}

impl Loop {
    /// The loop of an expression that has this code; `None` where the engine refuses.
    pub(crate) fn compile(
        code: &Code,
        expression: impl Fn(&Trace, &[Value]) -> Option<Value>,
    ) -> Option<Self> {
        let unrolled = if code.operations <= LONG { UNROLLED } else { 1 };
        let traced = trace::body(&code.inputs, unrolled, expression)?;
        Some(Self {
            function: instantiate(&traced.code)?,
            inputs: code.inputs.clone(),
            turn: unrolled * VECTOR / size_of::<f32>(),
        })
    }

    /// Whether each input has an element for each of `len` elements from index `at` on.
    fn fits(&self, inputs: &[&[f32]], at: usize, len: usize) -> bool {
        let fits = |(input, values): (&Input, &&[f32])| match input {
            Input::Whole => values.len().checked_sub(at).is_some_and(|rest| rest >= len),
            Input::Single => !values.is_empty(),
        };
        inputs.len() == self.inputs.len() && self.inputs.iter().zip(inputs).all(fits)
    }

    /// Computes the elements of `out`, which are those of the result from index `start` on. Returns
    /// their number, a multiple of a turn; 0 if an input is too short.
    pub(crate) fn run(
        &self,
        inputs: &[&[f32]],
        start: usize,
        out: &mut [MaybeUninit<f32>],
    ) -> usize {
        if !self.fits(inputs, start, out.len()) {
            return 0;
        }
        let whole = out.len() / self.turn * self.turn;
        for at in (0..whole).step_by(CALL) {
            let out = &mut out[at..whole.min(at + CALL)];
            // Where `out` begins and ends, and where the inputs begin.
            let mut arguments = [std::ptr::null(); MAX_INPUTS + 2];
            let ends = out.as_mut_ptr_range();
            arguments[..2].copy_from_slice(&[ends.start.cast_const(), ends.end.cast_const()]);
            let pairs = self.inputs.iter().zip(inputs);
            for (argument, (input, values)) in arguments[2..].iter_mut().zip(pairs) {
                *argument = match input {
                    Input::Whole => values[start + at..].as_ptr().cast(),
                    Input::Single => values.as_ptr().cast(),
                };
            }
            // A JavaScript number holds any address.
            let address = JsValue::from(arguments.as_ptr() as usize as f64);
            if self.function.call1(&JsValue::UNDEFINED, &address).is_err() {
                return at;
            }
        }
        whole
    }
}
