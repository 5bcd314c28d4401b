//! Functions that are composed of other nodes, with the meaning of `NumPy` and `PyTorch`: their gradients follow from
//! those of the nodes.
//!
//! The files:
//!
//! - `ranges` makes tensors of regular numbers, `repetition` and `pieces` move elements, `pad` continues axes.
//! - `products` has products and norms along axes, `remainder`, `angle` and `stable` have elementwise functions.
//! - `pool` and `resize` work on images, `einsum` contracts axes by their labels.
//! - `counts` counts elements, `dropout` drops them at random.

mod angle;
mod counts;
mod dropout;
mod einsum;
pub(super) mod pad;
mod pieces;
mod pool;
mod products;
mod ranges;
mod remainder;
mod repetition;
mod resize;
mod stable;

pub use pool::PoolOptions;
pub use resize::Interpolation;
