//! JavaScript's arrays on each back-end.

use std::sync::Arc;

use js_sys::Float32Array;

use super::{Executor, Running, Storage, foreign};
use crate::alloc::js_array;
use crate::error::Result;
use crate::ops::Op;

impl Executor {
    /// Copies an array to the back-end's memory. It is read now; the run reports errors.
    pub(crate) fn upload_array(&self, array: &Float32Array) -> Result<(Storage, Running)> {
        match self {
            Self::Gpu(gpu) => {
                let (buffer, writing) = gpu.upload_array(array)?;
                Ok((Storage::Gpu(buffer), Running(Some(writing))))
            }
            Self::Cpu(_) | Self::Cuda(_) => {
                let values = js_array::values(array)?;
                Ok((Storage::Host(Arc::new(values)), Running(None)))
            }
        }
    }

    /// Copies values from the back-end's memory.
    pub(crate) async fn read_array(&self, storage: &Storage) -> Result<Float32Array> {
        match (storage, self) {
            (Storage::Host(values), _) => js_array::of(values),
            (Storage::Gpu(buffer), Self::Gpu(gpu)) => gpu.read_array(buffer).await,
            (Storage::Gpu(_) | Storage::Cuda(_), _) => Err(foreign()),
        }
    }

    /// Runs an operation that gives `len` values on a GPU. The inputs are read now.
    ///
    /// # Errors
    /// `Foreign` on another back-end, and device errors.
    pub(crate) fn run_arrays(
        &self,
        op: &Op,
        inputs: &[Float32Array],
        len: usize,
    ) -> Result<impl Future<Output = Result<Float32Array>> + use<>> {
        match self {
            Self::Gpu(gpu) => gpu.run_arrays(op, inputs, len),
            Self::Cpu(_) | Self::Cuda(_) => Err(foreign()),
        }
    }

    /// Serialises the kernels that measurements have chosen; empty without a GPU.
    pub(crate) fn choices(&self) -> Vec<u8> {
        match self {
            Self::Gpu(gpu) => gpu.choices(),
            Self::Cpu(_) | Self::Cuda(_) => Vec::new(),
        }
    }

    /// Loads serialised choices, unless they are damaged.
    pub(crate) fn adopt_choices(&self, choices: &[u8]) {
        if let Self::Gpu(gpu) = self {
            gpu.adopt_choices(choices);
        }
    }
}
