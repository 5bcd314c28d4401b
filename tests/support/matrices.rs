//! Cases of matrices: shapes at every edge of tiles and blocks.

use relampago::{Conv2d, ConvLayer, Matmul, Op};

use super::{Case, Random};

const MATMUL_SHAPES: [(usize, usize, usize); 15] = [
    (1, 1, 1),
    (1, 65, 1),
    (1, 7, 65),
    (65, 7, 1),
    (1, 1_000, 33),
    (33, 1_000, 1),
    (3, 5, 7),
    (17, 33, 65),
    (64, 64, 64),
    (127, 129, 131),
    (5, 0, 4),
    (0, 3, 4),
    (4, 3, 0),
    (0, 0, 0),
    (2, 3_000, 2),
];

const ROW_SHAPES: [(usize, usize); 11] = [
    (0, 0),
    (0, 5),
    (5, 0),
    (1, 1),
    (1, 70_001),
    (3, 9_001),
    (7, 13),
    (129, 8_200),
    (300, 3),
    (64, 64),
    (4_099, 1),
];

/// Long sums of like terms, whose roundings all go one way.
fn like_terms() -> Vec<Case> {
    let mut cases = Vec::new();
    for value in [0.7, 1.1, 0.3333] {
        for (m, k, n) in [
            (80, 300, 70),
            (33, 4_100, 18),
            (1, 4_100, 70),
            (70, 4_100, 1),
        ] {
            let inputs = vec![vec![value; m * k], vec![0.37; k * n]];
            cases.push(Case::new(Op::Matmul { m, k, n }, inputs));
        }
        let options = Conv2d::valid(50, 70, 41, 43);
        let inputs = vec![vec![value; 50 * 70], vec![0.37; 41 * 43]];
        cases.push(Case::new(Op::Convolve2d { options }, inputs));
        let options = ConvLayer::new(Conv2d::valid(5, 9, 3, 3), 411, 6);
        let inputs = vec![vec![value; 411 * 45], vec![0.37; 6 * 411 * 9]];
        cases.push(Case::new(Op::ConvolveLayer { options }, inputs));
    }
    cases
}

/// Values that are not finite, which reach all results that they are a part of, and no others.
pub fn not_finite() -> Vec<Case> {
    let mut random = Random(3);
    let mut cases = Vec::new();
    for (m, k, n) in [
        (3, 5, 7),
        (1, 301, 70),
        (70, 301, 1),
        (33, 18, 129),
        (131, 67, 130),
    ] {
        let (mut a, mut b) = (random.values(m * k), random.values(k * n));
        a[k - 1] = f32::INFINITY;
        b[n - 1] = f32::NAN;
        cases.push(Case::new(Op::Matmul { m, k, n }, vec![a, b]));
    }
    for options in convolutions() {
        let input = random.values(options.input_rows * options.input_cols);
        let kernel = random.values(options.kernel_rows * options.kernel_cols);
        let op = Op::Convolve2d { options };
        for place in [0, input.len() / 2] {
            let mut input = input.clone();
            if let Some(value) = input.get_mut(place) {
                *value = if place == 0 { f32::INFINITY } else { f32::NAN };
                cases.push(Case::new(op.clone(), vec![input, kernel.clone()]));
            }
        }
        let mut weights = kernel;
        weights[0] = f32::INFINITY;
        cases.push(Case::new(op, vec![input, weights]));
    }
    for options in layers() {
        let op = Op::ConvolveLayer { options };
        let [mut input, mut weights] = layer_lens(&options).map(|len| random.values(len));
        if let Some(value) = input.get_mut(1) {
            *value = f32::NAN;
            cases.push(Case::new(op.clone(), vec![input.clone(), weights.clone()]));
            input[1] = 0.5;
        }
        if let Some(weight) = weights.first_mut() {
            *weight = f32::INFINITY;
        }
        cases.push(Case::new(op, vec![input, weights]));
    }
    cases
}

/// Every operation on matrices.
pub fn matrix_cases() -> Vec<Case> {
    let mut random = Random(2);
    let mut cases = like_terms();
    cases.extend(not_finite());
    for (m, k, n) in MATMUL_SHAPES {
        let inputs = vec![random.values(m * k), random.values(k * n)];
        let plain = Matmul::new(m, k, n);
        let stored = [
            plain.transpose_a(),
            plain.transpose_b(),
            plain.transpose_a().transpose_b(),
        ];
        for options in stored {
            cases.push(Case::new(Op::MatmulWith { options }, inputs.clone()));
        }
        cases.push(Case::new(Op::Matmul { m, k, n }, inputs));
    }
    for (rows, cols) in ROW_SHAPES {
        let x = random.values(rows * cols);
        let bias = random.values(cols);
        cases.push(Case::new(Op::BiasAdd { rows, cols }, vec![x.clone(), bias]));
        for op in [
            Op::SoftmaxRows { rows, cols },
            Op::LogSoftmaxRows { rows, cols },
            Op::Transpose { rows, cols },
        ] {
            cases.push(Case::new(op, vec![x.clone()]));
        }
        let (gain, bias) = (random.values(cols), random.values(cols));
        cases.extend(norm_cases((rows, cols), x, [&gain, &bias]));
    }
    for options in convolutions() {
        let inputs = vec![
            random.values(options.input_rows * options.input_cols),
            random.values(options.kernel_rows * options.kernel_cols),
        ];
        cases.push(Case::new(Op::Convolve2d { options }, inputs));
    }
    for options in layers() {
        let inputs = layer_lens(&options).map(|len| random.values(len));
        let op = Op::ConvolveLayer { options };
        cases.push(Case::new(op, inputs.to_vec()));
    }
    cases
}

/// Values of a layer's input, and its weights.
pub fn layer_lens(layer: &ConvLayer) -> [usize; 2] {
    let image = &layer.image;
    let plane = image.input_rows * image.input_cols;
    let kernel = image.kernel_rows * image.kernel_cols;
    let weights = layer.filters * (layer.channels / layer.groups) * kernel;
    [layer.batch * layer.channels * plane, weights]
}

/// Returns cases of both norms, of elements around 0 and of elements far from 0, so that the mean
/// matters.
pub(super) fn norm_cases(
    (rows, cols): (usize, usize),
    x: Vec<f32>,
    [gain, bias]: [&[f32]; 2],
) -> Vec<Case> {
    let far = x.iter().map(|x| x + 100.0).collect();
    let mut cases = Vec::new();
    for (x, epsilon) in [(x, 1e-5), (far, 0.1)] {
        let of_all = Op::LayerNorm {
            rows,
            cols,
            epsilon,
        };
        let inputs = vec![x.clone(), gain.to_vec(), bias.to_vec()];
        cases.push(Case::new(of_all, inputs));
        let rms = Op::RmsNorm {
            rows,
            cols,
            epsilon,
        };
        cases.push(Case::new(rms, vec![x, gain.to_vec()]));
    }
    cases
}

fn convolutions() -> Vec<Conv2d> {
    let shapes = [
        (1, 1, 1, 1),
        (5, 5, 3, 3),
        (3, 3, 3, 3),
        (33, 65, 3, 3),
        (64, 64, 5, 5),
        (70, 41, 7, 7),
        (20, 31, 1, 9),
        (31, 20, 9, 1),
        (40, 40, 15, 15),
        (17, 130, 2, 4),
        // More rows than a chain gathers, and outputs for whole blocks and half a one.
        (60, 140, 40, 3),
        (12, 150, 5, 7),
    ];
    let mut all = Vec::new();
    for (rows, cols, kernel_rows, kernel_cols) in shapes {
        for conv in [
            Conv2d::valid(rows, cols, kernel_rows, kernel_cols),
            Conv2d::same(rows, cols, kernel_rows, kernel_cols),
        ] {
            all.extend([
                conv,
                conv.with_stride(2, 2),
                conv.with_stride(3, 1),
                conv.with_stride(100, 7),
            ]);
        }
    }
    // A kernel larger than its input fits where there is padding.
    all.push(Conv2d::same(3, 4, 7, 5));
    all.push(Conv2d::same(0, 4, 3, 3));
    all.push(Conv2d::same(4, 0, 3, 3));
    all
}

fn layers() -> Vec<ConvLayer> {
    let layer = |image, channels, filters| ConvLayer::new(image, channels, filters);
    vec![
        layer(Conv2d::valid(1, 1, 1, 1), 1, 1),
        layer(Conv2d::same(9, 11, 3, 3), 3, 8),
        layer(Conv2d::same(14, 14, 3, 3), 64, 33).with_batch(2),
        layer(Conv2d::same(7, 7, 3, 3), 37, 70),
        // Windows of one value, with strides and without.
        layer(Conv2d::valid(13, 7, 1, 1), 70, 21).with_batch(3),
        layer(Conv2d::valid(13, 7, 1, 1).with_stride(2, 3), 33, 5),
        layer(Conv2d::valid(40, 41, 7, 7).with_stride(2, 2), 3, 13),
        layer(Conv2d::same(40, 41, 7, 7).with_stride(2, 2), 3, 13).with_batch(2),
        layer(Conv2d::same(12, 30, 3, 3), 4, 6).with_dilation(2, 3),
        layer(Conv2d::valid(12, 30, 3, 2).with_stride(1, 2), 5, 9).with_dilation(4, 7),
        // Depthwise, with one filter a channel and with more.
        layer(Conv2d::same(17, 19, 3, 3), 24, 24).with_groups(24),
        layer(Conv2d::same(17, 19, 5, 3).with_stride(2, 1), 6, 18)
            .with_groups(6)
            .with_batch(2),
        layer(Conv2d::same(9, 9, 3, 3), 6, 6)
            .with_groups(6)
            .with_dilation(2, 2),
        layer(Conv2d::same(10, 13, 3, 3), 12, 20)
            .with_groups(4)
            .with_batch(2),
        // More windows than a panel has, and more weights than are deep.
        layer(Conv2d::same(30, 35, 3, 3), 40, 5),
        // A kernel larger than its image.
        layer(Conv2d::same(3, 2, 5, 5), 2, 3).with_dilation(3, 1),
        layer(Conv2d::same(5, 6, 3, 3), 0, 4),
        layer(Conv2d::same(5, 6, 3, 3), 4, 0),
        layer(Conv2d::same(5, 6, 3, 3), 4, 4).with_batch(0),
        layer(Conv2d::same(0, 6, 3, 3), 4, 4),
        layer(Conv2d::same(5, 0, 3, 3), 4, 4),
    ]
}
