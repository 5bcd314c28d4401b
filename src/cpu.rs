//! The SIMD back-end: runs plans and the steps of language models on the kernels of `simd/`.
//!
//! The files:
//!
//! - `execute` runs a plan, `chain` runs elementwise operations block by block (in WebAssembly also as compiled code),
//!   `packed_weights` packs the matrices of programs, `plan_state` keeps memory between runs.
//! - `steps` runs steps of language models.

pub(crate) mod chain;
mod custom;
mod execute;
mod packed_weights;
mod plan_state;
#[cfg(feature = "llm-core")]
mod steps;

pub(crate) use plan_state::PlanState;
#[cfg(feature = "llm-core")]
pub(crate) use steps::{CpuWeights, SharedBlocks, read, write};
