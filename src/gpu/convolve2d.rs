//! Choice of the convolution kernel.

#[cfg(not(target_arch = "wasm32"))]
use super::context::Gpu;
use super::kernels;
#[cfg(not(target_arch = "wasm32"))]
use super::kernels::Kernel;
use super::recorder::{GpuBuffer, Recorder};
#[cfg(not(target_arch = "wasm32"))]
use super::tune::Key;
use crate::error::Result;
use crate::ops::Conv2d;

/// Sides of the largest kernels that there are specialised ones for: one whose weights are
/// uniforms, and one that has them in workgroup memory.
#[cfg(not(target_arch = "wasm32"))]
const SMALL: usize = 8;
#[cfg(not(target_arch = "wasm32"))]
const LARGEST: usize = 16;
/// Invocations of a workgroup there, by rows and by vectors of columns.
#[cfg(not(target_arch = "wasm32"))]
const DOWN: usize = 4;
#[cfg(not(target_arch = "wasm32"))]
const ACROSS: usize = 32;

/// Records the dispatch of a convolution that has a result.
pub(super) fn convolve2d(
    recorder: &mut Recorder<'_>,
    inputs: &[GpuBuffer],
    output: &GpuBuffer,
    conv: &Conv2d,
) -> Result<()> {
    #[cfg(not(target_arch = "wasm32"))]
    if suits_near(recorder.gpu, inputs[1].len(), conv)
        && recorder.fastest(Key::convolve2d(conv)).as_deref() != Some(kernels::CONVOLVE2D.name)
    {
        return near(recorder, inputs, output, conv);
    }
    #[cfg(not(target_arch = "wasm32"))]
    {
        let what = "the rounds of a convolution's loops on llvmpipe";
        recorder.gpu.check_on_llvmpipe(what, rounds(conv), 64_000)?;
    }
    any(recorder, inputs, output, conv)
}

/// Columns of kernels whose rows add up as a whole (`convolve2d.wgsl`).
#[cfg(not(target_arch = "wasm32"))]
const SHORT: usize = 64;

/// Returns the number of loop rounds of the kernel for any stride, accurate to one in a hundred.
#[cfg(not(target_arch = "wasm32"))]
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

/// Returns the kernels that can compute a convolution.
#[cfg(not(target_arch = "wasm32"))]
pub(super) fn candidates(gpu: &Gpu, lens: &[usize], conv: &Conv2d) -> Vec<&'static str> {
    let near = suits_near(gpu, lens[1], conv).then(|| near_kernel(conv).0.name);
    near.into_iter().chain([kernels::CONVOLVE2D.name]).collect()
}

#[cfg(not(target_arch = "wasm32"))]
fn suits_near(gpu: &Gpu, weights: usize, conv: &Conv2d) -> bool {
    let largest = conv.kernel_rows.max(conv.kernel_cols);
    let dense = (conv.stride_rows, conv.stride_cols) == (1, 1);
    // Without a kernel or an input there is no last row to stay below.
    let some = conv.input_rows.min(conv.input_cols) > 0 && weights > 0;
    // Software adapters would compile for longer than most convolutions take.
    let hardware = !gpu.adapter().software;
    hardware && dense && some && largest <= LARGEST
}

/// The kernel that is specialised for the size of `conv`'s, and how many rows its invocations compute.
#[cfg(not(target_arch = "wasm32"))]
fn near_kernel(conv: &Conv2d) -> (&'static Kernel, usize) {
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
#[cfg(not(target_arch = "wasm32"))]
fn near(
    recorder: &mut Recorder<'_>,
    inputs: &[GpuBuffer],
    output: &GpuBuffer,
    conv: &Conv2d,
) -> Result<()> {
    let (output_rows, output_cols) = conv.output_shape();
    let (top, left) = conv.padding_before();
    let before = left.div_ceil(4);
    let (kernel, rows) = near_kernel(conv);
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

/// Records a convolution by the kernel for any stride and size.
fn any(
    recorder: &mut Recorder<'_>,
    inputs: &[GpuBuffer],
    output: &GpuBuffer,
    conv: &Conv2d,
) -> Result<()> {
    /// Sides of an invocation's tile, and tiles of a workgroup.
    const SIDE: usize = 4;
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
