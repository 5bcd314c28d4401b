//! Blocking methods under their former names, which ended in `_sync`.

use crate::device::buffer::DeviceBuffer;
use crate::error::Result;
use crate::lazy::tensor::Tensor;
use crate::lazy::tensors::Tensors;

/// Former names.
impl Tensor {
    /// The former name of [`Tensor::read`].
    #[deprecated(note = "use `read`")]
    pub fn read_sync(&self) -> Result<Vec<f32>> {
        self.read()
    }

    /// The former name of [`Tensor::item`].
    #[deprecated(note = "use `item`")]
    pub fn item_sync(&self) -> Result<f32> {
        self.item()
    }

    /// The former name of [`Tensor::to_bytes`].
    #[deprecated(note = "use `to_bytes`")]
    pub fn to_bytes_sync(&self) -> Result<Vec<u8>> {
        self.to_bytes()
    }

    /// The former name of [`Tensor::run`].
    #[deprecated(note = "use `run`")]
    pub fn run_sync(&self) -> Result<Self> {
        self.run()
    }

    /// The former name of [`Tensor::to_buffer`].
    #[deprecated(note = "use `to_buffer`")]
    pub fn to_buffer_sync(&self) -> Result<DeviceBuffer> {
        self.to_buffer()
    }
}

/// Former names.
impl Tensors {
    /// The former name of [`Tensors::read`].
    #[deprecated(note = "use `read`")]
    pub fn read_sync(&self, tensors: &[&Tensor]) -> Result<Vec<Vec<f32>>> {
        self.read(tensors)
    }

    /// The former name of [`Tensors::run`].
    #[deprecated(note = "use `run`")]
    pub fn run_sync(&self, tensors: &[&Tensor]) -> Result<()> {
        self.run(tensors)
    }
}
