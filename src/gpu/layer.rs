//! Convolution layers: either each element of the result by itself, or all of them as a matmul of
//! the weights and a matrix of windows (im2col), which is never stored.

use super::context::Gpu;
use super::kernels::{self, Kernel};
use super::matmul::{self, FAMILIES, Family};
use super::recorder::{GpuBuffer, Recorder};
use super::tune::Key;
use crate::error::Result;
use crate::ops::ConvLayer;
use crate::ops::shape::check_limit;
use crate::runtime::NATIVE;

/// The number of invocations of a workgroup of the kernel for any layer.
const WORKGROUP: usize = 64;
/// The number of filters that an invocation computes.
const FILTERS: usize = 4;
/// The number of positions of the result that an invocation computes.
const PLACES: usize = 4;

/// The largest number of weights of a filter that the matmul kernels can index.
const DEEPEST: usize = 1 << 19;

/// The longest window for which indices in it and before the input stay distinct when they wrap
/// around.
const LONGEST: usize = 1 << 31;

/// Filters, and weights of each, from which tiles of a product are busy.
const MANY_FILTERS: usize = 16;
const MANY_WEIGHTS: usize = 16;

/// Records the dispatch of a layer whose result has some values.
pub(super) fn convolve_layer(
    recorder: &mut Recorder<'_>,
    inputs: &[GpuBuffer],
    output: &GpuBuffer,
    layer: &ConvLayer,
) -> Result<()> {
    let window = layer.window();
    for span in [window.kernel_rows, window.kernel_cols] {
        check_limit("the rows or columns that a kernel spans", span, LONGEST)?;
    }
    let operands = [&inputs[1], &inputs[0]];
    if is_product(layer) {
        return matmul::in_f32(recorder, operands, output, product(layer));
    }
    let kernel = kernel(recorder, inputs[0].len, layer);
    if kernel.index == kernels::CONVOLVE_LAYER.index {
        return any(recorder, [&inputs[0], &inputs[1]], output, layer);
    }
    by_product(recorder, kernel, operands, output, layer)
}

/// Returns the kernel that was measured to be the fastest, or else the default.
fn kernel(recorder: &Recorder<'_>, input: usize, layer: &ConvLayer) -> &'static Kernel {
    let gpu = recorder.gpu;
    if NATIVE
        && let Some(name) = recorder.fastest(Key::convolve_layer(layer))
        && let Some(kernel) = able(gpu, input, layer).find(|kernel| kernel.name == name)
    {
        return kernel;
    }
    let [m, k, n] = product(layer);
    if !has_product(input, layer) || m < MANY_FILTERS || k < MANY_WEIGHTS {
        &kernels::CONVOLVE_LAYER
    } else if gpu.adapter().software {
        &kernels::LAYER_DIRECT
    } else {
        form(matmul::family(&gpu.limits, [m, n]), layer)
    }
}

/// Returns the names of the kernels that can compute a layer with an input of this length; none if
/// there is no choice.
pub(super) fn candidates(gpu: &Gpu, input: usize, layer: &ConvLayer) -> Vec<&'static str> {
    if is_product(layer) {
        return Vec::new();
    }
    able(gpu, input, layer).map(|kernel| kernel.name).collect()
}

/// Returns the kernel for any layer, and the matmul kernels if they can compute this one.
fn able(gpu: &Gpu, input: usize, layer: &ConvLayer) -> impl Iterator<Item = &'static Kernel> {
    let fitting = FAMILIES.iter().filter(|family| family.fits(&gpu.limits));
    let of_products = fitting.map(|family| form(family, layer));
    let of_products = of_products.chain([&kernels::LAYER_DIRECT]);
    let has_product = has_product(input, layer);
    let any = [&kernels::CONVOLVE_LAYER].into_iter();
    any.chain(of_products.filter(move |_| has_product))
}

/// Returns a family's kernel for the layer: the pointwise one if windows have one element and
/// planes consist of vectors of four.
fn form(family: &Family, layer: &ConvLayer) -> &'static Kernel {
    let [_, k, _] = product(layer);
    let (rows, cols) = layer.output_shape();
    if is_pointwise(layer) && (k | (rows * cols)).is_multiple_of(4) {
        family.pointwise
    } else {
        family.layer
    }
}

/// Returns whether the matmul kernels can compute a layer with an input of this length: there is a
/// first element to read for positions outside the input, and the weights are in the range of
/// indices.
fn has_product(input: usize, layer: &ConvLayer) -> bool {
    layer.groups == 1 && input > 0 && (1..=DEEPEST).contains(&layer.depth())
}

/// Returns the shape of the matmul of one group: filters, weights of each, and positions of the
/// result in all images.
fn product(layer: &ConvLayer) -> [usize; 3] {
    let (rows, cols) = layer.output_shape();
    [layer.filters, layer.depth(), layer.batch * rows * cols]
}

/// Whether each value is a window.
fn is_pointwise(layer: &ConvLayer) -> bool {
    let image = &layer.image;
    let single = [image.kernel_rows, image.kernel_cols] == [1; 2];
    single && layer.output_shape() == (image.input_rows, image.input_cols)
}

/// Whether an image's channels are the matrix of windows.
fn is_product(layer: &ConvLayer) -> bool {
    is_pointwise(layer) && [layer.batch, layer.groups] == [1; 2]
}

/// Rows and columns of the input, the kernel, the result, strides, dilations and padding.
fn geometry(layer: &ConvLayer) -> [usize; 12] {
    let image = &layer.image;
    let (rows, cols) = layer.output_shape();
    let (top, left) = layer.padding_before();
    [
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
    ]
}

/// Returns the parameters of a kernel. Only strides and dilations can exceed the range of a
/// buffer's indices. A dilation that does has one weight, and such a stride moves past the whole
/// input.
fn params(dims: [&[usize]; 2]) -> Vec<u32> {
    let mut words = Vec::new();
    for dims in dims {
        for &dim in dims {
            words.push(u32::try_from(dim).unwrap_or(u32::MAX));
        }
    }
    words
}

/// Records a layer by a matmul kernel.
fn by_product(
    recorder: &mut Recorder<'_>,
    kernel: &'static Kernel,
    operands: [&GpuBuffer; 2],
    output: &GpuBuffer,
    layer: &ConvLayer,
) -> Result<()> {
    let [m, k, n] = product(layer);
    matmul::check_depth(recorder.gpu, k)?;
    let family = FAMILIES
        .iter()
        .find(|family| form(family, layer).index == kernel.index);
    let [workgroups, across] = match family {
        Some(family) => family.grid([m, n]),
        None => matmul::direct_grid([m, n]),
    };
    let params = params([&[m, k, n, across], &geometry(layer)]);
    recorder.dispatch(kernel, &params, &operands, output, workgroups)
}

/// Records a layer by the kernel for any layer.
fn any(
    recorder: &mut Recorder<'_>,
    inputs: [&GpuBuffer; 2],
    output: &GpuBuffer,
    layer: &ConvLayer,
) -> Result<()> {
    // Each product is a round of a loop.
    recorder.gpu.check_on_llvmpipe(
        "the weights of a filter on llvmpipe",
        layer.depth(),
        1 << 15,
    )?;
    let (rows, cols) = layer.output_shape();
    let [channels, filters] = layer.of_group();
    let numbers = [layer.batch, layer.groups, channels, filters];
    let params = params([&geometry(layer), &numbers]);
    let tiles = (rows * cols).div_ceil(PLACES) * filters.div_ceil(FILTERS);
    let workgroups = (tiles * layer.batch * layer.groups).div_ceil(WORKGROUP);
    recorder.dispatch(
        &kernels::CONVOLVE_LAYER,
        &params,
        &inputs,
        output,
        workgroups,
    )
}
