//! The fastest kernel for each operation, by `GpuDevice::tune`.

use crate::resident::{IMAGES, PRODUCTS};
use crate::resnet;
use anyhow::Result;
use relampago::{Conv2d, GpuDevice, Op};

/// Rows and their lengths: few long ones, as many values in shorter ones, and odd ones.
const ROWS: [[usize; 2]; 13] = [
    [1, 1 << 20],
    [8, 1 << 20],
    [64, 1 << 17],
    [128, 32_768],
    [16, 16_384],
    [4096, 16_384],
    [16_384, 4096],
    [256, 4096],
    [65_536, 1024],
    [65_536, 256],
    [262_144, 64],
    [4096, 256],
    [4096, 1001],
];

/// Products of few rows or columns.
const NARROW: [[usize; 3]; 7] = [
    [64, 4096, 4096],
    [64, 576, 100_352],
    [128, 1152, 25_088],
    [512, 4608, 1568],
    [4096, 4096, 64],
    [100_352, 576, 96],
    [64, 256, 100_352],
];

/// Products with a vector, row by row.
const SHORT_ROWS: [[usize; 3]; 3] = [[1 << 18, 64, 1], [1 << 16, 256, 1], [1 << 14, 1024, 1]];

pub(crate) fn measure(device: &GpuDevice, divide: usize) -> Result<()> {
    for (name, op, lens) in operations(divide) {
        for tuning in device.tune(&[(op, &lens)])? {
            let times = tuning.times.iter();
            let times = times.map(|(name, time)| format!("{name} {:.1} µs", time * 1e6));
            let times: Vec<String> = times.collect();
            println!("{name}: {}", times.join(", "));
        }
    }
    Ok(())
}

/// Returns the operations with several kernels, with the lengths of their inputs.
fn operations(divide: usize) -> Vec<(String, Op, Vec<usize>)> {
    let smaller = |size: usize| size.div_ceil(divide);
    let products = PRODUCTS
        .into_iter()
        .chain(NARROW)
        .chain(SHORT_ROWS)
        .map(|dims| {
            let [m, k, n] = dims.map(smaller);
            let op = Op::Matmul { m, k, n };
            (format!("{m}×{k}×{n}"), op, vec![m * k, k * n])
        });
    let rows = ROWS.into_iter().flat_map(|[rows, cols]| {
        let (rows, epsilon) = (smaller(rows), 1e-5);
        let [softmax, norm] = ["softmax", "layer norm"].map(|what| format!("{what} {rows}×{cols}"));
        let len = rows * cols;
        [
            (softmax, Op::SoftmaxRows { rows, cols }, vec![len]),
            (
                norm,
                Op::LayerNorm {
                    rows,
                    cols,
                    epsilon,
                },
                vec![len, cols, cols],
            ),
        ]
    });
    let convolutions = [(64, 3), (512, 7), (4096, 3), (4096, 7), (4096, 15)];
    let convolutions = convolutions.into_iter().map(|(side, kernel)| {
        let side = smaller(side);
        let options = Conv2d::same(side, side, kernel, kernel);
        let name = format!("convolve2d {side}², {kernel}×{kernel}");
        let lens = vec![side * side, kernel * kernel];
        (name, Op::Convolve2d { options }, lens)
    });
    let layers = resnet::layers(smaller(IMAGES)).map(|(name, options)| {
        let lens = resnet::lens(&options).into();
        (name, Op::ConvolveLayer { options }, lens)
    });
    let rest = rows.chain(convolutions).chain(layers);
    products.chain(rest).collect()
}
