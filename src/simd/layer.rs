//! Convolutions of images with many channels: a product of weights and windows for each group of each image.

use super::InstructionSet;
use super::convolve::convolve;
use super::matmul::{matmul, multiply_patches};
use super::threads::share;
use crate::error::Result;
use crate::ops::{ConvLayer, Matmul};

/// The result of a layer, image by image and filter by filter.
pub(super) fn convolve_layer(
    isa: InstructionSet,
    pieces: usize,
    layer: &ConvLayer,
    [input, weights]: [&[f32]; 2],
    out: &mut [f32],
) -> Result<()> {
    let depth = layer.depth();
    // Without results the sides may be of any size.
    if out.is_empty() || depth == 0 {
        out.fill(0.0);
        return Ok(());
    }
    let [channels, filters] = layer.of_group();
    let (rows, cols) = layer.output_shape();
    let result = filters * rows * cols;
    let plane = layer.image.input_rows * layer.image.input_cols;
    let parts = out.chunks_exact_mut(result).enumerate();
    let products = parts.map(|(part, out)| {
        let group = part % layer.groups;
        let input = &input[part * channels * plane..][..channels * plane];
        let weights = &weights[group * filters * depth..][..filters * depth];
        ([input, weights], out)
    });
    let count = layer.batch * layer.groups;
    // Threads are for whole groups where there are enough, or else for parts of each one.
    let (outer, inner) = if count >= pieces {
        (pieces, 1)
    } else {
        (1, pieces)
    };
    share(outer, products, |(operands, out)| {
        group(isa, inner, layer, operands, out)
    })
}

/// The filters of a group on its channels of one image.
fn group(
    isa: InstructionSet,
    pieces: usize,
    layer: &ConvLayer,
    [input, weights]: [&[f32]; 2],
    out: &mut [f32],
) -> Result<()> {
    let image = layer.image;
    let [channels, filters] = layer.of_group();
    let plain = layer.window() == image;
    let (rows, cols) = layer.output_shape();
    if plain && channels == 1 {
        let kernels = weights.chunks_exact(layer.depth());
        let mut maps = kernels.zip(out.chunks_exact_mut(rows * cols));
        return maps
            .try_for_each(|(kernel, out)| convolve(isa, pieces, &image, input, kernel, out));
    }
    let whole = [image.input_rows, image.input_cols] == [rows, cols];
    if plain && whole && layer.depth() == channels {
        // Windows of single values are the image as it lies.
        let product = Matmul::new(filters, channels, rows * cols);
        return matmul(isa, pieces, &product, weights, input, out);
    }
    multiply_patches(isa, pieces, layer, [weights, input], out)
}
