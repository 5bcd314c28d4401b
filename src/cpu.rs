//! The SIMD back-end: runs plans on the kernels of `simd/`.
//!
//! The files:
//!
//! - `execute` runs a plan, `chain` runs elementwise operations block by block (in WebAssembly also as compiled code),
//!   `packed_weights` packs the matrices of programs, `plan_state` keeps memory between runs.

pub(crate) mod chain;
mod custom;
mod execute;
mod packed_weights;
mod plan_state;

pub(crate) use plan_state::PlanState;
