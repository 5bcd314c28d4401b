//! The CUDA back-end of a build without the feature `cuda`: it has no value, so no code that uses one runs.

use crate::error::Result;
use crate::graph::{Binding, Plan, Repeat};
use crate::ops::Op;

/// An uninhabited type: code that uses a value of it never runs.
pub(crate) enum CudaBackend {}

/// Elements in an NVIDIA GPU's memory.
#[derive(Clone)]
pub(crate) enum CudaValues {}

impl CudaValues {
    pub(crate) fn len(&self) -> usize {
        match *self {}
    }
}

impl CudaBackend {
    pub(crate) fn name(&self) -> &str {
        match *self {}
    }

    pub(crate) fn upload(&self, _: &[f32]) -> Result<CudaValues> {
        match *self {}
    }

    pub(crate) fn read(&self, _: &CudaValues) -> Result<Vec<f32>> {
        match *self {}
    }

    pub(crate) fn run(&self, _: &Op, _: &[&[f32]], _: &mut [f32]) -> Result<()> {
        match *self {}
    }

    pub(crate) fn run_plan(
        &self,
        _: &Plan,
        _: Vec<Binding<'_, CudaValues>>,
        _: Repeat<'_>,
    ) -> Result<Vec<CudaValues>> {
        match *self {}
    }
}
