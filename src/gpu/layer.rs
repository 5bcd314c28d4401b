//! Convolutions of images with many channels.

use super::kernels;
use super::recorder::{GpuBuffer, Recorder};
use crate::error::Result;
use crate::ops::ConvLayer;

/// Invocations of a workgroup, and the filters and places of the result that each computes.
const WORKGROUP: usize = 64;
const FILTERS: usize = 4;
const PLACES: usize = 4;

/// Records the dispatch of a layer whose result has some values.
pub(super) fn convolve_layer(
    recorder: &mut Recorder<'_>,
    inputs: &[GpuBuffer],
    output: &GpuBuffer,
    layer: &ConvLayer,
) -> Result<()> {
    // Each product is a round of a loop.
    #[cfg(not(target_arch = "wasm32"))]
    recorder.gpu.check_on_llvmpipe(
        "the weights of a filter on llvmpipe",
        layer.depth(),
        1 << 15,
    )?;
    let image = &layer.image;
    let (rows, cols) = layer.output_shape();
    let (top, left) = layer.padding_before();
    let [channels, filters] = layer.of_group();
    let dims = [
        image.input_rows,
        image.input_cols,
        image.kernel_rows,
        image.kernel_cols,
        rows,
        cols,
        image.stride_rows,
        image.stride_cols,
        layer.dilation_rows,
        layer.dilation_cols,
        top,
        left,
        layer.batch,
        layer.groups,
        channels,
        filters,
    ];
    // Only strides and dilations can be larger than what is told by a buffer's places; they then move past every
    // input alike, or are those of a single weight.
    let params = dims.map(|dim| u32::try_from(dim).unwrap_or(u32::MAX));
    let tiles = (rows * cols).div_ceil(PLACES) * filters.div_ceil(FILTERS);
    let workgroups = (tiles * layer.batch * layer.groups).div_ceil(WORKGROUP);
    let inputs = [&inputs[0], &inputs[1]];
    let kernel = &kernels::CONVOLVE_LAYER;
    recorder.dispatch(kernel, &params, &inputs, output, workgroups)
}
