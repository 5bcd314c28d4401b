//! Tiled reductions by a function that is given as WGSL.

use std::sync::Arc;

use super::context::Gpu;
use super::pipelines::{Composed, Proof};
use super::recorder::{GpuBuffer, Recorder};
use super::{copy_first, kernels};
use crate::alloc::try_zeros;
use crate::error::Result;
use crate::ops::custom::combine;
use crate::ops::reduce_op::TILE_SIZE;
use crate::simd::Fold;

/// A reduction: the function `combine` with all functions that it calls, and the identity.
struct TileFold {
    combine: String,
    identity: f32,
}

impl TileFold {
    /// Returns the reduction that an operation's WGSL expression describes.
    ///
    /// # Errors
    /// `Wgsl` if the expression is invalid or there is none.
    fn new(fold: &Fold) -> Result<Self> {
        Ok(Self {
            combine: combine(fold.wgsl.unwrap_or_default())?,
            identity: fold.identity,
        })
    }

    fn kernel(&self, gpu: &Gpu) -> Composed {
        let group = format!("const GROUP = {}u;\n", gpu.adapter().group());
        Composed {
            name: "fold_tiles",
            source: [kernels::LIBRARY, &group, &self.combine, kernels::FOLD_TILES]
                .concat()
                .into(),
            proof: Proof::Nothing,
        }
    }
}

impl Gpu {
    /// A value for each tile of a row-major matrix that has at least one value, row by row.
    ///
    /// # Errors
    /// `Wgsl` if the operation's expression is invalid, and device errors.
    pub(crate) async fn fold_tiles(
        self: &Arc<Self>,
        fold: &Fold,
        data: &[f32],
        shape: [usize; 2],
    ) -> Result<Vec<f32>> {
        let fold = TileFold::new(fold)?;
        let (len, reading) = {
            let mut recorder = Recorder::new(self)?;
            let x = recorder.upload(data)?;
            let y = recorder.fold_tiles(&fold.kernel(self), fold.identity, &x, shape)?;
            (y.len(), recorder.submit(&[y])?)
        };
        let mut values = try_zeros(len)?;
        copy_first(&reading.finished().await?, &mut values)?;
        Ok(values)
    }

    /// Reduces a matrix that is not empty to one value: tiles of the results of tiles, in one
    /// submission.
    pub(crate) async fn fold_all_tiles(
        self: &Arc<Self>,
        fold: &Fold,
        data: &[f32],
        mut shape: [usize; 2],
    ) -> Result<f32> {
        let fold = TileFold::new(fold)?;
        let reading = {
            let mut recorder = Recorder::new(self)?;
            let kernel = fold.kernel(self);
            let mut x = recorder.upload(data)?;
            loop {
                x = recorder.fold_tiles(&kernel, fold.identity, &x, shape)?;
                if x.len() == 1 {
                    break;
                }
                shape = shape.map(|len| len.div_ceil(TILE_SIZE));
            }
            recorder.submit(&[x])?
        };
        let mut value = [0.0];
        copy_first(&reading.finished().await?, &mut value)?;
        Ok(value[0])
    }
}

impl Recorder<'_> {
    fn fold_tiles(
        &mut self,
        kernel: &Composed,
        identity: f32,
        x: &GpuBuffer,
        [rows, cols]: [usize; 2],
    ) -> Result<GpuBuffer> {
        let across = cols.div_ceil(TILE_SIZE);
        let tiles = across * rows.div_ceil(TILE_SIZE);
        let y = self.allocate(tiles)?;
        let dims = [rows, cols, across].map(|dim| dim as u32);
        let params = [dims[0], dims[1], dims[2], identity.to_bits()];
        self.dispatch_composed(kernel, &params, &[x], &[&y], tiles)?;
        Ok(y)
    }
}
