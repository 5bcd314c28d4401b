//! Choice of the convolution kernel.

#[cfg(not(target_arch = "wasm32"))]
mod near;

#[cfg(not(target_arch = "wasm32"))]
pub(super) use near::candidates;

use super::kernels;
use super::recorder::{GpuBuffer, Recorder};
#[cfg(not(target_arch = "wasm32"))]
use super::tune::Key;
use crate::error::Result;
use crate::ops::Conv2d;

/// Records the dispatch of a convolution that has a result.
pub(super) fn convolve2d(
    recorder: &mut Recorder<'_>,
    inputs: &[GpuBuffer],
    output: &GpuBuffer,
    conv: &Conv2d,
) -> Result<()> {
    #[cfg(not(target_arch = "wasm32"))]
    if near::suits(recorder.gpu, inputs[1].len(), conv)
        && recorder.fastest(Key::convolve2d(conv)).as_deref() != Some(kernels::CONVOLVE2D.name)
    {
        return near::record(recorder, inputs, output, conv);
    }
    let what = "the rounds of a convolution's loops on llvmpipe";
    recorder.gpu.check_on_llvmpipe(what, rounds(conv), 64_000)?;
    any(recorder, inputs, output, conv)
}

/// The largest number of columns of kernels whose rows are added up as a whole (`convolve2d.wgsl`).
const SHORT: usize = 64;

/// Returns the number of loop rounds of the kernel for any stride, accurate to one in a hundred.
fn rounds(conv: &Conv2d) -> usize {
    let cols = conv.kernel_cols;
    let step = conv.stride_cols.min(cols);
    let of_row = if cols <= SHORT {
        cols + 2 * step + 3
    } else {
        cols + cols / 16 + 5 * step + 6
    };
    conv.kernel_rows.saturating_mul(of_row)
}

/// Records a convolution by the kernel for any stride and size.
fn any(
    recorder: &mut Recorder<'_>,
    inputs: &[GpuBuffer],
    output: &GpuBuffer,
    conv: &Conv2d,
) -> Result<()> {
    /// The side of an invocation's tile.
    const SIDE: usize = 4;
    /// The number of tiles of a workgroup.
    const TILES: usize = 64;
    let (output_rows, output_cols) = conv.output_shape();
    let (top, left) = conv.padding_before();
    let dims = [
        conv.input_rows,
        conv.input_cols,
        conv.kernel_rows,
        conv.kernel_cols,
        output_rows,
        output_cols,
        conv.stride_rows,
        conv.stride_cols,
        top,
        left,
    ];
    // Only a stride can be larger than a buffer is long; it then moves past every input alike.
    let params = dims.map(|dim| u32::try_from(dim).unwrap_or(u32::MAX));
    let inputs = [&inputs[0], &inputs[1]];
    let tiles = output_rows.div_ceil(SIDE) * output_cols.div_ceil(SIDE);
    let workgroups = tiles.div_ceil(TILES);
    recorder.dispatch(&kernels::CONVOLVE2D, &params, &inputs, output, workgroups)
}
