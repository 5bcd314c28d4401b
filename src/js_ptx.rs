//! `relampago/ptx`: the kernels of [`crate::ptx`], described by plain objects, as text with their
//! launch as data.
//!
//! A module of its own, which shares nothing with the one that computes. `js/ptx/` holds its scripts.

// wasm-bindgen exports what is public, and hands over handles by value.
#![allow(unreachable_pub, clippy::needless_pass_by_value)]

mod description;
mod kernel;

use wasm_bindgen::prelude::*;

use crate::js_shared;
use crate::ptx::{Error, Target};
use description::KernelDescription;
use kernel::Kernel;
use tsify::Ts;

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = r#"
/** What a kernel is written for: the oldest GPU that runs it. */
export type TargetName =
    'sm_70' | 'sm_75' | 'sm_80' | 'sm_86' | 'sm_89' | 'sm_90' | 'sm_90a' | 'sm_100' | 'sm_120';
"#;

/// The targets that kernels can be written for, oldest first.
#[wasm_bindgen(js_name = targetNames, unchecked_return_type = "TargetName[]")]
pub fn target_names() -> Vec<String> {
    Target::ALL.iter().map(ToString::to_string).collect()
}

/// Writes a kernel for a target, or for the first one that has what it needs. Later GPUs run it, too,
/// unless the target is `sm_90a`.
///
/// Throws a `RelampagoError`: `INVALID_ARGUMENT` for a description that no kernel has, `UNSUPPORTED`
/// if the target lacks what the kernel needs.
#[wasm_bindgen(js_name = buildKernel)]
pub fn build_kernel(
    description: Ts<KernelDescription>,
    #[wasm_bindgen(unchecked_optional_param_type = "TargetName")] target: JsValue,
) -> Result<Kernel, JsValue> {
    let description = description
        .to_rust()
        .map_err(|error| invalid(&format!("`description`: {error}")))?;
    let target = (!target.is_undefined()).then(|| target_of(&target));
    let built = description.build(target.transpose()?);
    Ok(Kernel::new(built.map_err(|error| to_js(&error))?))
}

fn target_of(value: &JsValue) -> Result<Target, JsValue> {
    let name = value.as_string();
    let name = name.ok_or_else(|| invalid("`target` must be a string"))?;
    name.parse().map_err(|error| to_js(&error))
}

fn to_js(error: &Error) -> JsValue {
    js_shared::error(error.code(), &error.to_string(), &JsValue::UNDEFINED)
}

fn invalid(message: &str) -> JsValue {
    js_shared::error("INVALID_ARGUMENT", message, &JsValue::UNDEFINED)
}
