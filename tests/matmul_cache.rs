//! Products with cached weights on every back-end beside `f64`, and how far quantised weights
//! are from those that they stand for.

#![cfg(not(target_arch = "wasm32"))]

#[path = "matmul_cache/batches.rs"]
mod batches;
mod support;

use relampago::{
    Backend, GpuDevice, GpuMatmulCache, HalfPrecision, InstructionSet, MemoryLayout,
    QuantizedWeights, Result, TensorView, WeightFormat,
};
use support::Random;

const FORMATS: [WeightFormat; 4] = [
    WeightFormat::F32,
    WeightFormat::F16,
    WeightFormat::Q8_0,
    WeightFormat::Q4_0,
];

/// `m`, `k` and `n`: vectors, blocks of weights cut off, and more than a panel each way.
const SHAPES: [[usize; 3]; 12] = [
    [1, 1, 1],
    [1, 32, 5],
    [3, 31, 65],
    [1, 300, 333],
    [5, 33, 64],
    [37, 53, 91],
    [13, 257, 300],
    [200, 64, 33],
    [2, 1, 70],
    [70, 600, 1],
    [40, 96, 68],
    [17, 45, 32],
];

fn devices() -> Vec<GpuDevice> {
    let simd = GpuDevice::builder().backend(Backend::Simd);
    let sets = InstructionSet::available().iter();
    let mut devices: Vec<_> = sets
        .map(|&isa| simd.clone().instruction_set(isa).build().unwrap())
        .collect();
    let gpu = GpuDevice::builder().backend(Backend::Gpu).build();
    devices.push(gpu.expect("an adapter, if in software"));
    devices
}

/// Weights as they are after quantisation.
fn rounded(weights: &[f32], k: usize, n: usize, format: WeightFormat) -> Vec<f32> {
    if format == WeightFormat::F32 {
        return weights.to_vec();
    }
    let quantized = QuantizedWeights::new(weights, k, n, format).unwrap();
    quantized.dequantize().unwrap()
}

/// A product beside one in `f64` with the weights that the format holds.
fn check(out: &[f32], input: &[f32], weights: &[f32], [m, k, n]: [usize; 3], what: &str) {
    assert_eq!(out.len(), m * n);
    for (place, &is) in out.iter().enumerate() {
        let row = &input[place / n * k..][..k];
        let column = weights.iter().skip(place % n).step_by(n);
        let terms = row.iter().zip(column);
        let terms = terms.map(|(&a, &b)| f64::from(a) * f64::from(b));
        let (sum, magnitude) = terms.fold((0.0, 0.0), |(s, m), x: f64| (s + x, m + x.abs()));
        let error = (f64::from(is) - sum).abs();
        assert!(
            error <= 16.0 * f64::from(f32::EPSILON) * magnitude,
            "{what}: value {place} is {is}, not {sum}"
        );
    }
}

/// Shapes without elements must take no time.
#[test]
fn empty_weights_accept_any_side() {
    for format in FORMATS {
        for [k, n] in [[usize::MAX, 0], [0, usize::MAX]] {
            let device = GpuDevice::builder().backend(Backend::Simd).build().unwrap();
            let mut cache = GpuMatmulCache::new(device);
            let view = TensorView::new_2d(k, n).unwrap();
            let inserted = cache.insert_view("none", &view.bind(&[]).unwrap(), format);
            assert_eq!((inserted, cache.iter().len()), (Ok(()), 1));
        }
    }
    let k = usize::MAX - 31;
    for format in [WeightFormat::Q8_0, WeightFormat::Q4_0] {
        let taken = |n| QuantizedWeights::from_blocks(&[], k, n, format);
        assert_eq!(taken(0).unwrap().shape(), [k, 0]);
        assert_eq!(taken(1).unwrap_err().code(), "SHAPE_OVERFLOW");
    }
}

#[test]
fn products_are_correct_in_every_format_on_every_back_end() {
    for device in devices() {
        let mut cache = GpuMatmulCache::new(device);
        let info = cache.device().info();
        for [m, k, n] in SHAPES {
            let (input, weights) = (Random(1).values(m * k), Random(2).values(k * n));
            for format in FORMATS {
                let view = TensorView::new_2d(k, n).unwrap().bind(&weights).unwrap();
                cache.insert_view("w", &view, format).unwrap();
                let mut out = vec![f32::NAN; m * n];
                cache.matmul_cached("w", &input, &mut out, m).unwrap();
                let weights = rounded(&weights, k, n, format);
                let what = format!("{m}×{k}×{n} in {format:?} on {info}");
                check(&out, &input, &weights, [m, k, n], &what);
            }
        }
    }
}

/// Without cooperative matrices the results are as exact as elsewhere.
#[test]
fn f16_products_do_not_round_f16_weights_again() {
    let builder = GpuDevice::builder().backend(Backend::Gpu);
    let device = builder.half_precision(true).build().unwrap();
    let used = device.info().half_precision == HalfPrecision::Used;
    println!("{}", device.info().half_precision);
    let mut cache = GpuMatmulCache::new(device);
    for [m, k, n] in [
        [1, 300, 333],
        [7, 33, 64],
        [31, 70, 29],
        [130, 600, 129],
        [512, 64, 256],
    ] {
        // Of the input what binary16 holds.
        let halves = |values: Vec<f32>| rounded(&values, values.len(), 1, WeightFormat::F16);
        let input = halves(Random(1).values(m * k));
        let weights = Random(2).values(k * n);
        let view = TensorView::new_2d(k, n).unwrap().bind(&weights).unwrap();
        cache.insert_view("w", &view, WeightFormat::F16).unwrap();
        let words = 4 * k.div_ceil(32) * 16 * n;
        let tiles = 2 * k.next_multiple_of(32) * n.next_multiple_of(128);
        let bytes = words + if used { tiles } else { 0 };
        assert_eq!(cache.weight_bytes(), bytes);
        let mut out = vec![f32::NAN; m * n];
        cache.matmul_cached("w", &input, &mut out, m).unwrap();
        let weights = rounded(&weights, k, n, WeightFormat::F16);
        let what = format!("{m}×{k}×{n}");
        check(&out, &input, &weights, [m, k, n], &what);
    }
}

#[test]
fn large_products_do_not_depend_on_threads() {
    let [m, k, n] = [320, 300, 330];
    let (input, weights) = (Random(1).values(m * k), Random(2).values(k * n));
    for format in FORMATS {
        let run = |threads: usize| {
            let builder = GpuDevice::builder().backend(Backend::Simd);
            let mut cache = GpuMatmulCache::new(builder.threads(threads).build().unwrap());
            let view = TensorView::new_2d(k, n).unwrap().bind(&weights).unwrap();
            cache.insert_view("w", &view, format).unwrap();
            let mut out = vec![0.0; m * n];
            cache.matmul_cached("w", &input, &mut out, m).unwrap();
            out
        };
        let one = run(1);
        check(
            &one,
            &input,
            &rounded(&weights, k, n, format),
            [m, k, n],
            "one thread",
        );
        assert_eq!(one, run(2), "{format:?}");
    }
}

#[test]
fn weights_accept_any_layout() {
    let [m, k, n] = [3, 70, 45];
    let plain = TensorView::new_2d(k, n).unwrap();
    let tile_size = [16, 8];
    let views = [
        plain.with_layout(MemoryLayout::ColumnMajor).unwrap(),
        plain
            .with_layout(MemoryLayout::Tiled { tile_size })
            .unwrap(),
        TensorView::with_strides([k, n, 1, 1], [3 * n, 2, 1, 1]).unwrap(),
    ];
    let input = Random(1).values(m * k);
    for device in devices() {
        let mut cache = GpuMatmulCache::new(device);
        for (view, format) in views
            .iter()
            .flat_map(|view| FORMATS.map(|format| (view, format)))
        {
            let data = Random(3).values(view.reach());
            let view = view.bind(&data).unwrap();
            cache.insert_view("w", &view, format).unwrap();
            let mut out = vec![f32::NAN; m * n];
            cache.matmul_cached("w", &input, &mut out, m).unwrap();
            let weights = rounded(&view.contiguous().unwrap(), k, n, format);
            check(
                &out,
                &input,
                &weights,
                [m, k, n],
                &format!("{view:?} in {format:?}"),
            );
        }
    }
}

/// The largest error that a format states for weights among which the largest is `largest`.
fn stated(format: WeightFormat, weight: f32, largest: f32) -> f64 {
    let (weight, largest) = (f64::from(weight.abs()), f64::from(largest));
    match format {
        WeightFormat::F32 => 0.0,
        WeightFormat::F16 => (weight / 2_048.0).max(0.5_f64.powi(25)),
        WeightFormat::Q8_0 => largest / 253.0 + 4e-6,
        _ if weight < 15.0 / 16.0 * largest => largest / 15.8 + 4e-6,
        _ => largest / 7.9 + 4e-6,
    }
}

#[test]
fn quantised_weights_are_within_stated_error() {
    let (k, n) = (100, 64);
    // Column by column from the smallest scales there are to the largest.
    let exponent =
        |col: usize| (col as f32 / 63.0 * 19.0 + (1.0 - col as f32 / 63.0) * -30.0).exp2();
    let noise = Random(9).values(k * n);
    let weights: Vec<f32> = (0..k * n)
        .map(|i| noise[i] / 8.0 * exponent(i % n))
        .collect();
    for format in FORMATS {
        let limit = if format == WeightFormat::F16 {
            65_504.0
        } else {
            f32::MAX
        };
        let weights: Vec<f32> = weights.iter().map(|w| w.clamp(-limit, limit)).collect();
        let is = rounded(&weights, k, n, format);
        for (place, (&weight, &is)) in weights.iter().zip(&is).enumerate() {
            let (row, col) = (place / n, place % n);
            let block = row / 32 * 32..k.min(row / 32 * 32 + 32);
            let largest = block
                .map(|row| weights[row * n + col].abs())
                .fold(0.0, f32::max);
            let error = (f64::from(is) - f64::from(weight)).abs();
            let bound = stated(format, weight, largest);
            assert!(
                error <= bound,
                "{format:?}: {weight} became {is}, beyond {bound:e}"
            );
        }
    }
    // What the formats hold exactly, subnormal numbers included.
    let exact = [
        1.0,
        -0.5,
        65_504.0,
        2.0_f32.powi(-24),
        -3.0 * 2.0_f32.powi(-24),
        2.0_f32.powi(-14),
    ];
    assert_eq!(rounded(&exact, 6, 1, WeightFormat::F16), exact);
    let integers: Vec<f32> = (-127..=128).map(|i| (i % 128) as f32).collect();
    assert_eq!(
        rounded(&integers, 1, 256, WeightFormat::Q8_0)[..1],
        [-127.0]
    );
}

#[test]
fn subnormal_f16_weights_count_on_every_back_end() {
    let weights: Vec<f32> = (0..64).map(|i| i as f32 * 2.0_f32.powi(-24)).collect();
    for device in devices() {
        let mut cache = GpuMatmulCache::new(device);
        let view = TensorView::new_2d(64, 1).unwrap().bind(&weights).unwrap();
        cache.insert_view("w", &view, WeightFormat::F16).unwrap();
        let mut out = [0.0];
        cache
            .matmul_cached("w", &[1024.0; 64], &mut out, 1)
            .unwrap();
        assert_eq!(out, [2_016.0 * 2.0_f32.powi(-14)]);
    }
}

/// Blocks as ggml has them, and the weights that they stand for, row-major.
fn blocks(k: usize, n: usize, format: WeightFormat) -> (Vec<u8>, Vec<f32>) {
    // 0.5, −1.25 and 3.5 · 2⁻¹⁰ as binary16.
    let scales = [(0x3800_u16, 0.5), (0xbd00, -1.25), (0x1b00, 3.5 / 1_024.0)];
    let (mut bytes, mut weights) = (Vec::new(), vec![0.0; k * n]);
    for index in 0..k / 32 * n {
        let (bits, scale) = scales[index % 3];
        bytes.extend(bits.to_le_bytes());
        let numbers: Vec<i32> = match format {
            WeightFormat::Q8_0 => (0..32)
                .map(|i| (i * 37 + index as i32) % 255 - 127)
                .collect(),
            _ => (0..32).map(|i| (i * 5 + index as i32) % 16 - 8).collect(),
        };
        let low = |i: usize| (numbers[i] + 8) as u8;
        if format == WeightFormat::Q8_0 {
            bytes.extend(numbers.iter().map(|&q| q as i8 as u8));
        } else {
            bytes.extend((0..16).map(|i| low(i) | (low(i + 16) << 4)));
        }
        let (col, first) = (index / (k / 32), index % (k / 32) * 32);
        for (i, q) in numbers.into_iter().enumerate() {
            weights[(first + i) * n + col] = q as f32 * scale;
        }
    }
    (bytes, weights)
}

#[test]
fn ggml_blocks_are_imported_exactly() {
    let [m, k, n] = [2, 96, 7];
    let input = Random(4).values(m * k);
    for format in [WeightFormat::Q8_0, WeightFormat::Q4_0] {
        let (bytes, weights) = blocks(k, n, format);
        let quantized = QuantizedWeights::from_blocks(&bytes, k, n, format).unwrap();
        assert_eq!(quantized.dequantize().unwrap(), weights);
        for device in devices() {
            let mut cache = GpuMatmulCache::new(device);
            cache.insert_quantized("w", quantized.clone()).unwrap();
            let mut out = vec![f32::NAN; m * n];
            cache.matmul_cached("w", &input, &mut out, m).unwrap();
            check(&out, &input, &weights, [m, k, n], &format!("{format:?}"));
        }
    }
}

#[test]
fn empty_shapes_give_zeros_or_nothing() {
    for device in devices() {
        let mut cache = GpuMatmulCache::new(device);
        for ([m, k, n], format) in [[2, 0, 3], [0, 4, 3], [2, 4, 0], [0, 0, 0]]
            .into_iter()
            .flat_map(|shape| FORMATS.map(|format| (shape, format)))
        {
            let weights = vec![1.0; k * n];
            let view = TensorView::new_2d(k, n).unwrap().bind(&weights).unwrap();
            cache.insert_view("w", &view, format).unwrap();
            let mut out = vec![f32::NAN; m * n];
            cache
                .matmul_cached("w", &vec![1.0; m * k], &mut out, m)
                .unwrap();
            assert_eq!(out, vec![k as f32; m * n]);
        }
    }
}

/// Tests views that repeat one element as often as a view may.
#[test]
fn oversized_weights_return_errors() {
    for device in devices() {
        let mut cache = GpuMatmulCache::new(device);
        for (k, n) in [(1 << 60, 1), (1, 1 << 60), (1 << 30, 1 << 30)] {
            let view = TensorView::with_strides([k, n, 1, 1], [0; 4]).unwrap();
            let view = view.bind(&[1.0]).unwrap();
            let error = cache.insert_view("w", &view, WeightFormat::F32);
            assert_eq!(error.unwrap_err().code(), "OUT_OF_MEMORY", "{k}×{n}");
        }
    }
}

#[test]
fn infinities_in_the_input_affect_only_their_row() {
    let (k, n) = (45, 3);
    for device in devices() {
        let mut cache = GpuMatmulCache::new(device);
        for format in FORMATS {
            let weights = vec![0.5; k * n];
            let view = TensorView::new_2d(k, n).unwrap().bind(&weights).unwrap();
            cache.insert_view("w", &view, format).unwrap();
            let mut input = vec![1.0; 2 * k];
            input[k - 1] = f32::INFINITY;
            let mut out = vec![f32::NAN; 2 * n];
            cache.matmul_cached("w", &input, &mut out, 2).unwrap();
            assert_eq!(out[..n], [f32::INFINITY; 3], "{format:?}");
            let weight = f64::from(rounded(&weights, k, n, format)[0]);
            for &is in &out[n..] {
                assert!(
                    (f64::from(is) - 45.0 * weight).abs() < 1e-4,
                    "{format:?}: {is}"
                );
            }
        }
    }
}

#[test]
fn invalid_names_shapes_and_weights_return_errors() {
    fn code<T: std::fmt::Debug>(result: Result<T>) -> &'static str {
        result.expect_err("a mistake").code()
    }
    for device in devices() {
        let mut cache = GpuMatmulCache::new(device);
        assert_eq!(code(cache.insert("w", &[0.0; 5], 2, 3)), "LENGTH_MISMATCH");
        assert_eq!(
            code(cache.insert("w", &[], usize::MAX, 3)),
            "SHAPE_OVERFLOW"
        );
        assert_eq!(
            code(cache.matmul_cached("w", &[], &mut [], 0)),
            "INVALID_ARGUMENT"
        );
        cache.insert("w", &[1.0; 6], 2, 3).unwrap();
        let mut out = [7.0; 3];
        assert_eq!(
            code(cache.matmul_cached("w", &[0.0; 3], &mut out, 1)),
            "LENGTH_MISMATCH"
        );
        assert_eq!(
            code(cache.matmul_cached("w", &[0.0; 4], &mut out, 2)),
            "LENGTH_MISMATCH"
        );
        assert_eq!(
            code(cache.matmul_cached("w", &[], &mut out, usize::MAX)),
            "SHAPE_OVERFLOW"
        );
        assert_eq!(out, [7.0; 3]);
        assert_eq!(cache.weight_count(), 1);
        assert!(cache.weight_bytes() >= 24);
        assert_eq!(cache.iter().next(), Some(("w", [2, 3], WeightFormat::F32)));
        assert!(cache.remove("w") && !cache.remove("w"));
    }
    let quantize = |weight: f32, format| code(QuantizedWeights::new(&[weight], 1, 1, format));
    for format in [WeightFormat::F16, WeightFormat::Q8_0, WeightFormat::Q4_0] {
        for weight in [f32::NAN, f32::INFINITY, 1e8] {
            assert_eq!(quantize(weight, format), "INVALID_ARGUMENT");
        }
    }
    assert_eq!(quantize(1.0, WeightFormat::F32), "INVALID_ARGUMENT");
    let blocks = |len, k, format| code(QuantizedWeights::from_blocks(&vec![0; len], k, 1, format));
    assert_eq!(blocks(33, 32, WeightFormat::Q8_0), "LENGTH_MISMATCH");
    assert_eq!(blocks(34, 31, WeightFormat::Q8_0), "INVALID_ARGUMENT");
    assert_eq!(blocks(64, 32, WeightFormat::F16), "INVALID_ARGUMENT");
    for scale in [0x7c00_u16, 0xfc00, 0x7e00] {
        let mut block = vec![0; 2 * 18];
        block[18..20].copy_from_slice(&scale.to_le_bytes());
        let weights = QuantizedWeights::from_blocks(&block, 64, 1, WeightFormat::Q4_0);
        assert_eq!(code(weights), "INVALID_ARGUMENT");
    }
}

#[test]
fn large_unscaled_terms_do_not_overflow() {
    let (k, n) = (32, 40);
    let weights = vec![1e-3; k * n];
    for device in devices() {
        for format in FORMATS {
            for m in [1, 5, 17] {
                let mut cache = GpuMatmulCache::new(device.clone());
                let view = TensorView::new_2d(k, n).unwrap();
                let view = view.bind(&weights).unwrap();
                cache.insert_view("w", &view, format).unwrap();
                let (input, mut out) = (vec![1e36; m * k], vec![f32::NAN; m * n]);
                cache.matmul_cached("w", &input, &mut out, m).unwrap();
                let what = format!("{format:?}, {m} rows on {:?}", device.backend());
                let weights = rounded(&weights, k, n, format);
                check(&out, &input, &weights, [m, k, n], &what);
            }
        }
    }
}
