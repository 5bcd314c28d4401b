//! The WGSL of the GPU's kernels, by name.
//!
//! ```
//! use relampago::shaders;
//!
//! let text = shaders::source("gelu").expect("there is a kernel of this name");
//! assert!(text.contains("@compute"));
//! for name in shaders::names() {
//!     println!("{name}");
//! }
//! ```
//!
//! Names and texts may change with every version. Binding 0 has the parameters; the inputs and then the result
//! follow. `_any` kernels read arrays of any shape where the others read vectors of four elements. A few kernels
//! need wgpu features for subgroups or f16.

use super::fused::FusedCode;
use super::kernels::{ALL, Function, TEXTS};

/// Returns the names of all kernels: the elementwise operations by their names in [`crate::Op::name`], and the kernels
/// of other operations, of which there may be several.
pub fn names() -> impl Iterator<Item = &'static str> {
    let kernels = ALL.iter().map(|kernel| kernel.name);
    let texts = TEXTS.iter().map(|(name, _)| *name);
    let functions = Function::all().iter().map(|function| function.name);
    kernels.chain(texts).chain(functions)
}

/// Returns the text of a kernel without the operations that batches fuse into it; `None` if there is no kernel of this
/// name.
pub fn source(name: &str) -> Option<String> {
    if let Some(kernel) = ALL.iter().find(|kernel| kernel.name == name) {
        return Some(FusedCode::new(kernel).source(kernel));
    }
    if let Some((_, text)) = TEXTS.iter().find(|(other, _)| *other == name) {
        return Some((*text).to_owned());
    }
    let function = Function::named(name)?;
    Some(FusedCode::alone(function).source(&super::kernels::ELEMENTWISE))
}
