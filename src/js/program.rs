//! `Program`.

use std::cell::RefCell;
use std::rc::Rc;

use js_sys::{Array, Float32Array, Promise};
use wasm_bindgen::prelude::*;

use super::convert::{self, Parameter};
use super::device::{JsBuffer, backend_name};
use super::error::{Work, begun, to_js};
use super::simd;
use super::types::*;
use crate::alloc::js_array as array;
use crate::batch::{Argument, Program, argument_name};
use crate::device::buffer::DeviceBuffer;
use crate::error::{Error, Result};
use crate::graph::{BufferPlace, Plan};
use crate::ops::Backend;

/// A compiled batch that runs with new arguments each time.
#[wasm_bindgen(js_name = Program)]
pub struct JsProgram {
    /// The program; `None` after `dispose`.
    program: RefCell<Option<Rc<Program>>>,
    /// The arguments of the next run.
    arguments: RefCell<Vec<JsArgument>>,
}

enum JsArgument {
    Values(Vec<f32>),
    /// An array, for a GPU.
    Array(Float32Array),
    Buffer(DeviceBuffer),
}

impl JsArgument {
    fn as_argument(&self) -> Argument<'_> {
        match self {
            Self::Values(values) => values.into(),
            Self::Array(values) => Argument::Array(values),
            Self::Buffer(buffer) => buffer.into(),
        }
    }
}

#[wasm_bindgen(js_class = Program)]
impl JsProgram {
    /// Sets an argument of the next run. `program.js` calls it for each argument, in order.
    #[wasm_bindgen(skip_typescript, js_name = setValues)]
    pub fn set_values(&self, place: usize, values: JsValue) -> Result<(), JsValue> {
        let argument = convert::array(values, argument_name(place)).and_then(|array| {
            Ok(if self.handle()?.is_on_gpu() {
                JsArgument::Array(array)
            } else {
                JsArgument::Values(convert::values(&array)?)
            })
        });
        self.set(place, argument)
    }

    /// Sets an argument of the next run to a buffer on the device.
    #[wasm_bindgen(skip_typescript, js_name = setBuffer)]
    pub fn set_buffer(&self, place: usize, buffer: &JsBuffer) -> Result<(), JsValue> {
        self.set(place, buffer.handle().map(JsArgument::Buffer))
    }

    /// Returns the result of a program that is one elementwise kernel on SIMD, at once and without
    /// copying whole arrays; undefined for other programs and other arguments.
    #[wasm_bindgen(skip_typescript, js_name = readNow)]
    pub fn read_now(&self, arguments: Array, into: JsValue) -> Result<JsValue, JsValue> {
        let result = self
            .handle()
            .and_then(|program| simd::read(&program, &arguments, into));
        result.map_err(|error| to_js(&error))
    }

    /// Runs with the first `count` arguments that were set.
    #[wasm_bindgen(skip_typescript)]
    pub fn start(
        &self,
        count: usize,
        read: bool,
        times: JsValue,
        feedback: Array,
        abort: Option<AbortOptions>,
    ) -> Promise {
        let mut arguments = self.arguments.take();
        arguments.truncate(count);
        let mut begin = || -> Result<Work> {
            let (times, feedback) = (usize::from_js(&times, "times")?, pairs(&feedback)?);
            let mut borrowed = Vec::new();
            for argument in &arguments {
                borrowed.push(argument.as_argument());
            }
            let program = self.handle()?;
            let (buffers, running) = program.start(&borrowed, times, &feedback, read)?;
            Ok(Box::pin(async move {
                let values = running.finished().await?;
                let list = Array::new();
                for (place, buffer) in buffers.into_iter().enumerate() {
                    let on_host = buffer.host().filter(|_| read);
                    list.push(&match (values.get(place), on_host) {
                        (Some(values), _) => values.into(),
                        (None, Some(values)) => array::of(values)?.into(),
                        (None, None) => JsBuffer::from(buffer).into(),
                    });
                }
                Ok(list.into())
            }))
        };
        begun(abort.as_ref(), &mut begin)
    }

    /// Returns the data that `plan.js` makes objects of.
    #[wasm_bindgen(skip_typescript)]
    pub fn describe(&self) -> Result<Array, JsValue> {
        let program = self.handle().map_err(|error| to_js(&error))?;
        Ok(described(program.plan(), program.device().backend()))
    }

    /// Runs with the first `count` arguments that were set, and returns the milliseconds of each kernel.
    #[wasm_bindgen(skip_typescript, js_name = kernelTimes)]
    pub fn kernel_times(&self, count: usize, abort: Option<AbortOptions>) -> Promise {
        let mut arguments = self.arguments.take();
        arguments.truncate(count);
        let mut begin = || -> Result<Work> {
            let mut borrowed = Vec::new();
            for argument in &arguments {
                borrowed.push(argument.as_argument());
            }
            let timing = self.handle()?.times(&borrowed)?;
            Ok(Box::pin(async {
                let times = timing.known().await?.into_iter();
                let times = times.map(|time| JsValue::from(time.as_secs_f64() * 1e3));
                Ok(times.collect::<Array>().into())
            }))
        };
        begun(abort.as_ref(), &mut begin)
    }

    /// Releases its memory. Later calls fail with code `DISPOSED`.
    pub fn dispose(&self) {
        self.program.take();
        self.arguments.take();
    }
}

impl From<Program> for JsProgram {
    fn from(program: Program) -> Self {
        Self {
            program: RefCell::new(Some(Rc::new(program))),
            arguments: RefCell::default(),
        }
    }
}

impl JsProgram {
    fn handle(&self) -> Result<Rc<Program>> {
        let what = "Program";
        self.program
            .borrow()
            .clone()
            .ok_or(Error::Disposed { what })
    }

    fn set(&self, place: usize, argument: Result<JsArgument>) -> Result<(), JsValue> {
        let argument = argument.map_err(|error| to_js(&error))?;
        let mut arguments = self.arguments.borrow_mut();
        // What a failed call before this one has left.
        arguments.truncate(place);
        arguments.push(argument);
        Ok(())
    }
}

/// Returns the number of buffers and the length of each, and then for each kernel: its back-end, the
/// names of its operations, the number of values that it writes and to which buffer, and the places that it
/// reads (input `n` is `−1 − n`).
pub(super) fn described(plan: &Plan, backend: Backend) -> Array {
    let list = Array::new();
    let push = |number: usize| list.push(&(number as f64).into());
    push(plan.capacities.len());
    for &capacity in &plan.capacities {
        push(capacity);
    }
    for (place, kernel) in plan.kernels.iter().enumerate() {
        list.push(&backend_name(backend).into());
        for &node in &kernel.members {
            if let Some((op, _)) = plan.nodes[node].operation() {
                list.push(&op.name().into());
            }
        }
        push(plan.len(kernel));
        push(plan.slots[place]);
        push(kernel.inputs.len());
        for &input in &kernel.inputs {
            push(plan.nodes[input].len);
            let place = match plan.place(input) {
                BufferPlace::Input(number) => -1.0 - number as f64,
                BufferPlace::Buffer(slot) => slot as f64,
            };
            list.push(&place.into());
        }
    }
    list
}

/// Converts a flat list of indices to pairs.
fn pairs(feedback: &Array) -> Result<Vec<(usize, usize)>> {
    let mut pairs = Vec::new();
    for at in 0..feedback.length() / 2 {
        let place = |at| usize::from_js(&feedback.get(at), "feedback");
        pairs.push((place(2 * at)?, place(2 * at + 1)?));
    }
    Ok(pairs)
}
