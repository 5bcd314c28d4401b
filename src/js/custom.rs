//! `CustomOp` and its recording.

use std::cell::RefCell;

use js_sys::{Array, Float32Array, Function};
use wasm_bindgen::prelude::*;

use super::batch::{JsBatch, buffer_ids};
use super::convert::{self, Parameter, get, invalid};
use super::error::to_js;
use super::types::*;
use crate::alloc::js_array as array;
use crate::error::{Error, Result};
use crate::ops::custom::CustomOp;
use crate::runtime::OnOneThread;

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = r#"
/** A custom elementwise operation: one to three inputs of equal length, and up to two parameters. */
export interface CustomOpDefinition {
    /** The name in plans and errors. */
    name: string;
    /** The names of the inputs in `wgsl`. */
    inputs: readonly string[];
    /** The names of the parameters in `wgsl`. */
    parameters?: readonly string[] | undefined;
    /**
     * The WGSL function for GPUs, on `f32`: an expression, or the body of a function if it has a
     * `return`. It may call WGSL's functions, `maximum(a, b)` and `minimum(a, b)`, which propagate
     * NaN, and `is_nan(x)`.
     */
    wgsl: string;
    /**
     * The same function in JavaScript, for SIMD. It is called for each element, with the inputs'
     * values and then the parameters; its result is rounded to `f32`.
     */
    function: (...values: number[]) => number;
}
"#;

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(typescript_type = "CustomOpDefinition")]
    pub type Definition;
    #[wasm_bindgen(typescript_type = "readonly number[]")]
    pub type Numbers;
}

#[wasm_bindgen(module = "/js/npm/custom.js")]
extern "C" {
    /// Fills `out` with the function's results, or returns an error message.
    #[wasm_bindgen(catch)]
    fn apply(
        function: &Function,
        inputs: &Array,
        parameters: &Array,
        out: &Float32Array,
    ) -> Result<Option<String>, JsValue>;
}

/// A custom elementwise operation, which is fused like any other.
#[wasm_bindgen(js_name = CustomOp)]
pub struct JsCustomOp {
    /// The operation; `None` after `dispose`.
    op: RefCell<Option<CustomOp>>,
}

#[wasm_bindgen(js_class = CustomOp)]
impl JsCustomOp {
    /// Creates an operation. On a GPU the browser finds mistakes in its WGSL when the operation
    /// runs, and reports them with code `GPU`. An exception of the function is reported with code
    /// `FUNCTION`.
    #[wasm_bindgen(constructor)]
    pub fn new(definition: Definition) -> Result<Self, JsValue> {
        let op = define(&definition).map_err(|error| to_js(&error))?;
        let op = RefCell::new(Some(op));
        Ok(Self { op })
    }

    /// The name that plans show.
    #[wasm_bindgen(getter)]
    pub fn name(&self) -> Result<String, JsValue> {
        let op = self.op().map_err(|error| to_js(&error))?;
        Ok(op.name().to_owned())
    }

    /// Releases its memory. Batches and programs that use it keep it. Later calls fail with code
    /// `DISPOSED`.
    pub fn dispose(&self) {
        self.op.take();
    }
}

impl JsCustomOp {
    fn op(&self) -> Result<CustomOp> {
        let what = "CustomOp";
        self.op.borrow().clone().ok_or(Error::Disposed { what })
    }
}

#[wasm_bindgen(js_class = GpuCommandBatch)]
impl JsBatch {
    /// Records a custom elementwise operation on inputs of equal length.
    #[wasm_bindgen(js_name = customElementwise)]
    pub fn custom_elementwise(
        &self,
        op: &JsCustomOp,
        inputs: Ids,
        parameters: Option<Numbers>,
    ) -> Result<Id, JsValue> {
        // Before the batch is in use: an array's getters may use it, too.
        let call = || -> Result<_> {
            let inputs = convert::list(inputs.into(), "inputs")?;
            let ids = buffer_ids(&inputs, inputs.length(), &["inputs"])?;
            let mut values = Vec::new();
            if let Some(parameters) = parameters {
                for parameter in convert::list(parameters.into(), "parameters")? {
                    values.push(f32::from_js(&parameter, "parameters")?);
                }
            }
            Ok((op.op()?.with(&values)?, ids))
        };
        let call = call();
        self.record(|batch| {
            let (op, ids) = call?;
            batch.try_record(op, &ids)
        })
    }
}

fn define(definition: &JsValue) -> Result<CustomOp> {
    let text = |key| convert::text(&get(definition, key), key);
    let value = get(definition, "function");
    let function = value.dyn_into().map(OnOneThread::<Function>::new);
    let function = function.map_err(|other| invalid("function", &other, "a function"))?;
    CustomOp::define(
        interned(&text("name")?),
        names(definition, "inputs")?,
        names(definition, "parameters")?,
        &text("wgsl")?,
        Box::new(move |_, parameters, inputs, out| {
            let function = function
                .get()
                .ok_or("a function of JavaScript runs on its own thread alone")?;
            let parameters = parameters.iter().map(|&value| JsValue::from(value));
            let memory = |error: crate::error::Error| error.to_string();
            // The function may have our memory grow, so it gets none of it.
            let copies = Array::new();
            for values in inputs {
                let copy: JsValue = array::of(values).map_err(memory)?.into();
                copies.push(&copy);
            }
            let results = array::zeros(out.len()).map_err(memory)?;
            let applied = apply(function, &copies, &parameters.collect(), &results);
            // It catches what the function throws; without a stack it cannot even begin.
            let failure = applied.unwrap_or_else(|_| Some("there is no stack left".to_owned()));
            if let Some(failure) = failure {
                return Err(failure);
            }
            results.copy_to(out);
            Ok(())
        }),
    )
}

/// Returns a list of names; empty if the property is absent.
fn names(definition: &JsValue, key: &'static str) -> Result<&'static [&'static str]> {
    thread_local! {
        static LISTS: Interned<[&'static str]> = RefCell::default();
    }
    let value = get(definition, key);
    if value.is_undefined() {
        return Ok(&[]);
    }
    let wanted = "an array of names";
    let array: &Array = value
        .dyn_ref()
        .ok_or_else(|| invalid(key, &value, wanted))?;
    let mut names = Vec::new();
    for name in array.iter() {
        let text = name.as_string();
        names.push(interned(&text.ok_or_else(|| invalid(key, &name, wanted))?));
    }
    Ok(LISTS.with(|known| once(known, &names[..])))
}

/// Returns a copy of the text that lives as long as the module: elsewhere operation names are
/// static.
fn interned(text: &str) -> &'static str {
    thread_local! {
        static TEXTS: Interned<str> = RefCell::default();
    }
    TEXTS.with(|known| once(known, text))
}

/// The values so far. Programs define few operations, so a list takes less code than a map and no more time.
type Interned<T> = RefCell<Vec<&'static T>>;

/// Returns the known value that equals this one, and adds it if there is none, so that equal values
/// take memory once.
fn once<T: PartialEq + ?Sized>(known: &Interned<T>, value: &T) -> &'static T
where
    Box<T>: for<'a> From<&'a T>,
{
    let mut known = known.borrow_mut();
    if let Some(same) = known.iter().find(|&&own| own == value) {
        return same;
    }
    let made: &'static T = Box::leak(value.into());
    known.push(made);
    made
}
