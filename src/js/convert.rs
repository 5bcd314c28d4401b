//! Checked arguments from JavaScript. Nothing is coerced: a coerced argument (NaN, a wrapped integer) would give a
//! wrong result.

use js_sys::{Array, Float32Array, Reflect};
use wasm_bindgen::prelude::*;

use crate::alloc::js_array as array;
pub(super) use crate::alloc::js_array::values;
use crate::error::{Error, Result};
use crate::js_shared::whole;
use crate::ops::policy::Policy;
use crate::ops::{
    Attention, AxisFold, Conv2d, ConvLayer, Matmul, OpClass, Padding, Rearrange, ReduceAxis, Rope,
};

/// A parameter of an operation. `operations.js` has checked that options are an object, and their names.
pub(super) trait Parameter: Sized {
    fn from_js(value: &JsValue, what: &'static str) -> Result<Self>;
}

impl Parameter for f32 {
    fn from_js(value: &JsValue, what: &'static str) -> Result<Self> {
        let number = value.as_f64();
        Ok(number.ok_or_else(|| invalid(what, value, "a number"))? as f32)
    }
}

impl Parameter for usize {
    fn from_js(value: &JsValue, what: &'static str) -> Result<Self> {
        let requirement = "a whole number from 0 to 4,294,967,295";
        let number = whole(value).ok_or_else(|| invalid(what, value, requirement))?;
        Ok(number as usize)
    }
}

impl Parameter for Conv2d {
    fn from_js(options: &JsValue, _what: &'static str) -> Result<Self> {
        let dim = |key| usize::from_js(&get(options, key), key);
        Ok(Self {
            input_rows: dim("inputRows")?,
            input_cols: dim("inputCols")?,
            kernel_rows: dim("kernelRows")?,
            kernel_cols: dim("kernelCols")?,
            stride_rows: one_or(options, "strideRows")?,
            stride_cols: one_or(options, "strideCols")?,
            padding: padding(&get(options, "padding"))?,
        })
    }
}

impl Parameter for ConvLayer {
    fn from_js(options: &JsValue, _what: &'static str) -> Result<Self> {
        let image = Conv2d::from_js(options, "")?;
        let dim = |key| usize::from_js(&get(options, key), key);
        Ok(Self {
            image,
            batch: one_or(options, "batch")?,
            channels: dim("channels")?,
            filters: dim("filters")?,
            groups: one_or(options, "groups")?,
            dilation_rows: one_or(options, "dilationRows")?,
            dilation_cols: one_or(options, "dilationCols")?,
        })
    }
}

/// Returns a property that must be a whole number; 1 if it is absent.
fn one_or(options: &JsValue, key: &'static str) -> Result<usize> {
    optional(options, key).map(|value| value.unwrap_or(1))
}

/// Returns a property, or `None` if it is absent.
fn optional<T: Parameter>(options: &JsValue, key: &'static str) -> Result<Option<T>> {
    match get(options, key) {
        absent if absent.is_undefined() => Ok(None),
        value => T::from_js(&value, key).map(Some),
    }
}

impl Parameter for Attention {
    fn from_js(options: &JsValue, _what: &'static str) -> Result<Self> {
        let dim = |key| usize::from_js(&get(options, key), key);
        let all = Self::new(dim("tokens")?, dim("heads")?, dim("headLen")?);
        Ok(Self {
            kv_heads: optional(options, "kvHeads")?.unwrap_or(all.kv_heads),
            positions: optional(options, "positions")?.unwrap_or(all.positions),
            causal: optional(options, "causal")?,
            window: optional(options, "window")?,
            soft_cap: optional(options, "softCap")?,
            scale: optional(options, "scale")?.unwrap_or(all.scale),
            ..all
        })
    }
}

impl Parameter for Rope {
    fn from_js(options: &JsValue, _what: &'static str) -> Result<Self> {
        let dim = |key| usize::from_js(&get(options, key), key);
        let rope = Self::new(dim("tokens")?, dim("heads")?, dim("headLen")?);
        let factors = match get(options, "factors") {
            absent if absent.is_undefined() => None,
            factors => Some(copied(factors, "factors")?.into()),
        };
        Ok(Self {
            rotated: optional(options, "rotated")?.unwrap_or(rope.rotated),
            interleaved: flag(options, "interleaved")?,
            base: optional(options, "base")?.unwrap_or(rope.base),
            first: optional(options, "first")?.unwrap_or(0),
            factors,
            ..rope
        })
    }
}

impl Parameter for isize {
    fn from_js(value: &JsValue, what: &'static str) -> Result<Self> {
        let requirement = "a whole number from −2,147,483,648 to 2,147,483,647";
        let number = value
            .as_f64()
            .filter(|&number| f64::from(number as i32) == number);
        Ok(number.ok_or_else(|| invalid(what, value, requirement))? as Self)
    }
}

/// Converts each element of a property that must be an array.
fn list_of<T: Parameter>(options: &JsValue, key: &'static str) -> Result<Vec<T>> {
    let elements = list(get(options, key), key)?;
    elements
        .iter()
        .map(|value| T::from_js(&value, key))
        .collect()
}

impl Parameter for Rearrange {
    fn from_js(options: &JsValue, _what: &'static str) -> Result<Self> {
        Ok(Self {
            shape: list_of(options, "shape")?,
            strides: list_of(options, "strides")?,
            offset: optional(options, "offset")?.unwrap_or(0),
        })
    }
}

impl Parameter for AxisFold {
    fn from_js(value: &JsValue, what: &'static str) -> Result<Self> {
        Ok(match value.as_string().as_deref() {
            Some("sum") => Self::Sum,
            Some("mean") => Self::Mean,
            Some("max") => Self::Max,
            Some("min") => Self::Min,
            Some("argmax") => Self::Argmax,
            Some("argmin") => Self::Argmin,
            _ => {
                let requirement = "'sum', 'mean', 'max', 'min', 'argmax' or 'argmin'";
                return Err(invalid(what, value, requirement));
            }
        })
    }
}

impl Parameter for ReduceAxis {
    fn from_js(options: &JsValue, _what: &'static str) -> Result<Self> {
        let dim = |key| usize::from_js(&get(options, key), key);
        let fold = AxisFold::from_js(&get(options, "fold"), "fold")?;
        let (len, outer) = (dim("len")?, one_or(options, "outer")?);
        Ok(Self::new(fold, outer, len, one_or(options, "inner")?))
    }
}

impl Parameter for Matmul {
    fn from_js(options: &JsValue, _what: &'static str) -> Result<Self> {
        let dim = |key| usize::from_js(&get(options, key), key);
        Ok(Self {
            m: dim("m")?,
            k: dim("k")?,
            n: dim("n")?,
            transpose_a: flag(options, "transposeA")?,
            transpose_b: flag(options, "transposeB")?,
        })
    }
}

/// Returns a property that must be a boolean; false if it is absent.
pub(super) fn flag(options: &JsValue, key: &'static str) -> Result<bool> {
    match get(options, key) {
        absent if absent.is_undefined() => Ok(false),
        value => value
            .as_bool()
            .ok_or_else(|| invalid(key, &value, "true or false")),
    }
}

fn padding(value: &JsValue) -> Result<Padding> {
    match value.as_string().as_deref() {
        None if value.is_undefined() => Ok(Padding::Valid),
        Some("valid") => Ok(Padding::Valid),
        Some("same") => Ok(Padding::Same),
        _ => Err(invalid("padding", value, "'valid' or 'same'")),
    }
}

/// Returns the default policy with the thresholds in `overrides` replaced.
pub(super) fn policy(overrides: &JsValue) -> Result<Policy> {
    let mut policy = Policy::default();
    for class in OpClass::ALL {
        let key = class.name();
        let value = get(overrides, key);
        if value.is_undefined() {
            continue;
        }
        let number = value.as_f64().filter(|number| *number >= 0.0);
        let number = number.ok_or_else(|| invalid(key, &value, "a number from 0 to Infinity"))?;
        // Infinity becomes the largest integer, which is never.
        policy = policy.with_threshold(class, number as u64);
    }
    Ok(policy)
}

pub(super) fn policy_to_js(policy: Policy) -> js_sys::Object {
    let object = js_sys::Object::new();
    for class in OpClass::ALL {
        let threshold = match policy.threshold(class) {
            Policy::NEVER => f64::INFINITY,
            threshold => threshold as f64,
        };
        set(&object, class.name(), threshold);
    }
    object
}

/// Converts an argument that must be a `Float32Array`.
pub(super) fn array(value: JsValue, what: &'static str) -> Result<Float32Array> {
    checked(&value, what, false)?;
    Ok(value.unchecked_into())
}

/// Converts an argument that must be a JavaScript array, with any elements.
pub(super) fn list(value: JsValue, what: &'static str) -> Result<Array> {
    let list = value.dyn_into();
    list.map_err(|other| invalid(what, &other, "an array"))
}

/// Converts the first arguments to `Float32Array`s, by their names.
pub(super) fn arrays(names: &[&'static str], arguments: &Array) -> Result<Vec<Float32Array>> {
    let pairs = names.iter().zip(0..);
    pairs
        .map(|(what, index)| array(arguments.get(index), what))
        .collect()
}

/// Copies the values of an argument that must be a `Float32Array`.
pub(super) fn copied(value: JsValue, what: &'static str) -> Result<Vec<f32>> {
    values(&array(value, what)?)
}

/// Converts an argument that must be a string.
pub(super) fn text(value: &JsValue, what: &'static str) -> Result<String> {
    let text = value.as_string();
    text.ok_or_else(|| invalid(what, value, "a string"))
}

/// Returns a property of an object, or undefined.
pub(super) fn get(object: &JsValue, key: &str) -> JsValue {
    // What `Reflect.get` throws for other values would take up a place in a table for ever.
    if !object.is_object() && !object.is_function() {
        return JsValue::UNDEFINED;
    }
    Reflect::get(object, &key.into()).unwrap_or_default()
}

pub(super) fn set(object: &js_sys::Object, key: &str, value: impl Into<JsValue>) {
    // Fails on frozen objects only; these are our own.
    let _ = Reflect::set(object, &key.into(), &value.into());
}

/// Returns the length of an argument that must be an array of numbers, or of bytes.
pub(super) fn checked(value: &JsValue, what: &'static str, bytes: bool) -> Result<usize> {
    const LOST: f64 = -2.0;
    let length = array::length_of(value, bytes);
    if length >= 0.0 {
        return Ok(length as usize);
    }
    let class = if bytes {
        "a Uint8Array"
    } else {
        "a Float32Array"
    };
    let requirement = if length == LOST { array::WITHIN } else { class };
    Err(invalid(what, value, requirement))
}

pub(super) fn invalid(what: &'static str, value: &JsValue, requirement: &'static str) -> Error {
    Error::invalid(what, shown(value).unwrap_or_default(), requirement)
}

#[wasm_bindgen(module = "/js/common/options.js")]
extern "C" {
    /// Formats a value for an error message. Fails for objects that throw.
    #[wasm_bindgen(catch)]
    fn shown(value: &JsValue) -> Result<String, JsValue>;

    /// Refuses options that a view does not have, and a layout beside strides.
    #[wasm_bindgen(catch, js_name = requireViewOptions)]
    pub(super) fn require_view_options(options: &JsValue) -> Result<(), JsValue>;
}
