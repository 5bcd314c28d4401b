//! One compute API that is always fast.

pub mod error;
pub mod ops;
pub mod shape;
