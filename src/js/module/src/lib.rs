//! The WebAssembly module of the npm package: the library's classes for JavaScript, which
//! wasm-bindgen exports from any crate that is linked.

#[cfg(feature = "computing")]
pub mod allocated;
// Without atomic instructions a module has no threads.
#[cfg(all(feature = "threads", target_feature = "atomics"))]
pub mod threads;

pub use relampago::*;
