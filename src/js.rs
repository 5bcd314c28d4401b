//! The JavaScript classes: they convert between JavaScript's values and this crate's, and do
//! nothing else.
//!
//! Their documentation and types reach `relampago.d.ts` from here. `/js/npm` contains the scripts
//! around them in the package, and `examples/op_table.rs` writes the parts that come from the op
//! table. Methods that compute return a promise and read their arguments before they return, so the
//! caller may change an array at once.

// wasm-bindgen hands over handles by value, and every one of `types` is a name in a signature.
#![allow(clippy::needless_pass_by_value, clippy::wildcard_imports)]

mod batch;
mod convert;
mod custom;
mod device;
mod error;
mod graph;
mod matmul_cache;
mod ops;
mod program;
mod random;
mod simd;
mod tuning;
mod types;
mod views;
