//! Gradients of convolutions, which are convolutions, too.

use crate::lazy::node::Kind;
use crate::lazy::value::Value;
use crate::ops::{Conv2d, ConvLayer};

/// Returns the gradient of the images or of the weights of a convolution.
pub(super) fn gradient<'t>(
    layer: &ConvLayer,
    [images, weights]: [Value<'t>; 2],
    g: Value<'t>,
    at: usize,
) -> Value<'t> {
    if at == 0 {
        of_images(layer, weights, g)
    } else {
        of_weights(layer, images, g)
    }
}

/// The rows and columns of a convolution.
struct Sides {
    input: [usize; 2],
    kernel: [usize; 2],
    stride: [usize; 2],
    dilation: [usize; 2],
    /// The zeros before the first row and column.
    before: [usize; 2],
    output: [usize; 2],
}

impl Sides {
    fn of(layer: &ConvLayer) -> Self {
        let image = &layer.image;
        let (before, output) = (layer.padding_before(), layer.output_shape());
        Self {
            input: [image.input_rows, image.input_cols],
            kernel: [image.kernel_rows, image.kernel_cols],
            stride: [image.stride_rows, image.stride_cols],
            dilation: [layer.dilation_rows, layer.dilation_cols],
            before: [before.0, before.1],
            output: [output.0, output.1],
        }
    }
}

/// Convolves without padding.
fn convolve<'t>(
    images: Value<'t>,
    weights: Value<'t>,
    groups: usize,
    [stride, dilation]: [[usize; 2]; 2],
) -> Value<'t> {
    let (own, kernel) = (images.shape(), weights.shape());
    let image = Conv2d::valid(own[2], own[3], kernel[2], kernel[3]);
    let layer = ConvLayer::new(image.with_stride(stride[0], stride[1]), own[1], kernel[0])
        .with_batch(own[0])
        .with_groups(groups)
        .with_dilation(dilation[0], dilation[1]);
    let (rows, cols) = layer.output_shape();
    let shape = [own[0], kernel[0], rows, cols];
    images
        .tape()
        .record(Kind::Convolve(layer), &[images, weights], &shape)
}

/// Puts the elements of an axis into one of `len` elements, `before` elements after its start, and drops those beyond
/// its end.
fn placed(x: Value<'_>, axis: usize, before: usize, len: usize) -> Value<'_> {
    let shown = x.shape()[axis].min(len - before);
    x.slice(axis, 0, shown)
        .pad(axis, before, len - before - shown)
}

/// Convolves the gradient of the result, its windows as far apart as they were, with the kernels reversed.
fn of_images<'t>(layer: &ConvLayer, weights: Value<'t>, g: Value<'t>) -> Value<'t> {
    let sides = Sides::of(layer);
    let [channels, filters] = layer.of_group();
    let [rows, cols] = sides.kernel;
    let (groups, depth) = (layer.groups, layer.channels);
    let reversed = weights
        .flip(&[2, 3])
        .reshape(&[groups, filters, channels, rows * cols])
        .permute(&[0, 2, 1, 3])
        .reshape(&[depth, filters, rows, cols]);
    let mut wide = g;
    for k in 0..2 {
        let reach = sides.dilation[k] * (sides.kernel[k] - 1);
        // The padding is less than a window.
        let before = reach - sides.before[k];
        wide = wide.spread(k + 2, sides.stride[k]);
        wide = placed(wide, k + 2, before, sides.input[k] + reach);
    }
    convolve(wide, reversed, groups, [[1; 2], sides.dilation])
}

/// Convolves the images with the gradient of the result: channels are images there, and images channels.
fn of_weights<'t>(layer: &ConvLayer, images: Value<'t>, g: Value<'t>) -> Value<'t> {
    let sides = Sides::of(layer);
    let [channels, _] = layer.of_group();
    let (batch, groups) = (layer.batch, layer.groups);
    let mut padded = images;
    let mut needed = [0; 2];
    for (k, needed) in needed.iter_mut().enumerate() {
        // The rows or columns that the windows of all weights cover.
        let window = (sides.output[k] - 1) * sides.stride[k] + 1;
        *needed = window + (sides.kernel[k] - 1) * sides.dilation[k];
        padded = placed(padded, k + 2, sides.before[k], *needed);
    }
    let [rows, cols] = needed;
    let by_channel = padded
        .reshape(&[batch, groups, channels, rows * cols])
        .permute(&[2, 1, 0, 3])
        .reshape(&[channels, groups * batch, rows, cols]);
    let by_filter = g.permute(&[1, 0, 2, 3]);
    convolve(
        by_channel,
        by_filter,
        groups,
        [sides.dilation, sides.stride],
    )
    .permute(&[1, 0, 2, 3])
}
