//! The module `relampago/ptx`: turns plain objects that describe kernels of [`crate::ptx`] into PTX
//! text, with the launch as data.
//!
//! This WebAssembly module is separate from the one that computes. Its scripts are in `js/ptx/`.

// wasm-bindgen exports public items, and passes handles by value.
#![allow(unreachable_pub, clippy::needless_pass_by_value)]

mod description;
mod kernel;

use wasm_bindgen::prelude::*;

use crate::js_shared;
use description::KernelDescription;
use kernel::Kernel;
use relampago_ptx::{Error, Target};
use tsify::Ts;

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = r#"
/** What a kernel is written for: the oldest GPU that runs it. */
export type TargetName =
    'sm_70' | 'sm_75' | 'sm_80' | 'sm_86' | 'sm_89' | 'sm_90' | 'sm_90a' | 'sm_100' | 'sm_120';
"#;

/// Returns the names of all targets, oldest first.
#[wasm_bindgen(js_name = targetNames, unchecked_return_type = "TargetName[]")]
pub fn target_names() -> Vec<String> {
    Target::ALL.iter().map(ToString::to_string).collect()
}

/// Builds a kernel for a target. Without a target it takes the oldest one that supports the kernel.
/// Later GPUs run the text too, unless the target is `sm_90a`.
///
/// Throws a `RelampagoError`: `INVALID_ARGUMENT` for an invalid description, `UNSUPPORTED` if the
/// target lacks a feature of the kernel.
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
