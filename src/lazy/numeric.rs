//! Functions that are composed of nodes, with the meaning of `NumPy` and `PyTorch`: their gradients follow from
//! those of the nodes.
//!
//! The files:
//!
//! - `ranges` makes tensors of regular numbers, `repetition` and `pieces` move elements, `pad` continues axes.
//! - `products` has products and norms along axes, `remainder`, `angle` and `stable` have elementwise functions.
//! - `scan`, `sort` and `fourier` apply operations of rows along any axis, `short_time` transforms windows.
//! - `pool` and `resize` work on images, `einsum` contracts axes by their labels.
//! - `counts` counts elements, `scatter` adds them at indices, `dropout` drops them at random.

mod angle;
mod counts;
mod dropout;
mod einsum;
mod fourier;
pub(super) mod pad;
mod pieces;
mod pool;
mod products;
mod ranges;
mod remainder;
mod repetition;
mod resize;
mod scan;
mod scatter;
mod short_time;
mod sort;
mod stable;

pub use pool::PoolOptions;
pub use resize::Interpolation;
