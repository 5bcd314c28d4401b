//! Tiled reductions as methods of the device.

use crate::device::GpuDevice;
use crate::device::executor::Executor;
use crate::error::Result;
use crate::ops::Op;
use crate::ops::reduce_op::{MaxOp, MinOp, Partials, ReduceOp, SumOp, TILE_SIZE};
use crate::ops::shape::check_matrix;
use crate::simd::{Cpu, Fold, InstructionSet};
use crate::tensor::{BoundView, PartitionView, TensorView};

/// Reductions of row-major `rows × cols` matrices by tiles of [`TILE_SIZE`]². They run on the GPU
/// if the operation has a WGSL expression and the policy sends reductions there. Partial results
/// may differ between back-ends because the order of combination differs.
impl GpuDevice {
    /// Reduces each tile to one value: see [`crate::tiled_reduce_partial`].
    ///
    /// # Errors
    /// The errors of [`crate::tiled_reduce_partial`]; `Wgsl` if the operation's expression is invalid
    /// (`Gpu` in a browser), and device errors.
    pub async fn tiled_reduce_partial_async<O: ReduceOp>(
        &self,
        data: &[f32],
        rows: usize,
        cols: usize,
    ) -> Result<Partials> {
        self.fold_tiles(Fold::of::<O>()?, data, rows, cols).await
    }

    /// Reduces all elements to one value: see [`crate::tiled_reduce_2d`].
    ///
    /// # Errors
    /// The errors of [`GpuDevice::tiled_reduce_partial_async`].
    pub async fn tiled_reduce_2d_async<O: ReduceOp>(
        &self,
        data: &[f32],
        rows: usize,
        cols: usize,
    ) -> Result<f32> {
        self.fold_all(Fold::of::<O>()?, data, rows, cols).await
    }

    /// Reduces each tile to one value.
    pub(crate) async fn fold_tiles(
        &self,
        fold: Fold,
        data: &[f32],
        rows: usize,
        cols: usize,
    ) -> Result<Partials> {
        let matrix = view_of(data, rows, cols)?;
        let tiles = PartitionView::new_2d(matrix, TILE_SIZE, TILE_SIZE)?;
        let executor = self.executor_to_fold(&fold, data)?;
        executor
            .fold_tiles(&fold, self.cpu(), &tiles, data, [rows, cols])
            .await
    }

    /// Reduces all elements to one value.
    pub(crate) async fn fold_all(
        &self,
        fold: Fold,
        data: &[f32],
        rows: usize,
        cols: usize,
    ) -> Result<f32> {
        let matrix = view_of(data, rows, cols)?.bind(data)?;
        let executor = self.executor_to_fold(&fold, data)?;
        executor
            .fold_all(&fold, self.cpu(), &matrix, [rows, cols])
            .await
    }

    /// Returns the back-end that should run the reduction.
    fn executor_to_fold(&self, fold: &Fold, data: &[f32]) -> Result<Executor> {
        self.check()?;
        Ok(if fold.wgsl.is_some() && !data.is_empty() {
            self.executor_for(&Op::Sum, &[data.len()])
        } else {
            Executor::Cpu(self.cpu())
        })
    }
}

/// Blocking versions.
#[cfg(not(target_arch = "wasm32"))]
impl GpuDevice {
    /// Blocking version of [`GpuDevice::tiled_reduce_partial_async`].
    pub fn tiled_reduce_partial<O: ReduceOp>(
        &self,
        data: &[f32],
        rows: usize,
        cols: usize,
    ) -> Result<Partials> {
        crate::runtime::block_on(self.tiled_reduce_partial_async::<O>(data, rows, cols))
    }

    /// Blocking version of [`GpuDevice::tiled_reduce_2d_async`].
    pub fn tiled_reduce_2d<O: ReduceOp>(
        &self,
        data: &[f32],
        rows: usize,
        cols: usize,
    ) -> Result<f32> {
        crate::runtime::block_on(self.tiled_reduce_2d_async::<O>(data, rows, cols))
    }
}

/// The named reductions, async and blocking.
macro_rules! named {
    ($($(#[doc = $doc:literal])+ $name:ident $name_async:ident $op:ident;)*) => {
        /// Tiled reductions by name.
        impl GpuDevice {
            $(
                $(#[doc = $doc])+
                pub async fn $name_async(&self, data: &[f32], rows: usize, cols: usize) -> Result<f32> {
                    self.tiled_reduce_2d_async::<$op>(data, rows, cols).await
                }

                #[doc = concat!("Blocking version of [`GpuDevice::", stringify!($name_async), "`].")]
                #[cfg(not(target_arch = "wasm32"))]
                pub fn $name(&self, data: &[f32], rows: usize, cols: usize) -> Result<f32> {
                    self.tiled_reduce_2d::<$op>(data, rows, cols)
                }
            )*
        }
    };
}

named! {
    /// Computes the sum of a matrix: see [`SumOp`].
    tiled_sum_2d tiled_sum_2d_async SumOp;
    /// Computes the maximum of a matrix: see [`MaxOp`].
    tiled_max_2d tiled_max_2d_async MaxOp;
    /// Computes the minimum of a matrix: see [`MinOp`].
    tiled_min_2d tiled_min_2d_async MinOp;
}

/// Reduces each [`TILE_SIZE`]² tile of a row-major `rows × cols` matrix to one value, on SIMD.
///
/// # Errors
/// `LengthMismatch` if `data` does not have that shape, `InvalidArgument` if the reduction breaks a
/// law of [`ReduceOp`], `ShapeOverflow`, `OutOfMemory`.
pub fn tiled_reduce_partial<O: ReduceOp>(
    data: &[f32],
    rows: usize,
    cols: usize,
) -> Result<Partials> {
    let matrix = view_of(data, rows, cols)?;
    PartitionView::new_2d(matrix, TILE_SIZE, TILE_SIZE)?.reduce::<O>(data)
}

/// Reduces a row-major `rows × cols` matrix to one value, tile by tile, on SIMD. Returns the
/// identity for an empty matrix. Sums are pairwise: their error grows with the logarithm of the
/// length.
///
/// # Errors
/// The errors of [`tiled_reduce_partial`].
pub fn tiled_reduce_2d<O: ReduceOp>(data: &[f32], rows: usize, cols: usize) -> Result<f32> {
    view_of(data, rows, cols)?.bind(data)?.reduce::<O>()
}

/// Computes the sum of a row-major `rows × cols` matrix: see [`tiled_reduce_2d`].
pub fn tiled_sum_2d(data: &[f32], rows: usize, cols: usize) -> Result<f32> {
    tiled_reduce_2d::<SumOp>(data, rows, cols)
}

/// Computes the maximum of a row-major `rows × cols` matrix: see [`tiled_reduce_2d`] and [`MaxOp`].
pub fn tiled_max_2d(data: &[f32], rows: usize, cols: usize) -> Result<f32> {
    tiled_reduce_2d::<MaxOp>(data, rows, cols)
}

/// Computes the minimum of a row-major `rows × cols` matrix: see [`tiled_reduce_2d`] and [`MinOp`].
pub fn tiled_min_2d(data: &[f32], rows: usize, cols: usize) -> Result<f32> {
    tiled_reduce_2d::<MinOp>(data, rows, cols)
}

impl PartitionView {
    /// Reduces each tile of the view to one value, on SIMD, without copying `data`.
    ///
    /// # Errors
    /// `LengthMismatch` if the view reaches beyond `data`, `InvalidArgument` if the reduction breaks
    /// a law of [`ReduceOp`], `OutOfMemory`.
    pub fn reduce<O: ReduceOp>(&self, data: &[f32]) -> Result<Partials> {
        self.fold(&Fold::of::<O>()?, data)
    }

    pub(crate) fn fold(&self, fold: &Fold, data: &[f32]) -> Result<Partials> {
        fold.tiles(every_thread(), &self.tensor().bind(data)?, self)
    }
}

impl BoundView<'_> {
    /// Reduces all elements of the view to one value, on SIMD, without copying them. Returns the
    /// identity for an empty view.
    ///
    /// # Errors
    /// `InvalidArgument` if the reduction breaks a law of [`ReduceOp`], `OutOfMemory` if there is no
    /// memory for the results of tiles.
    pub fn reduce<O: ReduceOp>(&self) -> Result<f32> {
        self.fold(&Fold::of::<O>()?)
    }

    pub(crate) fn fold(&self, fold: &Fold) -> Result<f32> {
        fold_all(fold, every_thread(), self)
    }
}

fn every_thread() -> Cpu {
    Cpu::new(InstructionSet::best(), None)
}

/// Reduces tiles, then tiles of the results, until one value is left.
pub(super) fn fold_all(fold: &Fold, cpu: Cpu, values: &BoundView<'_>) -> Result<f32> {
    let partials = fold.tiles(cpu, values, &tiles_of(*values.view())?)?;
    match partials.values[..] {
        [] => Ok(fold.identity),
        [one] => Ok(one),
        _ => {
            let view = TensorView::new(partials.tile_count)?;
            fold_all(&fold.of_results(), cpu, &view.bind(&partials.values)?)
        }
    }
}

/// Cuts a view along its last dimensions into tiles of [`TILE_SIZE`]² elements.
fn tiles_of(view: TensorView) -> Result<PartitionView> {
    let shape = view.shape();
    let mut long = (0..shape.len()).rev().filter(|&dim| shape[dim] > 1);
    let mut tile = [1; 4];
    match (long.next(), long.next()) {
        (Some(last), Some(before)) => (tile[last], tile[before]) = (TILE_SIZE, TILE_SIZE),
        (Some(only), None) => tile[only] = TILE_SIZE * TILE_SIZE,
        _ => {}
    }
    PartitionView::new(view, tile)
}

fn view_of(data: &[f32], rows: usize, cols: usize) -> Result<TensorView> {
    check_matrix("data", [rows, cols], data.len(), " (rows × cols)")?;
    TensorView::new_2d(rows, cols)
}
