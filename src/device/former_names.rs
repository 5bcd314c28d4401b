//! Names that programs written for trueno use, kept until they have moved: see docs/guide/migrating.md.

use super::GpuDevice;
use crate::error::Result;

/// The device under trueno's name.
#[deprecated(note = "use `GpuDevice`; `device.run(&op, &inputs)` returns a `Vec`")]
pub type GpuBackend = GpuDevice;

/// Reductions under trueno's names.
impl GpuDevice {
    /// Returns the sum of a row-major matrix of `height` rows and `width` columns.
    ///
    /// # Errors
    /// The errors of [`GpuDevice::tiled_sum_2d`].
    #[deprecated(note = "use `tiled_sum_2d(data, rows, cols)`")]
    pub fn tiled_sum_2d_gpu(&self, data: &[f32], width: usize, height: usize) -> Result<f32> {
        self.tiled_sum_2d(data, height, width)
    }

    /// Returns the largest element of a row-major matrix of `height` rows and `width` columns.
    ///
    /// # Errors
    /// The errors of [`GpuDevice::tiled_max_2d`].
    #[deprecated(note = "use `tiled_max_2d(data, rows, cols)`")]
    pub fn tiled_max_2d_gpu(&self, data: &[f32], width: usize, height: usize) -> Result<f32> {
        self.tiled_max_2d(data, height, width)
    }

    /// Returns the smallest element of a row-major matrix of `height` rows and `width` columns.
    ///
    /// # Errors
    /// The errors of [`GpuDevice::tiled_min_2d`].
    #[deprecated(note = "use `tiled_min_2d(data, rows, cols)`")]
    pub fn tiled_min_2d_gpu(&self, data: &[f32], width: usize, height: usize) -> Result<f32> {
        self.tiled_min_2d(data, height, width)
    }
}
