//! PTX, the assembly language that NVIDIA's driver compiles, written in plain Rust: no LLVM, no
//! nvcc, and nothing that asks for a GPU.
//!
//! A [`Builder`] writes a kernel instruction by instruction against the
//! [instruction table](Op); the kernel is verified, and a [`PtxModule`] turns it into text.
//! [`kernels`] has products, attention, normalisations and quantised weights; [`interp`] runs
//! text on the CPU and reports undefined behaviour.
//!
//! ```
//! use relampago_ptx::{Builder, Extent, Launch, PtxModule, PtxType::{F32, U32}, Special, Target};
//!
//! # fn main() -> Result<(), relampago_ptx::Error> {
//! // y = a · x + y, 256 threads a block, one value a thread.
//! let launch = Launch::new(256, [Extent::Tiles("n", 256), Extent::Fixed(1), Extent::Fixed(1)]);
//! let mut k = Builder::new("saxpy", Target::Sm80, launch);
//! let (x, y) = (k.pointer("x", F32), k.pointer("y", F32));
//! let (a, n) = (k.scalar("a", F32), k.scalar("n", U32));
//! let (block, thread) = (k.special(Special::CtaidX), k.special(Special::TidX));
//! let i = k.fma(block, 256, thread);
//! let inside = k.lt(i, n);
//! k.when(inside, |k| {
//!     let (x, y) = (k.at(x, i, 4), k.at(y, i, 4));
//!     let x = k.ld_global(F32, x, 0);
//!     let old = k.ld(relampago_ptx::Op::LdGlobal, F32, y, 0);
//!     let new = k.fma(a, x, old);
//!     k.st_global(F32, y, 0, new);
//! });
//! let text = PtxModule::new(Target::Sm80).with(k.finish()?)?.emit();
//! assert!(text.contains("fma.rn.f32"));
//! # Ok(())
//! # }
//! ```

// The files:
//
// - `inst` is the instruction table, `build` the builder that checks instructions against the table, `code` the
//   builder's result, `verify` the checks of instructions and kernels, `emit` the text, `module` several kernels in
//   one text, `kernels/` the kernels.
// - `interp/` interprets text and does not use the builder: `parse` and `decode` read the text, `block` runs threads,
//   `warp` and `wgmma` run instructions of a warp and of four warps, `shared` detects races by vector clocks, `copies`
//   has asynchronous copies and their barriers, `cluster` the shared memory and barriers of a cluster.

#![forbid(unsafe_code)]

mod build;
mod code;
mod emit;
mod error;
mod inst;
pub mod interp;
mod kernel;
pub mod kernels;
mod module;
mod text;
mod types;
mod verify;

pub use build::Builder;
pub use error::{Error, Place, Result};
pub use inst::{Op, Operand, Reg, Special};
pub use kernel::{Extent, Launch, LaunchArgument, Param, ParamType, PtxKernel, Sizes, TensorBox};
pub use kernels::{
    AttentionKernel, GemmKernel, Kernel, LayerNormKernel, QuantizeKernel, SoftmaxKernel,
};
pub use module::PtxModule;
pub use relampago_coefficients::half;
pub use types::{PtxType, Target, Version};
