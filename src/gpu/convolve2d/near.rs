//! Convolutions of stride 1 by kernels that are specialised for the size of the convolution's kernel.
//! WebAssembly has none of them, because of the size of the download.

use crate::error::Result;
use crate::gpu::context::Gpu;
use crate::gpu::kernels::{self, Kernel};
use crate::gpu::recorder::{GpuBuffer, Recorder};
use crate::ops::Conv2d;

/// The largest side of a convolution's kernel for the shader that reads its weights as uniforms.
const SMALL: usize = 8;
/// The largest side of a convolution's kernel for the shader that reads its weights from workgroup memory.
const LARGEST: usize = 16;
/// The number of a workgroup's invocations along the rows.
const DOWN: usize = 4;
/// The number of a workgroup's invocations along the columns; each computes a vector of four columns.
const ACROSS: usize = 32;

/// Returns the kernels that can compute a convolution.
pub(in crate::gpu) fn candidates(gpu: &Gpu, lens: &[usize], conv: &Conv2d) -> Vec<&'static str> {
    let near = suits(gpu, lens[1], conv).then(|| kernel(conv).0.name);
    near.into_iter().chain([kernels::CONVOLVE2D.name]).collect()
}

/// Returns whether a specialised kernel can compute a convolution and is worth compiling.
pub(super) fn suits(gpu: &Gpu, weights: usize, conv: &Conv2d) -> bool {
    let largest = conv.kernel_rows.max(conv.kernel_cols);
    let dense = (conv.stride_rows, conv.stride_cols) == (1, 1);
    // Without a kernel or an input there is no last row to stay below.
    let some = conv.input_rows.min(conv.input_cols) > 0 && weights > 0;
    // Software adapters would compile for longer than most convolutions take.
    let hardware = !gpu.adapter().software;
    hardware && dense && some && largest <= LARGEST
}

/// Returns the kernel that is specialised for the size of `conv`, and the number of rows that an invocation computes.
fn kernel(conv: &Conv2d) -> (&'static Kernel, usize) {
    let small = conv.kernel_rows.max(conv.kernel_cols) <= SMALL;
    let whole = |cols: usize| cols.is_multiple_of(4);
    match (
        small,
        whole(conv.input_cols) && whole(conv.output_shape().1),
    ) {
        (true, true) => (&kernels::CONVOLVE2D_SMALL, 6),
        (true, false) => (&kernels::CONVOLVE2D_SMALL_ANY, 6),
        (false, true) => (&kernels::CONVOLVE2D_NEAR, 4),
        (false, false) => (&kernels::CONVOLVE2D_NEAR_ANY, 4),
    }
}

/// Records a convolution by the kernel specialised for its size.
pub(super) fn record(
    recorder: &mut Recorder<'_>,
    inputs: &[GpuBuffer],
    output: &GpuBuffer,
    conv: &Conv2d,
) -> Result<()> {
    let (output_rows, output_cols) = conv.output_shape();
    let (top, left) = conv.padding_before();
    let before = left.div_ceil(4);
    let (kernel, rows) = kernel(conv);
    let across = output_cols.div_ceil(4 * ACROSS);
    let tiles = across * output_rows.div_ceil(DOWN * rows);
    let params = [
        conv.input_rows,
        conv.input_cols,
        output_rows,
        output_cols,
        top,
        before,
        across,
    ];
    let constants = vec![
        ("KERNEL_ROWS", conv.kernel_rows as u32),
        ("KERNEL_COLS", conv.kernel_cols as u32),
        ("SKIPPED", (4 * before - left) as u32),
    ];
    let params = params.map(|dim| dim as u32);
    let inputs = [&inputs[0], &inputs[1]];
    recorder.dispatch_specialised(kernel, constants, &params, &inputs, output, tiles)
}
