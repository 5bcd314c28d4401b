//! [`Tensor`]: values with shapes, computed when they are read.

mod axes;
mod bytes;
mod conv2d;
mod custom;
mod elementwise;
mod graph;
mod join;
mod linear;
pub(crate) mod lower;
mod movement;
pub(crate) mod node;
mod operand;
pub(crate) mod programs;
mod random;
mod reduce;
mod run;
mod shape;
mod slice;
pub(crate) mod structure;
mod tensor;
mod tensors;
#[cfg(all(test, not(target_arch = "wasm32")))]
mod tests;
pub(crate) mod view;

pub use axes::Axes;
pub use conv2d::{Border, ConvOptions};
pub use operand::Operand;
pub use slice::Slice;
pub use tensor::Tensor;
pub use tensors::Tensors;
