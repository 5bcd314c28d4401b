//! The JavaScript classes: they convert between JavaScript's values and this crate's, and do
//! nothing else.
//!
//! Their documentation and types reach `relampago.d.ts` from here; `npm/` holds what surrounds
//! them in the package, `full/` what its full edition has in place of that, and `examples/op_table.rs` writes what the op table adds. Methods that
//! compute return a promise and take their arguments' contents before they return, so the caller
//! may change an array at once.

// wasm-bindgen hands over handles by value, and every one of `types` is a name in a signature.
#![allow(clippy::needless_pass_by_value, clippy::wildcard_imports)]

mod batch;
mod convert;
mod custom;
mod device;
mod error;
mod matmul_cache;
mod ops;
mod program;
mod simd;
mod tuning;
mod types;
mod views;
