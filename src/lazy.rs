//! [`Tensor`]: values with shapes, computed when they are read.
//!
//! The files:
//!
//! - `tensors` makes them and holds their programs, `tensor` is the public type, and `elementwise`, `reduce`,
//!   `movement`, `join`, `linear`, `conv2d`, `custom` and `bytes` have its methods, `operators` has `+`, `-`, `*` and
//!   `/`.
//! - `numeric` has functions that are composed of other nodes.
//! - `shape` and `axes` have the rules of shapes, `node` is what a method records, `graph` orders the nodes that
//!   results need and describes their structure.
//! - `gradients` adds the nodes of derivatives to a structure, `optimizers` those of a step, and `value` has the
//!   operations that both are written with.
//! - `view` has strided views, `lower` records nodes in a batch, `programs` caches compiled graphs by their structure,
//!   and `run` runs the programs.
//!
//! Tensors of JavaScript record nodes of their own, which its collector frees, and lower them by `lower`, too; `recording`
//! records functions of `numeric` for them.

mod axes;
mod bytes;
mod conv2d;
mod custom;
mod elementwise;
#[cfg(not(target_arch = "wasm32"))]
mod former_names;
pub(crate) mod gradients;
mod graph;
mod join;
mod linear;
pub(crate) mod lower;
mod movement;
pub(crate) mod node;
mod numeric;
mod operand;
mod operators;
pub(crate) mod optimizers;
mod programs;
mod random;
#[cfg(all(target_arch = "wasm32", feature = "js-numeric"))]
pub(crate) mod recording;
mod reduce;
mod run;
mod shape;
mod slice;
pub(crate) mod structure;
mod tensor;
mod tensors;
#[cfg(all(test, not(target_arch = "wasm32")))]
mod tests;
mod value;
pub(crate) mod view;

pub use axes::Axes;
pub use conv2d::{Border, ConvOptions};
pub use numeric::{Interpolation, PoolOptions};
pub use operand::Operand;
pub use optimizers::{Optimizer, OptimizerState, clip_by_global_norm};
pub use slice::Slice;
pub use tensor::Tensor;
pub use tensors::Tensors;
