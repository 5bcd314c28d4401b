//! Custom operations in a batch, and `add`, a short name of `vec_add`.

use crate::batch::{BufferId, GpuCommandBatch};
use crate::error::{Error, Result};
use crate::ops::custom::CustomOp;
use crate::ops::reduce_op::{ReduceOp, TILE_SIZE};
use crate::ops::shape::check_matrix;
use crate::ops::{Backend, CustomReduction, Op, Reduction};

/// Custom operations.
impl GpuCommandBatch {
    /// Records the sums of the elements of `a` and `b`: another name of [`vec_add`](Self::vec_add).
    #[track_caller]
    pub fn add(&mut self, a: BufferId, b: BufferId) -> BufferId {
        self.record(Op::VecAdd, &[a, b])
    }

    /// Records a custom elementwise operation, on inputs of equal length.
    #[track_caller]
    pub fn custom_elementwise(
        &mut self,
        op: &CustomOp,
        inputs: &[BufferId],
        parameters: &[f32],
    ) -> BufferId {
        self.record_made(op.with(parameters), inputs)
    }

    /// Records a custom reduction of a row-major `rows × cols` matrix to a buffer of one element, tile by tile: see
    /// [`tiled_reduce_2d`](crate::tiled_reduce_2d). Without elements it is the identity.
    ///
    /// A batch of a device that runs on a GPU refuses a reduction without WGSL: `InvalidArgument`.
    ///
    /// ```
    /// # #[cfg(not(target_arch = "wasm32"))] {
    /// use relampago::{GpuCommandBatch, GpuDevice, MaxOp};
    ///
    /// let mut batch = GpuCommandBatch::new(GpuDevice::new()?);
    /// let x = batch.upload(&[1.0, 5.0, 2.0, 4.0, 3.0, 0.0]);
    /// let doubled = batch.scale(x, 2.0);
    /// let largest = batch.tiled_reduce_2d::<MaxOp>(doubled, 2, 3);
    /// batch.execute_sync()?;
    /// assert_eq!(batch.read_sync(largest)?, [10.0]);
    /// # }
    /// # Ok::<(), relampago::Error>(())
    /// ```
    #[track_caller]
    pub fn tiled_reduce_2d<O: ReduceOp>(
        &mut self,
        data: BufferId,
        rows: usize,
        cols: usize,
    ) -> BufferId {
        let id = self.try_tiled_reduce_2d::<O>(data, [rows, cols]);
        self.keep_error(id)
    }

    /// Records a custom reduction of each [`TILE_SIZE`]² tile of a row-major `rows × cols` matrix to one element, row by
    /// row: see [`tiled_reduce_partial`](crate::tiled_reduce_partial). A reduction without WGSL is refused as by
    /// [`tiled_reduce_2d`](Self::tiled_reduce_2d).
    #[track_caller]
    pub fn tiled_reduce_partial<O: ReduceOp>(
        &mut self,
        data: BufferId,
        rows: usize,
        cols: usize,
    ) -> BufferId {
        let tiles = |reduction: Reduction| reduction.tiles([rows, cols], [TILE_SIZE; 2]);
        let op = Reduction::of::<O>().map(tiles);
        let id = op.and_then(|op| self.try_custom_reduce(op, data));
        self.keep_error(id)
    }

    fn try_tiled_reduce_2d<O: ReduceOp>(
        &mut self,
        data: BufferId,
        [rows, cols]: [usize; 2],
    ) -> Result<BufferId> {
        let reduction = Reduction::of::<O>()?;
        let lens = self.lens(&[self.index("data", data)?]);
        check_matrix("data", [rows, cols], lens[0], " (rows × cols)")?;
        if lens[0] == 0 {
            return self.try_upload(&[reduction.identity]);
        }
        let mut tiles = reduction.tiles([rows, cols], [TILE_SIZE; 2]);
        let mut id = self.try_custom_reduce(tiles, data)?;
        while tiles.tile_count() != [1, 1] {
            tiles = tiles.again();
            id = self.try_custom_reduce(tiles, id)?;
        }
        Ok(id)
    }

    /// Records one level of a custom reduction.
    ///
    /// # Errors
    /// `InvalidArgument` if the batch runs on a GPU and the reduction has no WGSL, `Wgsl` if that is invalid.
    pub(crate) fn try_custom_reduce(
        &mut self,
        op: CustomReduction,
        data: BufferId,
    ) -> Result<BufferId> {
        if self.device.backend() == Backend::Gpu {
            let Some(text) = op.wgsl() else {
                let value = "None for `combine` or for `MAP`";
                let requirement = "WGSL on a device that runs on a GPU";
                return Err(Error::invalid("wgsl", value, requirement));
            };
            #[cfg(feature = "gpu")]
            crate::ops::custom::reduction(text)?;
            #[cfg(not(feature = "gpu"))]
            let _ = text;
        }
        self.try_record(Op::CustomReduce(op), &[data])
    }
}
