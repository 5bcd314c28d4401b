//! Tiled reductions as methods of the device.

use super::{MaxOp, MinOp, Partials, ReduceOp, SumOp, TILE_SIZE, check_matrix, fold_all};
use crate::device::GpuDevice;
use crate::error::Result;
use crate::gpu::{Gpu, TileFold};
use crate::ops::Op;
use crate::simd;
use crate::views::PartitionView;
use std::sync::Arc;

/// Reductions of row-major `rows × cols` matrices by tiles of [`TILE_SIZE`]². They go to the GPU
/// where the operation has a WGSL expression and the policy prefers it for reductions; partial
/// results may differ between back-ends by the order of combination.
impl GpuDevice {
    /// Folds each tile: see [`crate::tiled_reduce_partial`].
    ///
    /// # Errors
    /// As there; `Wgsl` where the operation's expression is refused (`Gpu` by a browser), and what
    /// else the device says.
    pub async fn tiled_reduce_partial_async<O: ReduceOp>(
        &self,
        data: &[f32],
        rows: usize,
        cols: usize,
    ) -> Result<Partials> {
        let matrix = check_matrix(data, rows, cols)?;
        let tiles = PartitionView::new_2d(matrix, TILE_SIZE, TILE_SIZE)?;
        match self.gpu_to_fold::<O>(data)? {
            Some((gpu, fold)) => Ok(Partials {
                values: gpu.fold_tiles(&fold, data, [rows, cols]).await?,
                tile_count: tiles.tile_count(),
            }),
            None => simd::fold_tiles::<O>(self.cpu(), &matrix.bind(data)?, &tiles),
        }
    }

    /// Folds all values to one: see [`crate::tiled_reduce_2d`].
    ///
    /// # Errors
    /// As [`GpuDevice::tiled_reduce_partial_async`].
    pub async fn tiled_reduce_2d_async<O: ReduceOp>(
        &self,
        data: &[f32],
        rows: usize,
        cols: usize,
    ) -> Result<f32> {
        let matrix = check_matrix(data, rows, cols)?;
        match self.gpu_to_fold::<O>(data)? {
            Some((gpu, fold)) => gpu.fold_all_tiles(&fold, data, [rows, cols]).await,
            None => fold_all::<O>(self.cpu(), &matrix.bind(data)?),
        }
    }

    /// Waits for [`GpuDevice::tiled_reduce_partial_async`].
    #[cfg(not(target_arch = "wasm32"))]
    pub fn tiled_reduce_partial<O: ReduceOp>(
        &self,
        data: &[f32],
        rows: usize,
        cols: usize,
    ) -> Result<Partials> {
        crate::runtime::block_on(self.tiled_reduce_partial_async::<O>(data, rows, cols))
    }

    /// Waits for [`GpuDevice::tiled_reduce_2d_async`].
    #[cfg(not(target_arch = "wasm32"))]
    pub fn tiled_reduce_2d<O: ReduceOp>(
        &self,
        data: &[f32],
        rows: usize,
        cols: usize,
    ) -> Result<f32> {
        crate::runtime::block_on(self.tiled_reduce_2d_async::<O>(data, rows, cols))
    }

    /// The GPU that should run the reduction, and what it is there; `None` of no values.
    fn gpu_to_fold<O: ReduceOp>(&self, data: &[f32]) -> Result<Option<(&Arc<Gpu>, TileFold)>> {
        self.check()?;
        let gpu = O::wgsl().zip(self.gpu_for(&Op::Sum {}, &[data.len()]));
        match gpu.filter(|_| !data.is_empty()) {
            // The small edition has no tiled reductions.
            #[cfg(all(feature = "gpu", not(relampago_small)))]
            Some((expression, gpu)) => {
                let combine = crate::custom::combine(expression)?;
                let identity = O::identity();
                Ok(Some((gpu, TileFold { combine, identity })))
            }
            _ => Ok(None),
        }
    }
}

/// The named reductions, asynchronous and waited for.
macro_rules! named {
    ($($(#[doc = $doc:literal])+ $name:ident $name_async:ident $op:ident;)*) => {
        /// Tiled reductions by name.
        impl GpuDevice {
            $(
                $(#[doc = $doc])+
                pub async fn $name_async(&self, data: &[f32], rows: usize, cols: usize) -> Result<f32> {
                    self.tiled_reduce_2d_async::<$op>(data, rows, cols).await
                }

                #[doc = concat!("Waits for [`GpuDevice::", stringify!($name_async), "`].")]
                #[cfg(not(target_arch = "wasm32"))]
                pub fn $name(&self, data: &[f32], rows: usize, cols: usize) -> Result<f32> {
                    self.tiled_reduce_2d::<$op>(data, rows, cols)
                }
            )*
        }
    };
}

named! {
    /// The sum of a matrix: see [`SumOp`].
    tiled_sum_2d tiled_sum_2d_async SumOp;
    /// The largest value of a matrix: see [`MaxOp`].
    tiled_max_2d tiled_max_2d_async MaxOp;
    /// The smallest value of a matrix: see [`MinOp`].
    tiled_min_2d tiled_min_2d_async MinOp;
}
