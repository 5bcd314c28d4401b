//! The SIMD back-end: runs plans on the kernels of `simd/`.

pub(crate) mod chain;
pub(crate) mod execute;
pub(crate) mod packed_weights;
