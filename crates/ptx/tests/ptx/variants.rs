//! All kernel variants with their test cases.

use super::case::{Case, Value, random, rounded};
use super::oracle;
use relampago_ptx::kernels::{Activation, Epilogue, RowLayout, Tile};
use relampago_ptx::{GemmKernel, Kernel, LayerNormKernel, PtxType, SoftmaxKernel, Target};

pub(crate) struct Variant {
    pub(crate) kernel: Box<dyn Kernel + Sync>,
    pub(crate) cases: Vec<Case>,
}

impl Variant {
    pub(crate) fn new(kernel: impl Kernel + Sync + 'static, cases: Vec<Case>) -> Self {
        Variant {
            kernel: Box::new(kernel),
            cases,
        }
    }
}

/// Returns all variants, or those whose name contains the environment variable `KERNELS`.
pub(crate) fn all() -> Vec<Variant> {
    let wanted = std::env::var("KERNELS").unwrap_or_default();
    [
        gemms(),
        softmaxes(),
        norms(),
        super::long_rows::variants(),
        super::quantized::variants(),
        super::attention::variants(),
        super::values::variants(),
        super::planes::variants(),
        super::steps::variants(),
        super::cached_attention::variants(),
        super::choice::variants(),
    ]
    .into_iter()
    .flatten()
    .filter(|variant| variant.kernel.name().contains(&wanted))
    .collect()
}

pub(crate) const EPILOGUES: [Epilogue; 4] = [
    Epilogue::NONE,
    Epilogue::NONE.with_bias().with_activation(Activation::Relu),
    Epilogue::NONE.with_activation(Activation::Silu),
    Epilogue::NONE
        .with_bias()
        .with_activation(Activation::GeluTanh),
];

fn gemms() -> Vec<Variant> {
    let odd = [[1, 1, 1], [17, 33, 5], [16, 16, 16], [3, 70, 40], [5, 7, 0]];
    let odd_large = [
        [130, 67, 37],
        [66, 66, 9],
        [1, 129, 16],
        [65, 1, 3],
        [4, 4, 0],
    ];
    let multiples = [
        [130, 68, 36],
        [67, 72, 20],
        [1, 132, 68],
        [64, 64, 4],
        [128, 128, 32],
    ];
    let f32s = |shapes: &[[usize; 3]], epilogue| {
        gemm_cases(shapes, epilogue, PtxType::F32, PtxType::F32, 0.0)
    };
    let mut variants = Vec::new();
    for epilogue in EPILOGUES {
        let naive = GemmKernel::naive().with_epilogue(epilogue);
        variants.push(Variant::new(naive, f32s(&odd, epilogue)));
    }
    for epilogue in [EPILOGUES[0], EPILOGUES[1]] {
        for tile in [Tile::LARGE, Tile::SMALL] {
            let any = GemmKernel::tiled_by(tile).with_epilogue(epilogue);
            variants.push(Variant::new(any, f32s(&odd_large, epilogue)));
            let aligned = GemmKernel::tiled_by(tile.aligned()).with_epilogue(epilogue);
            variants.push(Variant::new(aligned, f32s(&multiples, epilogue)));
        }
    }
    let mma_shapes = [
        [130, 136, 40],
        [1, 8, 8],
        [128, 128, 64],
        [67, 264, 104],
        [2, 8, 0],
    ];
    let wmma_shapes = [[131, 70, 33], [1, 1, 1], [3, 130, 76], [3, 5, 0]];
    for epilogue in [EPILOGUES[0], EPILOGUES[3]] {
        for (kernel, output) in [
            (GemmKernel::wmma_fp16(), PtxType::F32),
            (GemmKernel::tensor_core(), PtxType::F16),
        ] {
            let cases = gemm_cases(&wmma_shapes, epilogue, PtxType::F16, output, 0.0);
            variants.push(Variant::new(kernel.with_epilogue(epilogue), cases));
            let cases = gemm_cases(&mma_shapes, epilogue, PtxType::F16, output, 0.0);
            let kernel = kernel.aligned().with_epilogue(epilogue);
            variants.push(Variant::new(kernel, cases));
        }
    }
    for (ty, epilogue) in [(PtxType::BF16, EPILOGUES[0]), (PtxType::F16, EPILOGUES[1])] {
        let cases = gemm_cases(&mma_shapes, epilogue, ty, ty, 0.0);
        variants.push(Variant::new(
            GemmKernel::mma(ty).with_epilogue(epilogue),
            cases,
        ));
    }
    let tf32_shapes = [
        [130, 132, 36],
        [1, 4, 4],
        [128, 128, 64],
        [67, 260, 100],
        [2, 8, 0],
    ];
    let rounding = 2.01 * 2f64.powi(-11);
    let cases = gemm_cases(
        &tf32_shapes,
        EPILOGUES[1],
        PtxType::F32,
        PtxType::F32,
        rounding,
    );
    let kernel = GemmKernel::mma_tf32().with_epilogue(EPILOGUES[1]);
    variants.push(Variant::new(kernel, cases));
    // One matrix is rounded, of the other what tf32 does not have is ignored.
    let rounding = 3.01 * 2f64.powi(-11);
    for epilogue in [EPILOGUES[0], EPILOGUES[3]] {
        let shapes = [[300, 132, 68], [1, 4, 4], [257, 260, 160], [2, 8, 0]];
        let cases = gemm_cases(&shapes, epilogue, PtxType::F32, PtxType::F32, rounding);
        let kernel = GemmKernel::wgmma_tf32().with_epilogue(epilogue);
        variants.push(Variant::new(kernel, cases));
    }
    let wgmma_shapes = [[200, 264, 136], [1, 8, 8], [300, 512, 64], [129, 40, 464]];
    for (ty, cols, epilogue) in [
        (PtxType::BF16, 256, EPILOGUES[0]),
        (PtxType::F16, 256, EPILOGUES[1]),
        (PtxType::BF16, 128, EPILOGUES[2]),
        (PtxType::F16, 128, EPILOGUES[0]),
    ] {
        let cases = gemm_cases(&wgmma_shapes, epilogue, ty, ty, 0.0);
        let kernel = GemmKernel::wgmma_by(ty, cols).with_epilogue(epilogue);
        variants.push(Variant::new(kernel, cases));
    }
    variants.extend(super::splits::variants());
    variants.extend(super::batches::variants());
    variants
}

fn gemm_cases(
    shapes: &[[usize; 3]],
    epilogue: Epilogue,
    input: PtxType,
    output: PtxType,
    input_error: f64,
) -> Vec<Case> {
    let case = |(i, &shape): (usize, &[usize; 3])| {
        let [m, n, k] = shape;
        let (alpha, beta) = [(1.0, 0.0), (0.5, -2.0)][i % 2];
        let (a, b) = (random(m * k, 1), random(k * n, 2));
        let (mut a, b) = (rounded(&a, input), rounded(&b, input));
        // What a row's neighbour reads by mistake times zero is NaN then.
        if i == 1 {
            a.chunks_mut(k)
                .step_by(3)
                .for_each(|row| row[0] = f32::INFINITY);
        }
        // Without β it must not matter what was there.
        let c = if beta == 0.0 {
            vec![f32::NAN; m * n]
        } else {
            rounded(&random(m * n, 3), output)
        };
        let bias = random(n, 4);
        let gemm = oracle::Gemm {
            a: &a,
            b: &b,
            c: &c,
            bias: &bias,
            shape,
            alpha,
            beta,
            epilogue,
            output,
            input_error,
        };
        let expected = gemm.expected();
        let matrix = |values, ty| match ty {
            PtxType::F16 => Value::F16s(values),
            PtxType::BF16 => Value::Bf16s(values),
            _ => Value::F32s(values),
        };
        let mut arguments = vec![matrix(a, input), matrix(b, input), matrix(c, output)];
        arguments.extend([m, n, k].map(|size| Value::U32(size as u32)));
        arguments.extend([Value::F32(alpha), Value::F32(beta)]);
        if epilogue.bias {
            arguments.push(Value::F32s(bias));
        }
        Case {
            label: format!("{m}×{n}×{k}, α {alpha}, β {beta}"),
            arguments,
            output: 2,
            expected,
        }
    };
    shapes.iter().enumerate().map(case).collect()
}

/// Layouts with the shapes that they are tried on.
fn layouts() -> Vec<(RowLayout, Vec<[usize; 2]>)> {
    let held = |group, threads, width, held| {
        RowLayout::new(group, threads)
            .with_width(width)
            .with_held(held)
    };
    let any = RowLayout::new(32, 64);
    let cluster = |threads, blocks, width| {
        RowLayout::new(threads, threads)
            .with_blocks(blocks)
            .with_width(width)
    };
    vec![
        (RowLayout::ANY, vec![[3, 1], [2, 300], [1, 777], [1, 256]]),
        (any, vec![[5, 3], [5, 70]]),
        (held(32, 128, 4, 2), vec![[7, 256], [5, 100], [3, 132]]),
        (
            held(32, 128, 1, 4),
            vec![[9, 37], [4, 128], [1, 1], [3, 64], [3, 96]],
        ),
        (held(64, 64, 4, 2), vec![[2, 256], [3, 512], [1, 260]]),
        (held(256, 256, 1, 2), vec![[2, 511], [2, 256], [1, 255]]),
        (
            RowLayout::new(128, 128).with_width(4),
            vec![[2, 1204], [1, 1024], [2, 512]],
        ),
        (
            cluster(64, 2, 1).with_held(4),
            vec![[2, 512], [1, 300], [3, 129]],
        ),
        (cluster(256, 8, 4), vec![[2, 8196], [1, 12]]),
        (held(64, 64, 4, 2).ahead(), vec![[7, 512], [2, 260]]),
        (RowLayout::for_target(65_536, Target::Sm90), Vec::new()),
        (
            cluster(128, 2, 4).with_held(1).ahead(),
            vec![[4, 1024], [3, 516]],
        ),
    ]
}

fn matrix_case(
    label: String,
    x: Vec<f32>,
    extra: Vec<Value>,
    shape: [usize; 2],
    expected: Vec<super::case::Expected>,
) -> Case {
    let y = vec![f32::from_bits(0x7fc1_2345); x.len()];
    let mut arguments = vec![Value::F32s(x), Value::F32s(y)];
    let (arrays, scalars): (Vec<_>, Vec<_>) = extra
        .into_iter()
        .partition(|value| matches!(value, Value::F32s(_)));
    arguments.extend(arrays);
    arguments.extend(shape.map(|size| Value::U32(size as u32)));
    arguments.extend(scalars);
    Case {
        label,
        arguments,
        output: 1,
        expected,
    }
}

/// Rows of different scales, with what is largest in different places: of large scales, powers
/// relative to anything less would be infinite.
fn softmax_rows([rows, cols]: [usize; 2], case: usize) -> Vec<f32> {
    let mut x = random(rows * cols, 5);
    for (i, row) in x.chunks_mut(cols).enumerate() {
        let scale = [200.0, 1e38, 3.0][(i + case) % 3];
        for x in &mut *row {
            *x *= scale;
        }
        let largest = (0..cols).max_by(|a, b| row[*a].total_cmp(&row[*b]));
        // A warp's last lane, whatever the layout, the first one, and where the row ends.
        let lanes = [128, 32, 1].into_iter().find(|lanes| cols >= *lanes);
        let last_lane = lanes.map_or(0, |lanes| cols / lanes * lanes - 1);
        let place = [last_lane, 0, cols - 1][(i + 2 * case) % 3];
        row.swap(largest.unwrap_or(0), place);
        // So far from the others that nothing else will do.
        if scale > 100.0 {
            row[place] = (row[place] * 1.5).min(f32::MAX);
        }
    }
    if case == 1 {
        x[cols / 2] = f32::NEG_INFINITY;
    }
    if rows > 2 {
        x[2 * cols] = f32::NAN;
        x[cols..2 * cols].fill(f32::NEG_INFINITY);
    }
    x
}

fn softmaxes() -> Vec<Variant> {
    let mut variants = Vec::new();
    for (layout, shapes) in layouts() {
        for log in [false, true] {
            let cases = shapes.iter().enumerate().map(|(i, &[rows, cols])| {
                let x = softmax_rows([rows, cols], i);
                let expected = oracle::softmax(&x, cols, log);
                matrix_case(
                    format!("{rows}×{cols}"),
                    x,
                    Vec::new(),
                    [rows, cols],
                    expected,
                )
            });
            let kernel = SoftmaxKernel::new().with_layout(layout);
            let kernel = if log { kernel.log() } else { kernel };
            variants.push(Variant::new(kernel, cases.collect()));
        }
    }
    variants
}

fn norms() -> Vec<Variant> {
    let mut variants = Vec::new();
    for (layout, shapes) in layouts() {
        for centred in [true, false] {
            let cases = shapes.iter().map(|&[rows, cols]| {
                let x: Vec<f32> = random(rows * cols, 6).iter().map(|x| x + 3.0).collect();
                let (weight, bias) = (random(cols, 7), random(cols, 8));
                let expected = oracle::norm(&x, &weight, centred.then_some(&bias), 0.1);
                let mut extra = vec![Value::F32s(weight)];
                if centred {
                    extra.push(Value::F32s(bias));
                }
                extra.push(Value::F32(0.1));
                matrix_case(format!("{rows}×{cols}"), x, extra, [rows, cols], expected)
            });
            let kernel = if centred {
                LayerNormKernel::new()
            } else {
                LayerNormKernel::rms()
            };
            variants.push(Variant::new(kernel.with_layout(layout), cases.collect()));
        }
    }
    variants
}
