//! The WebAssembly module of the npm package: the library's classes for JavaScript, which
//! wasm-bindgen exports from any crate that is linked.

#[cfg(feature = "computing")]
pub mod allocated;

pub use relampago::*;
