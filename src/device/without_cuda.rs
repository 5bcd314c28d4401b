//! Stub of the CUDA back-end for builds without the feature `cuda`.

use crate::error::Result;
use crate::ops::Op;

/// An uninhabited type: code that uses a value of it never runs.
pub(super) enum CudaBackend {}

impl CudaBackend {
    pub(super) fn name(&self) -> &str {
        match *self {}
    }

    pub(super) fn run(&self, _: &Op, _: &[&[f32]], _: &mut [f32]) -> Result<bool> {
        match *self {}
    }
}
