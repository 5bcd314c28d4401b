//! `Program`.

use std::cell::RefCell;
use std::rc::Rc;

use js_sys::{Array, Float32Array, Promise};
use wasm_bindgen::prelude::*;

use super::convert::{self, Parameter};
use super::device::JsBuffer;
use super::error::{promise, to_js};
use super::types::*;
use crate::buffer::DeviceBuffer;
use crate::error::{Error, Result};
use crate::graph::{Argument, Program};

/// A batch that was planned once and runs with new arguments each time.
#[wasm_bindgen(js_name = Program)]
pub struct JsProgram {
    /// `None` once it was disposed of.
    program: RefCell<Option<Rc<Program>>>,
    /// For the next run.
    arguments: RefCell<Vec<JsArgument>>,
}

enum JsArgument {
    Values(Vec<f32>),
    Buffer(DeviceBuffer),
}

impl JsArgument {
    fn as_argument(&self) -> Argument<'_> {
        match self {
            Self::Values(values) => values.into(),
            Self::Buffer(buffer) => buffer.into(),
        }
    }
}

#[wasm_bindgen(js_class = Program)]
impl JsProgram {
    /// Gives the next run an argument. `core.js` does so for each, the first one first.
    #[wasm_bindgen(skip_typescript, js_name = setValues)]
    pub fn set_values(&self, place: usize, values: JsValue) -> Result<(), JsValue> {
        let values = convert::array(values, "argument").and_then(|array| convert::values(&array));
        self.set(place, values.map(JsArgument::Values))
    }

    /// As `setValues`, for a buffer on the device.
    #[wasm_bindgen(skip_typescript, js_name = setBuffer)]
    pub fn set_buffer(&self, place: usize, buffer: &JsBuffer) -> Result<(), JsValue> {
        self.set(place, buffer.handle().map(JsArgument::Buffer))
    }

    /// Runs with the first `count` of the arguments set before.
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
        let program = self.handle();
        let call = usize::from_js(&times, "times").and_then(|times| Ok((times, pairs(&feedback)?)));
        let work = async move {
            let (program, (times, feedback)) = (program?, call?);
            let arguments: Vec<Argument<'_>> =
                arguments.iter().map(JsArgument::as_argument).collect();
            if read && !program.is_on_host() {
                let results = program.read(&arguments).await?;
                return Ok(list(&results, |values| {
                    Float32Array::from(&values[..]).into()
                }));
            }
            let results = program.run_n(&arguments, times, &feedback).await?;
            Ok(list(&results, |buffer| match buffer.host() {
                Some(values) if read => Float32Array::from(values).into(),
                _ => JsBuffer::from(buffer.clone()).into(),
            }))
        };
        promise(abort.as_ref(), Box::pin(work))
    }

    /// How it runs: its kernels, what they read and write, and the memory between them.
    #[wasm_bindgen]
    pub fn explain(&self) -> Result<String, JsValue> {
        let program = self.handle().map_err(|error| to_js(&error))?;
        Ok(program.explain().to_string())
    }

    /// Gives its memory back. Later calls fail with code `DISPOSED`.
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

fn list<T>(results: &[T], item: impl Fn(&T) -> JsValue) -> JsValue {
    let list = Array::new();
    for result in results {
        list.push(&item(result));
    }
    list.into()
}

fn pairs(feedback: &Array) -> Result<Vec<(usize, usize)>> {
    let pair = |pair: JsValue| {
        let pair = Array::from(&pair);
        let place = |at| usize::from_js(&pair.get(at), "feedback");
        Ok((place(0)?, place(1)?))
    };
    feedback.iter().map(pair).collect()
}
