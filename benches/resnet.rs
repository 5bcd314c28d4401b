//! Convolution layers of a residual network, one of each kind.

use relampago::{Conv2d, ConvLayer};

pub(crate) fn layers(batch: usize) -> impl Iterator<Item = (String, ConvLayer)> {
    let same = |side, kernel| Conv2d::same(side, side, kernel, kernel);
    let layers = [
        ConvLayer::new(same(224, 7).with_stride(2, 2), 3, 64),
        ConvLayer::new(same(56, 3), 64, 64),
        ConvLayer::new(same(56, 1), 256, 64),
        ConvLayer::new(same(28, 3), 128, 128),
        ConvLayer::new(same(7, 3), 512, 512),
    ];
    layers.into_iter().map(move |layer| {
        let (image, channels, filters) = (layer.image, layer.channels, layer.filters);
        let (side, kernel) = (image.input_rows, image.kernel_rows);
        let name = format!("layer {channels}→{filters}, {side}², {kernel}×{kernel}");
        (name, layer.with_batch(batch))
    })
}

/// Values of a layer's input and weights.
pub(crate) fn lens(layer: &ConvLayer) -> [usize; 2] {
    let image = &layer.image;
    let input = layer.batch * layer.channels * image.input_rows * image.input_cols;
    [input, layer.filters * depth(layer)]
}

/// Products for each value of the result.
pub(crate) fn depth(layer: &ConvLayer) -> usize {
    layer.channels * layer.image.kernel_rows * layer.image.kernel_cols
}
