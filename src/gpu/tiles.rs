//! Tiled reductions by a function that is given as WGSL.

use std::sync::Arc;

use super::context::Gpu;
use super::pipelines::{Composed, Proof};
use super::recorder::{GpuBuffer, Recorder};
use super::{copy_first, kernels};
use crate::alloc::try_zeros;
use crate::error::{Error, Result};
use crate::ops::CustomReduction;
use crate::ops::custom::reduction;
use crate::ops::reduce_op::{ReductionText, TILE_SIZE};
use crate::simd::Fold;

/// A reduction: its functions with all that they call, and the identity.
struct TileFold {
    functions: String,
    identity: f32,
}

impl TileFold {
    /// Returns the reduction that an operation's WGSL describes.
    ///
    /// # Errors
    /// `Wgsl` if the text is invalid or there is none.
    fn new(wgsl: Option<ReductionText>, identity: f32) -> Result<Self> {
        let (name, message) = ("ReduceOp::wgsl", "it is `None`".to_owned());
        let text = wgsl.ok_or(Error::Wgsl { name, message })?;
        let functions = reduction(text)?;
        Ok(Self {
            functions,
            identity,
        })
    }

    fn kernel(&self, gpu: &Gpu) -> Composed {
        let group = format!("const GROUP = {}u;\n", gpu.adapter().group());
        Composed {
            name: "fold_tiles",
            source: [
                kernels::LIBRARY,
                &group,
                &self.functions,
                kernels::FOLD_TILES,
            ]
            .concat()
            .into(),
            proof: Proof::Nothing,
        }
    }
}

/// Records the reduction of each tile of a matrix that has at least one element.
pub(super) fn custom_reduce(
    recorder: &mut Recorder<'_>,
    call: &CustomReduction,
    x: &GpuBuffer,
    output: &GpuBuffer,
) -> Result<()> {
    let fold = TileFold::new(call.wgsl(), call.identity())?;
    recorder.fold_tiles(&fold, x, call.shape(), call.tile(), output)
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
        let fold = TileFold::new(fold.wgsl, fold.identity)?;
        let (len, reading) = {
            let mut recorder = Recorder::new(self)?;
            let x = recorder.upload(data)?;
            let y = recorder.fold_square_tiles(&fold, &x, shape)?;
            (y.len(), recorder.submit(&[y])?)
        };
        let mut values = try_zeros(len)?;
        copy_first(&reading.finished().await?, &mut values)?;
        Ok(values)
    }

    /// Reduces a matrix that is not empty to one value, in one submission: first its tiles, then tiles of their
    /// results, and so on.
    pub(crate) async fn fold_all_tiles(
        self: &Arc<Self>,
        fold: &Fold,
        data: &[f32],
        mut shape: [usize; 2],
    ) -> Result<f32> {
        let of_results = fold.wgsl.map(ReductionText::of_results);
        let mut tiles = TileFold::new(fold.wgsl, fold.identity)?;
        let reading = {
            let mut recorder = Recorder::new(self)?;
            let mut x = recorder.upload(data)?;
            loop {
                x = recorder.fold_square_tiles(&tiles, &x, shape)?;
                if x.len() == 1 {
                    break;
                }
                shape = shape.map(|len| len.div_ceil(TILE_SIZE));
                tiles = TileFold::new(of_results, fold.identity)?;
            }
            recorder.submit(&[x])?
        };
        let mut value = [0.0];
        copy_first(&reading.finished().await?, &mut value)?;
        Ok(value[0])
    }
}

impl Recorder<'_> {
    /// Records a value for each tile of [`TILE_SIZE`]² elements.
    fn fold_square_tiles(
        &mut self,
        fold: &TileFold,
        x: &GpuBuffer,
        shape: [usize; 2],
    ) -> Result<GpuBuffer> {
        let [down, across] = shape.map(|len| len.div_ceil(TILE_SIZE));
        let y = self.allocate(down * across)?;
        self.fold_tiles(fold, x, shape, [TILE_SIZE; 2], &y)?;
        Ok(y)
    }

    fn fold_tiles(
        &mut self,
        fold: &TileFold,
        x: &GpuBuffer,
        [rows, cols]: [usize; 2],
        [tile_rows, tile_cols]: [usize; 2],
        y: &GpuBuffer,
    ) -> Result<()> {
        let across = cols.div_ceil(tile_cols);
        let tiles = across * rows.div_ceil(tile_rows);
        let sizes = [rows, cols, across, tiles, tile_rows, tile_cols].map(|size| size as u32);
        let params = [&sizes[..], &[fold.identity.to_bits()]].concat();
        let kernel = fold.kernel(self.gpu);
        self.dispatch_composed(&kernel, &params, &[x], &[y], tiles)
    }
}
