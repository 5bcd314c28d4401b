//! `Float32Array`s that may not come about: for lack of memory, or since their buffer was given away.
//! js-sys lets what a constructor throws pass through this module's frames, which then never end.

use js_sys::Float32Array;
use wasm_bindgen::prelude::*;

use crate::error::{Error, Result};

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(js_name = Float32Array, extends = Float32Array)]
    type Fallible;

    #[wasm_bindgen(constructor, catch, js_class = "Float32Array")]
    fn new(len: u32) -> Result<Fallible, JsValue>;

    #[wasm_bindgen(constructor, catch, js_class = "Float32Array")]
    fn of(values: &[f32]) -> Result<Fallible, JsValue>;

    #[wasm_bindgen(method, catch)]
    fn subarray(this: &Fallible, start: u32, end: u32) -> Result<Float32Array, JsValue>;
}

fn allocated(array: Result<Fallible, JsValue>, len: usize) -> Result<Float32Array> {
    let bytes = len as u64 * 4;
    array
        .map(Into::into)
        .map_err(|_| Error::OutOfMemory { bytes })
}

/// A new array of zeros.
pub(crate) fn zeros(len: usize) -> Result<Float32Array> {
    allocated(Fallible::new(len as u32), len)
}

/// A new array of these values, whose memory need not be zero before.
pub(crate) fn of(values: &[f32]) -> Result<Float32Array> {
    allocated(Fallible::of(values), values.len())
}

/// A copy.
pub(crate) fn copy(array: &Float32Array) -> Result<Float32Array> {
    let copy = zeros(array.length() as usize)?;
    copy.set(array, 0);
    Ok(copy)
}

/// The values from `start` to before `end` where they are; nothing where the array has lost them.
pub(super) fn part(array: &Float32Array, start: usize, end: usize) -> Option<Float32Array> {
    let array: &Fallible = array.unchecked_ref();
    let part = array.subarray(start as u32, end as u32).ok();
    part.filter(|part| part.length() as usize == end - start)
}

/// Whether an array has its values: those of a buffer that was given away, or has become too short
/// for them, are none, which is no length that anyone asked for.
pub(super) fn is_attached(array: &Float32Array) -> bool {
    let array: &Fallible = array.unchecked_ref();
    array.length() > 0 || array.subarray(0, 0).is_ok()
}
