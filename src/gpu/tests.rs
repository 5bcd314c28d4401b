//! Tests of kernels that are chosen by the properties of the adapter, on any adapter.

#[cfg(feature = "llm-core")]
mod attention;
#[cfg(feature = "llm-core")]
mod blocks;
mod calibrate;
mod choices;
mod long;
mod params;
mod verify;

use super::{Gpu, Options, Preference};
use crate::batch::{BufferId, GpuCommandBatch};
use crate::device::executor::Executor;
use crate::device::{Backend, DeviceBuilder, GpuDevice};
use crate::error::Result;
use crate::ops::HalfPrecision;
use crate::ops::policy::Policy;
use crate::ops::reduce_op::MaxOp;
use crate::ops::{Conv2d, Op};
use crate::simd::Fold;
use crate::{reference, runtime};
use std::sync::Arc;

fn noise(len: usize, seed: usize) -> Vec<f32> {
    let value = |i: usize| ((i * 7_919 + seed * 104_729) % 1_009) as f32 / 504.5 - 1.0;
    (0..len).map(value).collect()
}

/// Opens the best adapter that meets the options.
fn open(options: &Options) -> Result<Arc<Gpu>> {
    let mut opened = runtime::block_on(Gpu::open_some(options, 1))?;
    Ok(opened.swap_remove(0))
}

fn any() -> Options {
    let preference = Preference::Any;
    Options {
        preference,
        ..Options::default()
    }
}

/// Opens a device with the kernels of hardware adapters, or of software adapters, on any adapter.
fn pretend(software: bool) -> Arc<Gpu> {
    let opened = open(&any());
    let mut gpu = opened.expect("the tests need an adapter, llvmpipe for one");
    let only = Arc::get_mut(&mut gpu).expect("nothing else holds it yet");
    only.adapter.software = software;
    gpu
}

fn judge(gpu: &Arc<Gpu>, op: &Op, inputs: &[&[f32]]) {
    let wanted = reference::evaluate(op, inputs);
    let mut result = vec![f32::NAN; wanted.len()];
    runtime::block_on(gpu.run_into(op, inputs, &mut result)).unwrap();
    for (i, (want, &is)) in wanted.iter().zip(&result).enumerate() {
        let software = gpu.adapter.software;
        assert!(
            want.accepts(is, op.ulp()),
            "{op:?}, software {software}: value {i} is {is}, not {want:?}"
        );
    }
}

fn judge_matmul(gpu: &Arc<Gpu>, [m, k, n]: [usize; 3]) {
    judge(
        gpu,
        &Op::Matmul { m, k, n },
        &[&noise(m * k, 1), &noise(k * n, 2)],
    );
}

#[test]
fn matmul_is_correct_with_hardware_and_software_kernels() {
    for software in [true, false] {
        let gpu = pretend(software);
        for shape in [
            [1, 1, 1],
            [1, 300, 70],
            [70, 300, 1],
            [3, 5, 7],
            [3, 0, 7],
            [17, 33, 65],
            [20, 36, 68],
            [64, 16, 64],
            [127, 129, 131],
        ] {
            judge_matmul(&gpu, shape);
        }
    }
}

#[test]
fn matmul_with_a_vector_is_correct() {
    let gpu = pretend(false);
    for shape in [
        [5, 64, 1],
        [7, 333, 1],
        [9, 18, 1],
        [1_301, 64, 1],
        [3, 4_100, 1],
        [1, 1_000, 200],
        [1, 333, 331],
        [1, 64, 1_028],
        [1, 3, 70_001],
        [1, 70_001, 3],
    ] {
        judge_matmul(&gpu, shape);
    }
}

#[test]
fn matmul_with_large_tiles_is_correct() {
    let gpu = pretend(false);
    // Just past so many tiles of 64 × 64 and of 128 × 128 that those are chosen.
    for shape in [
        [772, 36, 1_028],
        [769, 35, 1_025],
        [1_540, 20, 2_052],
        [1_537, 17, 2_049],
    ] {
        judge_matmul(&gpu, shape);
    }
}

#[test]
fn unused_buffers_are_released_for_new_ones() {
    use super::pool::Usage;

    const MEGABYTE: usize = 1 << 18;
    let gpu = pretend(false);
    let taken = |len: usize| gpu.pool.take(Usage::Storage, len).unwrap();
    drop((0..256).map(|_| taken(MEGABYTE)).collect::<Vec<_>>());
    let ids: Vec<u64> = (0..80).map(|_| taken(40 * MEGABYTE).id).collect();
    assert_ne!(ids[0], ids[1], "what was used just before stays");
    assert_eq!(ids[78], ids[79], "what was not since goes");
    // Three that take turns with more than fits: the first two stay.
    let turn = || [100, 120, 90].map(|size| taken(size * MEGABYTE).id);
    for _ in 0..30 {
        turn();
    }
    let (one, other) = (turn(), turn());
    let same = one.iter().zip(&other).filter(|(one, other)| one == other);
    assert_eq!(same.count(), 2);
}

#[test]
fn oversized_buffers_evict_nothing() {
    use super::pool::{Pool, Usage};

    let gpu = pretend(false);
    let limits = wgpu::Limits {
        max_storage_buffer_binding_size: u64::MAX,
        ..gpu.device.limits()
    };
    let pool = Pool::new(gpu.device.clone(), &limits, None);
    let id = |len: usize| pool.take(Usage::Storage, len).unwrap().id;
    let first = id(1 << 20);
    // Long enough for it to be stale.
    for _ in 0..100 {
        id(1);
    }
    id(80 << 20);
    assert_eq!(id(1 << 20), first);
}

/// Times of a dropped profiler would take memory for as long as the device is used.
#[test]
fn dropped_profiler_stops_timing() {
    let device = GpuDevice::builder().backend(Backend::Gpu).build().unwrap();
    let Ok(profiler) = device.profile() else {
        return; // The adapter keeps no timestamps.
    };
    let Executor::Gpu(gpu) = device.executor() else {
        panic!("a GPU was adopted");
    };
    let is_timed = || gpu.stamps_for(["relu"].into_iter()).is_some();
    assert!(is_timed());
    drop(profiler);
    assert!(!is_timed());
}

#[test]
fn quantized_weights_are_dequantized_once_for_many_rows() {
    use super::weights::multiply_words;
    use crate::tensor::quantized::WeightFormat;

    let gpu = pretend(false);
    let (k, n) = (40, 36);
    for (m, wanted) in [
        (15, &["matmul_q4_0"][..]),
        (16, &["unpack_q4_0", "matmul_32"]),
    ] {
        let mut recorder = super::recorder::Recorder::new(&gpu).unwrap();
        // A row of scales and four of numbers for each of two blocks.
        let lens = [m * k, 2 * 5 * n, m * n];
        let [a, words, c] = lens.map(|len| recorder.allocate(len).unwrap());
        let format = WeightFormat::Q4_0;
        multiply_words(&mut recorder, format, [&a, &words], &c, [m, k, n]).unwrap();
        assert_eq!(recorder.names(), wanted);
        recorder.abandon().unwrap();
    }
}

#[test]
fn long_sums_of_equal_terms_do_not_drift() {
    for software in [true, false] {
        let gpu = pretend(software);
        // Deeper than the parts in which they add up.
        for [m, k, n] in [[40, 2_100, 36], [772, 300, 132]] {
            let op = Op::Matmul { m, k, n };
            judge(&gpu, &op, &[&vec![1.1; m * k], &vec![0.37; k * n]]);
        }
        let x = vec![0.37; 3_000_001];
        for (op, inputs) in [
            (Op::Sum, &[&x[..]][..]),
            (Op::Mean, &[&x]),
            (Op::Dot, &[&x, &x]),
            (Op::Softmax, &[&x]),
        ] {
            judge(&gpu, &op, inputs);
        }
    }
}

#[test]
fn reductions_are_correct_with_large_and_small_workgroups() {
    for (software, len) in [1, 3, 255, 1_024, 8_193, 70_001]
        .into_iter()
        .flat_map(|len| [(true, len), (false, len)])
    {
        let gpu = pretend(software);
        let mut x = noise(len, 1);
        for special in [0.5, f32::NEG_INFINITY, f32::INFINITY, f32::NAN] {
            x[2 * len / 3] = special;
            for op in [Op::Sum, Op::Max, Op::Min, Op::Argmax, Op::Softmax] {
                judge(&gpu, &op, &[&x]);
            }
            judge(&gpu, &Op::Dot, &[&x, &x]);
        }
    }
}

#[test]
fn tiled_reductions_are_correct_with_large_and_small_workgroups() {
    let [rows, cols] = [50, 37];
    let data = noise(rows * cols, 1);
    for software in [true, false] {
        let gpu = pretend(software);
        let tiles =
            runtime::block_on(gpu.fold_tiles(&Fold::of::<MaxOp>().unwrap(), &data, [rows, cols]))
                .unwrap();
        assert_eq!(tiles.len(), 4 * 3);
        for (place, &tile) in tiles.iter().enumerate() {
            let [top, left] = [16 * (place / 3), 16 * (place % 3)];
            let values = (top..rows.min(top + 16))
                .flat_map(|row| &data[row * cols + left..row * cols + cols.min(left + 16)]);
            assert_eq!(tile, values.copied().fold(f32::NEG_INFINITY, f32::max));
        }
    }
}

/// Rows that a kernel holds in each way there is, and rows that are too long for it.
const ROWS: [(usize, usize); 13] = [
    (150, 4),
    (67, 60),
    (35, 68),
    (17, 512),
    (3, 1_021),
    (5, 1_024),
    (7, 64),
    (2, 1_028),
    (2, 4_093),
    (1, 4_096),
    (2, 16_381),
    (1, 16_384),
    (130, 16_386),
];

#[test]
fn softmax_is_correct_for_every_row_kernel() {
    for software in [true, false] {
        let gpu = pretend(software);
        for (rows, cols) in ROWS {
            let mut x = noise(rows * cols, 3);
            x[cols / 2] = f32::NEG_INFINITY;
            for op in [
                Op::SoftmaxRows { rows, cols },
                Op::LogSoftmaxRows { rows, cols },
            ] {
                judge(&gpu, &op, &[&x]);
            }
        }
    }
}

#[test]
fn norms_are_correct_for_every_row_kernel() {
    for software in [true, false] {
        let gpu = pretend(software);
        let epsilon = 1e-5;
        for (rows, cols) in ROWS.into_iter().chain([(1, 1), (2, 600_001)]) {
            // A mean and no like values.
            let x: Vec<f32> = noise(rows * cols, 3).iter().map(|x| x + 3.0).collect();
            let [gain, bias] = [4, 5].map(|seed| noise(cols, seed));
            let of_all = Op::LayerNorm {
                rows,
                cols,
                epsilon,
            };
            judge(&gpu, &of_all, &[&x, &gain, &bias]);
            let rms = Op::RmsNorm {
                rows,
                cols,
                epsilon,
            };
            judge(&gpu, &rms, &[&x, &gain]);
        }
    }
}

#[test]
fn convolutions_are_correct_with_every_kernel() {
    for software in [true, false] {
        judge_convolutions(&pretend(software));
    }
}

fn judge_convolutions(gpu: &Arc<Gpu>) {
    let sizes = [1, 3, 4, 7, 8, 16, 17];
    for (i, &kernel_rows) in sizes.iter().enumerate() {
        let kernel_cols = sizes[(3 * i + 1) % sizes.len()];
        // Rows that are made of vectors, and rows that are not; more than one tile of each.
        for (rows, cols) in [(35, 260), (18, 131), (kernel_rows, kernel_cols)] {
            for options in [
                Conv2d::same(rows, cols, kernel_rows, kernel_cols),
                Conv2d::valid(rows, cols, kernel_rows, kernel_cols),
                Conv2d::same(rows, cols, kernel_rows, kernel_cols).with_stride(2, 3),
            ] {
                let mut x = noise(rows * cols, 4);
                // No window but those that it lies in may see it.
                x[rows * cols / 2] = f32::INFINITY;
                let mut kernel = noise(kernel_rows * kernel_cols, 5);
                let op = Op::Convolve2d { options };
                judge(gpu, &op, &[&x, &kernel]);
                // Zeros around the input times an infinite weight are NaN.
                kernel[0] = f32::INFINITY;
                judge(gpu, &op, &[&x, &kernel]);
            }
        }
    }
}

/// Returns the error of rounding to f16, as a multiple of the unit in the last place.
fn rounded(x: f32) -> f32 {
    let unit = 2f32.powi((x.abs().log2().floor() as i32).max(-14) - 10);
    let near = (x / unit).round_ties_even() * unit;
    let value = if x == 0.0 { 0.0 } else { near };
    value.abs().min(f32::INFINITY).copysign(x)
}

/// The f16 bound also holds in f32, which adapters without cooperative matrices use.
#[test]
fn f16_matmul_is_within_stated_error() {
    let options = Options {
        half_precision: true,
        ..any()
    };
    let gpu = open(&options).expect("an adapter, llvmpipe for one");
    let used = gpu.half_precision() == HalfPrecision::Used;
    println!("{}", gpu.half_precision());
    for [m, k, n] in [
        [2, 2, 2],
        [1, 40, 50],
        [50, 40, 1],
        [16, 16, 16],
        [33, 70, 29],
        [127, 129, 131],
        [128, 32, 128],
        [130, 4_095, 260],
        [257, 3, 514],
    ] {
        // Beyond what f16 holds exactly, and below its normal numbers.
        let scale = |x: Vec<f32>, by: f32| x.iter().map(|x| x * by).collect::<Vec<_>>();
        let a = scale(noise(m * k, 1), 3.0);
        let b = scale(noise(k * n, 2), 1e-4);
        let round = |x: &[f32]| -> Vec<f32> { x.iter().map(|&x| rounded(x)).collect() };
        // A vector is not rounded.
        let exact = if used && m > 1 && n > 1 {
            [round(&a), round(&b)]
        } else {
            [a.clone(), b.clone()]
        };
        let op = Op::Matmul { m, k, n };
        let mut c = vec![f32::NAN; m * n];
        runtime::block_on(gpu.run_into(&op, &[&a, &b], &mut c)).unwrap();
        let wanted = reference::evaluate(&op, &[&exact[0], &exact[1]]);
        for (i, (want, &is)) in wanted.iter().zip(&c).enumerate() {
            assert!(
                want.accepts(is, op.ulp()),
                "{op:?}: value {i} is {is}, not {want:?}"
            );
        }
    }
}

#[test]
fn f16_matmul_skips_vectors_and_oversized_matrices() {
    let mut gpu = pretend(false);
    let only = Arc::get_mut(&mut gpu).expect("nothing else holds it yet");
    only.half_precision = HalfPrecision::Used;
    let suits = |shape| super::f16_matmul::suits(&gpu, shape);
    let most = gpu.max_len();
    for shape in [[2, 1, 2], [most / 256, 2, 2], [2, most / 256, 2]] {
        assert!(suits(shape), "{shape:?}");
    }
    // Neither operand nor the result is too large yet.
    for shape in [
        [1, 9, 9],
        [9, 9, 1],
        [most / 2, 2, 2],
        [2, most / 2, 2],
        [2, 2, most / 2],
    ] {
        assert!(!suits(shape), "{shape:?}");
    }
}

#[test]
fn f16_matmul_propagates_nan_and_overflow() {
    let options = Options {
        half_precision: true,
        ..any()
    };
    let gpu = open(&options).expect("an adapter, llvmpipe for one");
    let (m, k, n) = (3, 4, 2);
    let a = [
        [f32::NAN, 0.0, 0.0, 0.0],
        [f32::NEG_INFINITY, 1.0, 0.0, 0.0],
        [65_519.0, 70_000.0, 0.0, 0.0],
    ];
    let b = [[1.0, 0.0], [0.0, 1.0], [0.0; 2], [0.0; 2]];
    let mut c = [0.0; 6];
    let inputs: [&[f32]; 2] = [a.as_flattened(), b.as_flattened()];
    runtime::block_on(gpu.run_into(&Op::Matmul { m, k, n }, &inputs, &mut c)).unwrap();
    assert!(c[0].is_nan() && c[1].is_nan(), "{c:?}");
    assert_eq!(c[2], f32::NEG_INFINITY);
    assert!(c[3].is_nan(), "−∞ · 0 is no number: {c:?}");
    if gpu.half_precision() == HalfPrecision::Used {
        assert!(c[4].is_nan(), "∞ · 0 is no number: {c:?}");
        assert_eq!(c[5], f32::INFINITY);
    } else {
        assert_eq!(c[4..], [65_519.0, 70_000.0]);
    }
}

#[test]
fn light_programs_between_arrays_run_on_simd() {
    let gpu = pretend(false);
    let builder = GpuDevice::builder();
    let adopt = |builder: DeviceBuilder| builder.adopt(gpu.device.clone(), gpu.queue.clone());
    let streams = |device: GpuDevice,
                   record: &dyn Fn(&mut GpuCommandBatch, BufferId) -> BufferId| {
        let mut batch = GpuCommandBatch::new(device);
        let x = batch.placeholder(1000);
        let last = record(&mut batch, x);
        batch.compile(&[last]).unwrap().streamable().is_some()
    };
    let cheap = |batch: &mut GpuCommandBatch, x| (0..20).fold(x, |x, _| batch.scale(x, 0.5));
    let dear = |batch: &mut GpuCommandBatch, x| (0..3).fold(x, |x, _| batch.gelu(x));
    let held = |batch: &mut GpuCommandBatch, x| {
        let bias = batch.upload(&[1.0; 1000]);
        batch.vec_add(x, bias)
    };
    assert!(streams(adopt(builder.clone()), &cheap));
    assert!(!streams(adopt(builder.clone()), &dear));
    assert!(
        !streams(adopt(builder.clone()), &held),
        "on the GPU already"
    );
    // Each value of both inputs counts.
    let twice = |batch: &mut GpuCommandBatch, x| batch.mul(x, x);
    let elementwise = 1500;
    let larger = builder.clone().policy(Policy {
        elementwise,
        ..Policy::default()
    });
    assert!(streams(adopt(larger.clone()), &cheap) && !streams(adopt(larger), &twice));
    let all = builder.clone().policy(Policy::ALWAYS_GPU);
    assert!(!streams(adopt(all), &cheap));
    assert!(!streams(adopt(builder.backend(Backend::Gpu)), &cheap));
}
