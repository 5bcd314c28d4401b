//! `GpuCommandBatch`.

use std::cell::RefCell;
use std::rc::Rc;

use js_sys::{Array, Promise};
use wasm_bindgen::prelude::*;

use super::convert::{self, Parameter, invalid};
use super::device::{JsBuffer, read};
use super::error::{Work, begun, promise, to_js};
use super::ops;
use super::program::{JsProgram, described};
use super::types::*;
use crate::batch::{BufferId, GpuCommandBatch, Program, Runtime};
use crate::error::{Error, Result};

/// A list of recorded operations that run together by `execute`. Results are read afterwards. A
/// mistake in recording throws at once. Create one by `device.batch()`.
#[wasm_bindgen(js_name = GpuCommandBatch)]
pub struct JsBatch {
    state: Rc<RefCell<State>>,
}

enum State {
    Present(GpuCommandBatch),
    /// The batch is executing; `execute` has taken it until its promise settles.
    Executing,
    Disposed,
}

#[wasm_bindgen(js_class = GpuCommandBatch)]
impl JsBatch {
    /// Records a copy of the values as an input.
    pub fn upload(&self, values: Values) -> Result<Id, JsValue> {
        let values = convert::array(values.into(), "values").and_then(|v| convert::values(&v));
        self.record(|batch| batch.try_own(values?))
    }

    /// Records a buffer that is already on the device as an input, without copying it.
    pub fn input(&self, buffer: &JsBuffer) -> Result<Id, JsValue> {
        self.record(|batch| batch.try_input(&buffer.handle()?))
    }

    /// Records a placeholder of `length` values, which get their contents on each run of a program.
    /// The program's arguments have the order in which placeholders are recorded.
    pub fn placeholder(&self, length: Count) -> Result<Id, JsValue> {
        self.record(|batch| batch.try_placeholder(usize::from_js(&length, "length")?))
    }

    /// Marks an intermediate result as an output, so that it can be read without being computed
    /// again.
    pub fn output(&self, id: Id) -> Result<(), JsValue> {
        let marked = self.with(|batch| batch.output(buffer_id(&id, "id")?));
        marked.map_err(|error| to_js(&error))
    }

    /// Returns the data that `explain` makes objects of.
    #[wasm_bindgen(skip_typescript)]
    pub fn describe(&self) -> Result<Array, JsValue> {
        let described = self.with(|batch| {
            Ok(described(
                &batch.planned(),
                batch.planned_executor().backend(),
            ))
        });
        described.map_err(|error| to_js(&error))
    }

    /// Compiles a program that computes the given outputs and can run many times. Uploads are
    /// copied to the device now; placeholders become the program's arguments.
    pub fn compile(&self, outputs: Ids, abort: Option<AbortOptions>) -> PromiseOfProgram {
        let ids = convert::list(outputs.into(), "outputs")
            .and_then(|outputs| buffer_ids(&outputs, outputs.length(), &["outputs"]));
        let prepared = self.with(|batch| batch.prepare(&ids?));
        promise(abort.as_ref(), compiled(prepared)).unchecked_into()
    }

    /// Records the operation at an index in the op table. `operations.js` makes a method of each
    /// operation.
    #[wasm_bindgen(skip_typescript, js_name = record)]
    pub fn record_op(&self, index: usize, arguments: Array) -> Result<Id, JsValue> {
        // Before the batch is in use: getters of options may use it, too.
        let call = ops::build(index, &arguments).and_then(|op| {
            let names = op.inputs();
            Ok((op, buffer_ids(&arguments, names.len() as u32, names)?))
        });
        self.record(|batch| {
            let (op, ids) = call?;
            batch.try_record(op, &ids)
        })
    }

    /// Returns the length of the result of an operation; each input of `arguments` is a length. A
    /// batch in a worker uses it to find mistakes before it sends anything.
    #[wasm_bindgen(skip_typescript, js_name = lengthOf)]
    pub fn length_of(index: usize, arguments: &Array) -> Result<usize, JsValue> {
        ops::length(index, arguments).map_err(|error| to_js(&error))
    }

    /// Runs all recorded operations, once; on a GPU in one submission.
    pub fn execute(&self, abort: Option<AbortOptions>) -> PromiseOfNothing {
        // Nothing more is recorded from here on.
        let mut begin = || -> Result<Work> {
            let mut taken = TakenBatch::from(&self.state)?;
            Ok(Box::pin(async move {
                if let Some(batch) = &mut taken.batch {
                    batch.execute_async().await?;
                }
                Ok(JsValue::UNDEFINED)
            }))
        };
        begun(abort.as_ref(), &mut begin).unchecked_into()
    }

    /// Copies the values of a buffer, after `execute`, to `into` if that is an array of its length and
    /// the buffer is in host memory, otherwise to a new array. `batch.js` makes `read` of it.
    #[wasm_bindgen(skip_typescript, js_name = readValues)]
    pub fn read_values(&self, id: Id, into: JsValue, abort: Option<AbortOptions>) -> Promise {
        let buffer = self.with(|batch| batch.keep(buffer_id(&id, "id")?));
        read(buffer, into, abort.as_ref())
    }

    /// Returns a buffer that stays on the device beyond the batch, for use by other batches.
    pub fn keep(&self, id: Id) -> Result<JsBuffer, JsValue> {
        let buffer = self.with(|batch| batch.keep(buffer_id(&id, "id")?));
        buffer.map(JsBuffer::from).map_err(|error| to_js(&error))
    }

    /// Releases the memory of its buffers. Later calls fail with code `DISPOSED`.
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

/// Compiles the program of a batch that was prepared.
pub(super) fn compiled(prepared: Result<Runtime>) -> Work {
    Box::pin(async move { Ok(JsProgram::from(Program::new(prepared?).await?).into()) })
}

fn disposed() -> Error {
    let what = "GpuCommandBatch";
    Error::Disposed { what }
}

/// A batch taken for execution. It is put back when this is dropped, unless the batch was disposed
/// of meanwhile.
struct TakenBatch {
    state: Rc<RefCell<State>>,
    batch: Option<GpuCommandBatch>,
}

impl TakenBatch {
    fn from(state: &Rc<RefCell<State>>) -> Result<Self> {
        let batch = match state.replace(State::Executing) {
            State::Present(batch) => Some(batch),
            State::Executing => return Err(Error::AlreadyExecuted),
            State::Disposed => {
                state.replace(State::Disposed);
                return Err(disposed());
            }
        };
        let state = state.clone();
        Ok(Self { state, batch })
    }
}

impl Drop for TakenBatch {
    fn drop(&mut self) {
        let present = self.batch.take().map(State::Present);
        let executing = matches!(*self.state.borrow(), State::Executing);
        if let Some(present) = present.filter(|_| executing) {
            self.state.replace(present);
        }
    }
}

/// The largest number of buffers of a batch in JavaScript: an id has 53 bits, and the number of the batch takes 32 of
/// them.
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

/// Returns the first `count` buffer ids of `values`, with their names for errors; a single name
/// stands for all.
pub(super) fn buffer_ids(
    values: &Array,
    count: u32,
    names: &[&'static str],
) -> Result<Vec<BufferId>> {
    let mut ids = Vec::new();
    for at in 0..count {
        let name = names.get(at as usize).or(names.first());
        let what = name.copied().unwrap_or_default();
        ids.push(buffer_id(&values.get(at), what)?);
    }
    Ok(ids)
}

pub(super) fn buffer_id(value: &JsValue, what: &'static str) -> Result<BufferId> {
    let number = value
        .as_f64()
        .filter(|number| *number >= 0.0 && number.fract() == 0.0);
    let number = number.ok_or_else(|| invalid(what, value, "a BufferId"))? as u64;
    Ok(BufferId::from_parts(number / MAX_INDEX, number % MAX_INDEX))
}
