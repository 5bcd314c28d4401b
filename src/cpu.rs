//! The SIMD back-end: runs plans on the kernels of `simd/`.

pub(crate) mod chain;
mod custom;
mod execute;
mod packed_weights;
mod plan_state;

pub(crate) use plan_state::PlanState;
