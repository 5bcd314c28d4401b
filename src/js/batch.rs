//! `GpuCommandBatch`.

use std::cell::RefCell;
use std::rc::Rc;

use js_sys::Array;
use wasm_bindgen::prelude::*;

use super::convert::{self, Parameter, invalid};
use super::device::{JsBuffer, read};
use super::error::{Work, begun, promise, to_js};
use super::ops;
use super::program::{JsProgram, described};
use super::types::*;
use crate::batch::{BufferId, GpuCommandBatch, Program};
use crate::error::{Error, Result};

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
        let ids = convert::list(outputs.into(), "outputs")
            .and_then(|outputs| buffer_ids(&outputs, outputs.length(), &["outputs"]));
        let prepared = self.with(|batch| batch.prepare(&ids?));
        let work = async move { Ok(JsProgram::from(Program::new(prepared?).await?).into()) };
        promise(abort.as_ref(), Box::pin(work)).unchecked_into()
    }

    /// Records the operation at a place in the op table. `index.js` makes a method of each.
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

    /// The length of what such an operation would give; each input of `arguments` is a length. A
    /// batch in a worker finds mistakes by it before it sends anything.
    #[wasm_bindgen(skip_typescript, js_name = lengthOf)]
    pub fn length_of(index: usize, arguments: &Array) -> Result<usize, JsValue> {
        ops::length(index, arguments).map_err(|error| to_js(&error))
    }

    /// Runs everything recorded, once; on a GPU in one submission.
    pub fn execute(&self, abort: Option<AbortOptions>) -> PromiseOfNothing {
        // Nothing more is recorded from here on.
        let mut begin = || -> Result<Work> {
            let mut taken = Taken::from(&self.state)?;
            Ok(Box::pin(async move {
                if let Some(batch) = &mut taken.batch {
                    batch.execute().await?;
                }
                Ok(JsValue::UNDEFINED)
            }))
        };
        begun(abort.as_ref(), &mut begin).unchecked_into()
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

/// The batch while it is executed; it goes back where it was, unless it was disposed of meanwhile.
struct Taken {
    state: Rc<RefCell<State>>,
    batch: Option<GpuCommandBatch>,
}

impl Taken {
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

impl Drop for Taken {
    fn drop(&mut self) {
        let present = self.batch.take().map(State::Present);
        let executing = matches!(*self.state.borrow(), State::Executing);
        if let Some(present) = present.filter(|_| executing) {
            self.state.replace(present);
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

/// The first `count` of `values`, by their names; one name alone is that of all.
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

fn buffer_id(value: &JsValue, what: &'static str) -> Result<BufferId> {
    let number = value
        .as_f64()
        .filter(|number| *number >= 0.0 && number.fract() == 0.0);
    let number = number.ok_or_else(|| invalid(what, value, "a BufferId"))? as u64;
    Ok(BufferId::from_parts(number / MAX_INDEX, number % MAX_INDEX))
}
