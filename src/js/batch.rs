//! `GpuCommandBatch`.

use std::cell::RefCell;
use std::rc::Rc;

use js_sys::Array;
use wasm_bindgen::prelude::*;

use super::convert::{self, Parameter, invalid};
use super::device::{JsBuffer, read};
use super::error::{promise, to_js};
use super::ops;
use super::program::{JsProgram, described};
use super::types::*;
use crate::error::{Error, Result};
use crate::graph::{BufferId, GpuCommandBatch, Program};

/// Operations that are recorded, run together by `execute`, and then read. A mistake in
/// recording throws at once.
#[wasm_bindgen(js_name = GpuCommandBatch)]
pub struct JsBatch {
    state: Rc<RefCell<State>>,
}

enum State {
    Present(GpuCommandBatch),
    /// `execute` has it, until its promise is settled.
    Executing,
    Disposed,
}

#[wasm_bindgen(js_class = GpuCommandBatch)]
impl JsBatch {
    /// Records values, which are copied now.
    pub fn upload(&self, values: Values) -> Result<Id, JsValue> {
        let values = convert::array(values.into(), "values").and_then(|v| convert::values(&v));
        self.record(|batch| batch.try_own(values?))
    }

    /// Records values that are on the device already; they are not copied.
    pub fn input(&self, buffer: &JsBuffer) -> Result<Id, JsValue> {
        self.record(|batch| batch.try_input(&buffer.handle()?))
    }

    /// Records `length` values that come with each run of a program, in the order in which they
    /// are recorded.
    pub fn placeholder(&self, length: Count) -> Result<Id, JsValue> {
        self.record(|batch| batch.try_placeholder(usize::from_js(&length, "length")?))
    }

    /// Says that a value will be read though others are computed from it. Such a value is found
    /// without this, too, but may have to be computed again.
    pub fn output(&self, id: Id) -> Result<(), JsValue> {
        let marked = self.with(|batch| batch.output(buffer_id(&id, "id")?));
        marked.map_err(|error| to_js(&error))
    }

    /// What `explain` makes objects of.
    #[wasm_bindgen(skip_typescript)]
    pub fn describe(&self) -> Result<Array, JsValue> {
        let described = self.with(|batch| Ok(described(&batch.planned())));
        described.map_err(|error| to_js(&error))
    }

    /// Plans how to compute some values, for any number of runs. Uploads stay on the device;
    /// placeholders are the program's arguments.
    pub fn compile(&self, outputs: Ids, abort: Option<AbortOptions>) -> PromiseOfProgram {
        let outputs = Array::from(&outputs);
        let prepared = self.with(|batch| {
            let mut ids = Vec::new();
            for at in 0..outputs.length() {
                ids.push(buffer_id(&outputs.get(at), "outputs")?);
            }
            batch.prepare(&ids)
        });
        let work = async move { Ok(JsProgram::from(Program::new(prepared?).await?).into()) };
        promise(abort.as_ref(), Box::pin(work)).unchecked_into()
    }

    /// Records the operation at a place in the op table. `index.js` makes a method of each.
    #[wasm_bindgen(skip_typescript, js_name = record)]
    pub fn record_op(&self, index: usize, arguments: Array) -> Result<Id, JsValue> {
        self.record(|batch| {
            let op = ops::build(index, &arguments)?;
            let ids = op.inputs().iter().zip(0..);
            let ids = ids.map(|(what, i)| buffer_id(&arguments.get(i), what));
            batch.try_record(op, &ids.collect::<Result<Vec<_>>>()?)
        })
    }

    /// The length of what such an operation would give; each input of `arguments` is a length. A
    /// batch in a worker finds mistakes by it before it sends anything.
    #[wasm_bindgen(skip_typescript, js_name = lengthOf)]
    pub fn length_of(index: usize, arguments: &Array) -> Result<usize, JsValue> {
        ops::length(index, arguments).map_err(|error| to_js(&error))
    }

    /// Runs everything recorded, once; on a GPU in one submission.
    pub fn execute(&self, abort: Option<AbortOptions>) -> PromiseOfNothing {
        let state = self.state.clone();
        let work = async move {
            let mut batch = take(&state)?;
            let result = batch.execute().await;
            // Unless it was disposed of meanwhile.
            if matches!(*state.borrow(), State::Executing) {
                state.replace(State::Present(batch));
            }
            result.map(|()| JsValue::UNDEFINED)
        };
        promise(abort.as_ref(), Box::pin(work)).unchecked_into()
    }

    /// The values of a buffer, after `execute`.
    pub fn read(&self, id: Id, abort: Option<AbortOptions>) -> PromiseOfValues {
        let buffer = self.with(|batch| batch.keep(buffer_id(&id, "id")?));
        read(buffer, abort.as_ref())
    }

    /// A buffer's values, kept on the device beyond the batch, for use by another one.
    pub fn keep(&self, id: Id) -> Result<JsBuffer, JsValue> {
        let buffer = self.with(|batch| batch.keep(buffer_id(&id, "id")?));
        buffer.map(JsBuffer::from).map_err(|error| to_js(&error))
    }

    /// Gives the memory of its buffers back. Later calls fail with code `DISPOSED`.
    pub fn dispose(&self) {
        self.state.replace(State::Disposed);
    }
}

impl From<GpuCommandBatch> for JsBatch {
    fn from(batch: GpuCommandBatch) -> Self {
        let state = Rc::new(RefCell::new(State::Present(batch)));
        Self { state }
    }
}

impl JsBatch {
    fn with<T>(&self, f: impl FnOnce(&mut GpuCommandBatch) -> Result<T>) -> Result<T> {
        match &mut *self.state.borrow_mut() {
            State::Present(batch) => f(batch),
            State::Executing => Err(Error::NotExecuted),
            State::Disposed => Err(disposed()),
        }
    }

    pub(super) fn record(
        &self,
        f: impl FnOnce(&mut GpuCommandBatch) -> Result<BufferId>,
    ) -> Result<Id, JsValue> {
        let id = self.with(|batch| id_number(f(batch)?));
        let number = id.map_err(|error| to_js(&error))?;
        Ok(JsValue::from(number).unchecked_into())
    }
}

fn disposed() -> Error {
    let what = "GpuCommandBatch";
    Error::Disposed { what }
}

fn take(state: &RefCell<State>) -> Result<GpuCommandBatch> {
    match state.replace(State::Executing) {
        State::Present(batch) => Ok(batch),
        State::Executing => Err(Error::AlreadyExecuted),
        State::Disposed => {
            state.replace(State::Disposed);
            Err(disposed())
        }
    }
}

/// Buffers of a batch that JavaScript can name: what is left of a number's 53 bits beside 32
/// for the batch.
const MAX_INDEX: u64 = 1 << 21;

fn id_number(id: BufferId) -> Result<f64> {
    let (batch, index) = id.parts();
    if index >= MAX_INDEX {
        return Err(Error::LimitExceeded {
            what: "the number of a batch's buffers",
            value: index + 1,
            limit: MAX_INDEX,
        });
    }
    Ok((batch * MAX_INDEX + index) as f64)
}

pub(super) fn buffer_id(value: &JsValue, what: &'static str) -> Result<BufferId> {
    let number = value.as_f64().filter(|number| *number >= 0.0);
    let number = number.ok_or_else(|| invalid(what, value, "a BufferId"))? as u64;
    Ok(BufferId::from_parts(number / MAX_INDEX, number % MAX_INDEX))
}
