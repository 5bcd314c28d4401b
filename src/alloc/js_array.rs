//! Arrays from JavaScript callers, and `Float32Array`s whose allocation can fail.
//!
//! `arrays.js` checks arrays: an array may belong to another realm, and its buffer may be detached,
//! resized, or grown by another thread. js-sys lets exceptions of constructors and copies pass
//! through this module's frames, which then never end.

use std::mem::MaybeUninit;

use js_sys::Float32Array;
use wasm_bindgen::prelude::*;

use crate::alloc::try_written;
use crate::error::{Error, Result};

#[wasm_bindgen(module = "/js/npm/arrays.js")]
extern "C" {
    /// Returns the length of a `Float32Array` or a `Uint8Array`; a negative number is the reason
    /// why there is none.
    #[wasm_bindgen(js_name = lengthOf)]
    pub(crate) fn length_of(value: &JsValue, bytes: bool) -> f64;

    /// Fills `to` with the elements from `start` on. Returns whether there are enough of them.
    pub(crate) fn read(array: &Float32Array, start: usize, to: &mut [f32]) -> bool;

    #[wasm_bindgen(js_name = read)]
    pub(crate) fn read_uninit(
        array: &Float32Array,
        start: usize,
        to: &mut [MaybeUninit<f32>],
    ) -> bool;

    #[wasm_bindgen(js_name = read)]
    pub(crate) fn read_bytes(array: &JsValue, start: usize, to: &mut [u8]) -> bool;

    /// Writes `from` to the elements from `start` on. Returns whether there is room.
    pub(crate) fn write(array: &Float32Array, start: usize, from: &[f32]) -> bool;

    /// Returns a subarray of `length` elements from `start` on, or nothing if there are fewer.
    pub(crate) fn part(array: &Float32Array, start: usize, length: usize) -> Option<Float32Array>;
}

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(js_name = Float32Array, extends = Float32Array)]
    type Fallible;

    #[wasm_bindgen(constructor, catch, js_class = "Float32Array")]
    fn new(len: u32) -> Result<Fallible, JsValue>;

    #[wasm_bindgen(constructor, catch, js_class = "Float32Array")]
    fn of(values: &[f32]) -> Result<Fallible, JsValue>;
}

fn allocated(array: Result<Fallible, JsValue>, len: usize) -> Result<Float32Array> {
    let bytes = len as u64 * 4;
    array
        .map(Into::into)
        .map_err(|_| Error::OutOfMemory { bytes })
}

/// Creates an array of zeros.
pub(crate) fn zeros(len: usize) -> Result<Float32Array> {
    allocated(Fallible::new(len as u32), len)
}

/// Creates an array with a copy of these elements, without zeroing it first.
pub(crate) fn of(values: &[f32]) -> Result<Float32Array> {
    allocated(Fallible::of(values), values.len())
}

/// Copies the first `len` elements.
pub(crate) fn copy(array: &Float32Array, len: usize) -> Result<Float32Array> {
    let copy = zeros(len)?;
    let values = part(array, 0, len).ok_or_else(lost)?;
    copy.set(&values, 0);
    Ok(copy)
}

/// Copies an array's values.
pub(crate) fn values(array: &Float32Array) -> Result<Vec<f32>> {
    let len = array.length() as usize;
    let write = |places: &mut [_]| {
        let whole = read_uninit(array, 0, places);
        whole.then_some(()).ok_or_else(lost)
    };
    // SAFETY: `read_uninit` fills all places or returns false.
    unsafe { try_written(len, write) }
}

/// The requirement on an array, for error messages.
pub(crate) const WITHIN: &str = "within its buffer, which was detached or became too short";

/// Returns the error for an array that lost its elements while it was in use.
pub(crate) fn lost() -> Error {
    Error::invalid("argument", "an array", WITHIN)
}
