//! Random operations with random, often wrong arguments: never a panic, and never a wrong result.

#![cfg(not(target_arch = "wasm32"))]

mod support;

use std::sync::atomic::{AtomicUsize, Ordering};

use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed, TestRunner};
use relampago::{
    Attention, AxisFold, Backend, Conv2d, ConvLayer, GpuCommandBatch, GpuDevice, InstructionSet,
    Matmul, Op, Padding, Rearrange, ReduceAxis, Rope,
};
use support::{Case, SPECIAL};

const SEED: u64 = 0x5eed;

/// Dimensions that are small, zero, or enough to overflow.
fn dim() -> impl Strategy<Value = usize> {
    prop_oneof![20 => 0..20usize, 1 => Just(usize::MAX), 1 => Just(1 << 60), 1 => 20..200usize]
}

fn value() -> impl Strategy<Value = f32> {
    prop_oneof![5 => -10.0..10.0f32, 1 => proptest::sample::select(SPECIAL.to_vec()), 1 => any::<f32>()]
}

fn conv() -> impl Strategy<Value = Conv2d> {
    let padding = prop_oneof![Just(Padding::Valid), Just(Padding::Same)];
    (dim(), dim(), dim(), dim(), dim(), dim(), padding).prop_map(
        |(input_rows, input_cols, kernel_rows, kernel_cols, stride_rows, stride_cols, padding)| {
            Conv2d::valid(input_rows, input_cols, kernel_rows, kernel_cols)
                .with_stride(stride_rows, stride_cols)
                .with_padding(padding)
        },
    )
}

fn layer() -> impl Strategy<Value = ConvLayer> {
    let counts = (dim(), dim(), dim(), dim(), dim(), dim());
    (conv(), counts).prop_map(
        |(image, (batch, channels, filters, groups, down, across))| {
            // Most of them can be divided.
            let [channels, filters] = if groups < 100 {
                [channels, filters].map(|count| count.saturating_mul(groups))
            } else {
                [channels, filters]
            };
            ConvLayer::new(image, channels, filters)
                .with_batch(batch)
                .with_groups(groups)
                .with_dilation(down, across)
        },
    )
}

fn matmul() -> impl Strategy<Value = Matmul> {
    (dim(), dim(), dim(), any::<bool>(), any::<bool>()).prop_map(
        |(m, k, n, transpose_a, transpose_b)| {
            let mut options = Matmul::new(m, k, n);
            options.transpose_a = transpose_a;
            options.transpose_b = transpose_b;
            options
        },
    )
}

fn rope() -> impl Strategy<Value = Rope> {
    let counts = (dim(), dim(), dim(), dim(), dim());
    (counts, any::<bool>(), value()).prop_map(
        |((tokens, heads, half, rotated, first), interleaved, base)| {
            let head_len = half.saturating_mul(2);
            let mut rope = Rope::new(tokens, heads, head_len)
                .with_first(first)
                .with_base(0.75 + base.abs());
            // Half of them rotate the whole head, and most can.
            if rotated % 2 != 0 {
                rope.rotated = rotated;
            }
            rope.interleaved = interleaved;
            rope
        },
    )
}

fn attention() -> impl Strategy<Value = Attention> {
    let counts = (dim(), dim(), dim(), dim(), dim(), dim());
    let (causal, window) = (any::<bool>(), proptest::option::of(dim()));
    let scores = (proptest::option::of(value()), value());
    (counts, causal, window, scores).prop_map(
        |((tokens, group, kv_heads, head_len, positions, first), causal, window, scores)| {
            let heads = group.saturating_mul(kv_heads);
            let mut attention = Attention::new(tokens, heads, head_len)
                .with_kv_heads(kv_heads)
                .with_scale(scores.1);
            attention.positions = if causal {
                first.saturating_add(tokens)
            } else {
                positions
            };
            attention.causal = causal.then_some(first);
            attention.window = window.filter(|_| causal);
            attention.soft_cap = scores.0.map(f32::abs);
            attention
        },
    )
}

fn rearrange() -> impl Strategy<Value = Rearrange> {
    let size = prop_oneof![12 => 0..7usize, 1 => dim()];
    let axes = proptest::collection::vec((size, -40..40_isize), 0..7);
    (axes, dim()).prop_map(|(axes, offset)| {
        let (shape, strides): (Vec<usize>, Vec<isize>) = axes.into_iter().unzip();
        Rearrange::new(&shape, &strides).with_offset(offset)
    })
}

fn reduce_axis() -> impl Strategy<Value = ReduceAxis> {
    let fold = proptest::sample::select(AxisFold::ALL.to_vec());
    (fold, dim(), dim(), dim())
        .prop_map(|(fold, outer, len, inner)| ReduceAxis::new(fold, outer, len, inner))
}

fn op() -> impl Strategy<Value = Op> {
    let fixed: Vec<Op> = support::sample_ops().collect();
    prop_oneof![
        4 => proptest::sample::select(fixed),
        1 => (value(), value()).prop_map(|(min, max)| Op::Clip { min, max }),
        1 => value().prop_map(|alpha| Op::Elu { alpha }),
        1 => (dim(), dim()).prop_map(|(rows, cols)| Op::BiasAdd { rows, cols }),
        1 => (dim(), dim()).prop_map(|(rows, cols)| Op::SoftmaxRows { rows, cols }),
        1 => (dim(), dim()).prop_map(|(rows, cols)| Op::LogSoftmaxRows { rows, cols }),
        1 => (dim(), dim(), value())
            .prop_map(|(rows, cols, epsilon)| Op::LayerNorm { rows, cols, epsilon }),
        1 => (dim(), dim(), value())
            .prop_map(|(rows, cols, epsilon)| Op::RmsNorm { rows, cols, epsilon }),
        1 => (dim(), dim()).prop_map(|(rows, cols)| Op::Transpose { rows, cols }),
        1 => dim().prop_map(|stride| Op::UnpackBytes { stride }),
        1 => dim().prop_map(|stride| Op::PackBytes { stride }),
        1 => (dim(), dim()).prop_map(|(rows, cols)| Op::GatherRows { rows, cols }),
        1 => (dim(), dim()).prop_map(|(rows, cols)| Op::ScatterRows { rows, cols }),
        1 => (dim(), dim(), dim()).prop_map(|(rows, cols, k)| Op::TakeAlongRows { rows, cols, k }),
        1 => (dim(), dim()).prop_map(|(rows, cols)| Op::ArgmaxRows { rows, cols }),
        1 => (dim(), dim(), dim()).prop_map(|(rows, cols, k)| Op::TopKRows { rows, cols, k }),
        1 => (dim(), dim()).prop_map(|(rows, cols)| Op::CumsumRows { rows, cols }),
        1 => (dim(), dim()).prop_map(|(rows, cols)| Op::CumprodRows { rows, cols }),
        1 => (dim(), dim()).prop_map(|(rows, cols)| Op::SortRows { rows, cols }),
        1 => (dim(), dim()).prop_map(|(rows, cols)| Op::ArgsortRows { rows, cols }),
        1 => (dim(), dim()).prop_map(|(rows, len)| Op::FftRows { rows, len }),
        1 => (dim(), 0..9u32).prop_map(|(rows, k)| Op::FftRows { rows, len: 1 << k }),
        2 => rearrange().prop_map(|options| Op::Rearrange { options }),
        2 => reduce_axis().prop_map(|options| Op::ReduceAxis { options }),
        1 => (dim(), dim(), dim())
            .prop_map(|(rows, a_cols, b_cols)| Op::ConcatRows { rows, a_cols, b_cols }),
        2 => attention().prop_map(|options| Op::Attention { options }),
        2 => rope().prop_map(|options| Op::Rope { options }),
        2 => (dim(), dim(), dim()).prop_map(|(m, k, n)| Op::Matmul { m, k, n }),
        2 => matmul().prop_map(|options| Op::MatmulWith { options }),
        2 => conv().prop_map(|options| Op::Convolve2d { options }),
        2 => layer().prop_map(|options| Op::ConvolveLayer { options }),
    ]
}

/// The lengths that the operation wants, where they can be had.
fn wanted(op: &Op, free: usize) -> Vec<usize> {
    let area = |rows: usize, cols: usize| {
        rows.checked_mul(cols)
            .filter(|&len| len < 50_000)
            .unwrap_or(free)
    };
    match *op {
        Op::BiasAdd { rows, cols } | Op::RmsNorm { rows, cols, .. } => {
            vec![area(rows, cols), area(1, cols)]
        }
        Op::GatherRows { rows, cols } => vec![area(rows, cols), free],
        Op::ScatterRows { cols, .. } => vec![area(free.min(200), cols), free.min(200)],
        Op::UnpackBytes { stride } => vec![area(1, stride)],
        Op::PackBytes { stride } => vec![area(4, stride)],
        Op::Attention { options } => {
            let rows = |rows, heads| area(area(rows, heads), options.head_len);
            let cached = rows(options.positions, options.kv_heads);
            vec![rows(options.tokens, options.heads), cached, cached]
        }
        Op::Rope { ref options } => {
            vec![area(area(options.tokens, options.heads), options.head_len)]
        }
        Op::Rearrange { ref options } => {
            let axes = options.shape.iter().zip(&options.strides);
            let reach = axes.map(|(&size, &stride)| area(size, stride.max(0).unsigned_abs()));
            vec![
                reach
                    .sum::<usize>()
                    .saturating_add(options.offset)
                    .min(50_000),
            ]
        }
        Op::ReduceAxis { options } => vec![area(area(options.outer, options.len), options.inner)],
        Op::ConcatRows {
            rows,
            a_cols,
            b_cols,
        } => vec![area(rows, a_cols), area(rows, b_cols)],
        Op::TakeAlongRows { rows, cols, k } => vec![area(rows, cols), area(rows, k)],
        Op::LayerNorm { rows, cols, .. } => {
            vec![area(rows, cols), area(1, cols), area(1, cols)]
        }
        Op::SoftmaxRows { rows, cols }
        | Op::LogSoftmaxRows { rows, cols }
        | Op::ArgmaxRows { rows, cols }
        | Op::TopKRows { rows, cols, .. }
        | Op::CumsumRows { rows, cols }
        | Op::CumprodRows { rows, cols }
        | Op::SortRows { rows, cols }
        | Op::ArgsortRows { rows, cols }
        | Op::Transpose { rows, cols } => {
            vec![area(rows, cols)]
        }
        Op::FftRows { rows, len } => vec![area(area(rows, len), 2)],
        Op::Matmul { m, k, n }
        | Op::MatmulWith {
            options: Matmul { m, k, n, .. },
        } => vec![area(m, k), area(k, n)],
        Op::Convolve2d { options: c } => vec![
            area(c.input_rows, c.input_cols),
            area(c.kernel_rows, c.kernel_cols),
        ],
        Op::ConvolveLayer { options: c } => {
            let image = c.image;
            let channels = c.channels.checked_div(c.groups).unwrap_or(0);
            let input = area(image.input_rows, image.input_cols);
            let kernel = area(image.kernel_rows, image.kernel_cols);
            vec![
                area(area(c.batch, c.channels), input),
                area(area(c.filters, channels), kernel),
            ]
        }
        _ => vec![free; op.inputs().len()],
    }
}

/// Makes indices below `count` of elements, if they shall be any and none shall be wrong.
fn as_indices(elements: &mut [f32], count: usize, seed: u64) {
    if count > 0 && !seed.is_multiple_of(4) {
        for element in elements {
            *element = (element.abs() as usize % count) as f32;
        }
    }
}

/// Mostly the lengths wanted, sometimes others, sometimes too few inputs or too many.
fn case() -> impl Strategy<Value = Case> {
    let wrong = prop_oneof![6 => Just(None), 1 => (0..3usize, 0..100usize).prop_map(Some)];
    (
        op(),
        0..300usize,
        wrong,
        any::<u64>(),
        proptest::collection::vec(value(), 1..40),
    )
        .prop_map(|(op, free, wrong, seed, special)| {
            let mut lens = wanted(&op, free);
            if let Some((place, len)) = wrong {
                lens.truncate(place + 1);
                lens.resize(place + 1, len);
            }
            let mut random = support::Random(seed);
            let fill = |len: usize| {
                let mut values = random.values(len);
                for (i, special) in special.iter().enumerate().take(len / 8) {
                    values[(i * 37) % len] = *special;
                }
                values
            };
            let mut inputs: Vec<Vec<f32>> = lens.into_iter().map(fill).collect();
            let count = match &op {
                Op::GatherRows { rows: count, .. }
                | Op::ScatterRows { rows: count, .. }
                | Op::TakeAlongRows { cols: count, .. } => *count,
                _ => 0,
            };
            if let Some(indices) = inputs.get_mut(1) {
                as_indices(indices, count, seed);
            }
            Case { op, inputs }
        })
}

/// Sums of extremes overflow on the way to a finite result; everything else is judged.
fn is_judged(case: &Case) -> bool {
    let sums = matches!(
        case.op,
        Op::Matmul { .. }
            | Op::MatmulWith { .. }
            | Op::Convolve2d { .. }
            | Op::ConvolveLayer { .. }
            | Op::Dot
            | Op::Sum
            | Op::Mean
            | Op::GeluTanh
            | Op::GeluMul
            | Op::LayerNorm { .. }
            | Op::RmsNorm { .. }
            | Op::CumsumRows { .. }
            | Op::ScatterRows { .. }
    );
    let sums = match case.op {
        Op::ReduceAxis { options } => matches!(options.fold, AxisFold::Sum | AxisFold::Mean),
        _ => sums,
    };
    // A quotient of a denormal may be 0, of which an infinite gain makes NaN.
    if matches!(case.op, Op::LayerNorm { .. } | Op::RmsNorm { .. }) {
        let gains = case.inputs[1..].iter().flatten();
        if gains.into_iter().any(|gain| gain.is_infinite())
            && case.inputs[0].iter().any(|x| x.is_subnormal())
        {
            return false;
        }
    }
    // The weight of a low score may be 0, of which an infinite value makes NaN.
    if let Op::Attention { options } = &case.op {
        let limited = |x: &f32| x.abs() <= 1e6;
        let all = case.inputs.iter().flatten().chain([&options.scale]);
        return all.into_iter().all(limited);
    }
    // Of a transform with NaN or an infinity, it is not stated which results are NaN.
    if let Op::FftRows { .. } = case.op {
        return case.inputs[0].iter().all(|x| x.abs() <= 1e15);
    }
    // Products of neighbours may be beyond all numbers.
    if let Op::CumprodRows { cols, .. } = case.op {
        let sizes = |row: &[f32]| row.iter().map(|x| x.abs().log2().abs()).sum::<f32>();
        let mut rows = case.inputs[0].chunks(cols.max(1));
        return rows.all(|row| sizes(row) < 120.0);
    }
    let extreme = |x: &f32| x.is_finite() && x.abs() > 1e15;
    !(sums && case.inputs.iter().flatten().any(extreme))
}

fn check(device: &GpuDevice, on_gpu: bool, case: &Case) -> Result<(), TestCaseError> {
    let alone = device.run(&case.op, &case.inputs());
    let mut batch = GpuCommandBatch::new(device.clone());
    let ids: Vec<_> = case
        .inputs
        .iter()
        .map(|values| batch.upload(values))
        .collect();
    let id = batch.record(case.op.clone(), &ids);
    let batched = batch.execute_sync().and_then(|()| batch.read_sync(id));
    match (alone, batched) {
        (Ok(alone), Ok(batched)) => {
            let bits = |values: &[f32]| values.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
            prop_assert_eq!(bits(&alone), bits(&batched), "alone and in a batch");
            if is_judged(case) {
                case.judge(&alone, on_gpu).map_err(TestCaseError::fail)?;
            }
        }
        (Err(alone), Err(batched)) => {
            // Which of host and device runs out first differs.
            let size = |code| matches!(code, "OUT_OF_MEMORY" | "LIMIT_EXCEEDED");
            let (alone, batched) = (alone.code(), batched.code());
            prop_assert!(
                alone == batched || (size(alone) && size(batched)),
                "{} {}",
                alone,
                batched
            );
        }
        (alone, batched) => prop_assert!(false, "alone {:?}, in a batch {:?}", alone, batched),
    }
    Ok(())
}

fn fuzz(device: &GpuDevice, on_gpu: bool, cases: u32) {
    let ran = AtomicUsize::new(0);
    // The same cases in every run, so that a failure is of a change's making; `cargo xtask test --exhaustive` draws
    // a hundred times as many others.
    let exhaustive = std::env::var_os("RELAMPAGO_EXHAUSTIVE").is_some();
    let config = Config {
        cases: if exhaustive { cases * 100 } else { cases },
        rng_seed: if exhaustive {
            RngSeed::Random
        } else {
            RngSeed::Fixed(SEED)
        },
        failure_persistence: None,
        ..Config::default()
    };
    TestRunner::new(config)
        .run(&case(), |case| {
            ran.fetch_add(1, Ordering::Relaxed);
            check(device, on_gpu, &case)
        })
        .unwrap_or_else(|failure| panic!("{}: {failure}", device.info()));
    println!(
        "fuzz on {}: {} random cases, none panicked",
        device.info(),
        ran.into_inner()
    );
}

#[test]
fn simd_never_panics() {
    for &instruction_set in InstructionSet::available() {
        let builder = GpuDevice::builder().backend(Backend::Simd);
        let device = builder
            .instruction_set(instruction_set)
            .build()
            .expect("SIMD is always there");
        fuzz(&device, false, 10_000);
    }
}

#[test]
fn gpu_never_panics() {
    let builder = GpuDevice::builder().backend(Backend::Gpu);
    fuzz(
        &builder.build().expect("an adapter, if in software"),
        true,
        5_000,
    );
}
