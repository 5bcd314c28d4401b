//! Tests of results on an NVIDIA GPU, which are ignored without one; its absence must be an error.

#![cfg(all(feature = "cuda", not(target_arch = "wasm32")))]

use relampago::cuda::{self, AttentionShape, CudaDevice, Error, Stream};
use relampago::ptx::half::{bf16_to_f32, f32_to_bf16};
use relampago::ptx::kernels::QuantFormat;
use relampago::ptx::{PtxType, Target};

/// Opens the first GPU.
fn device() -> CudaDevice {
    CudaDevice::open(0).expect("an NVIDIA GPU")
}

fn numbers(count: usize) -> Vec<f32> {
    (0..count)
        .map(|i| ((i * 7919) % 1009) as f32 / 504.5 - 1.0)
        .collect()
}

/// The largest error of a product in units of its bound.
fn error(a: &[f32], b: &[f32], c: &[f32], [m, k, n]: [usize; 3], unit: f64) -> f64 {
    let mut largest = 0f64;
    for i in 0..m * n {
        let terms = (0..k).map(|j| f64::from(a[i / n * k + j]) * f64::from(b[j * n + i % n]));
        let (sum, size) = terms.fold((0.0, 0.0), |(sum, size), x| (sum + x, size + f64::abs(x)));
        let bound = size * k as f64 * 2f64.powi(-24) + sum.abs() * unit + 1e-30;
        largest = largest.max((f64::from(c[i]) - sum).abs() / bound);
    }
    largest
}

#[test]
fn missing_gpu_returns_error() {
    let mut c = [0.0; 1];
    match cuda::matmul(&[2.0], &[3.0], &mut c, 1, 1, 1) {
        Ok(()) => assert_eq!(c, [6.0]),
        Err(error) => assert!(
            matches!(error, Error::NoDriver { .. } | Error::NoDevice { .. }),
            "{error}"
        ),
    }
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn products_of_all_shapes() {
    let device = device();
    println!(
        "{} {:?} {}",
        device.name(),
        device.capability(),
        device.target()
    );
    for [m, k, n] in [
        [1, 1, 1],
        [37, 53, 91],
        [128, 64, 132],
        [300, 0, 7],
        [260, 516, 388],
    ] {
        let (a, b) = (numbers(m * k), numbers(k * n));
        let mut c = vec![f32::NAN; m * n];
        cuda::matmul(&a, &b, &mut c, m, k, n).unwrap();
        let error = error(&a, &b, &c, [m, k, n], 2f64.powi(-24));
        assert!(error <= 1.0, "{m}×{k}×{n}: {error}");
    }
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn products_on_tensor_cores() {
    let device = device();
    if device.target() < Target::Sm80 {
        return;
    }
    for [m, k, n] in [
        [1, 8, 8],
        [200, 136, 264],
        [130, 0, 8],
        [513, 520, 1032],
        [3, 1032, 264],
        [70, 800, 136],
    ] {
        let round = |x: Vec<f32>| -> Vec<u16> { x.into_iter().map(f32_to_bf16).collect() };
        let back = |x: &[u16]| -> Vec<f32> { x.iter().map(|x| bf16_to_f32(*x)).collect() };
        let (a, b) = (round(numbers(m * k)), round(numbers(k * n)));
        let (on_a, on_b) = (device.upload(&a).unwrap(), device.upload(&b).unwrap());
        let mut c = device.upload(&vec![0x7fff; m * n]).unwrap();
        device
            .matmul_half(PtxType::BF16, &on_a, &on_b, &mut c, [m, k, n])
            .unwrap();
        let c = back(&c.download().unwrap());
        let error = error(&back(&a), &back(&b), &c, [m, k, n], 2f64.powi(-8));
        assert!(error <= 1.0, "{m}×{k}×{n}: {error}");
    }
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn products_as_tf32() {
    let device = device();
    if device.target() < Target::Sm80 {
        return;
    }
    for [m, k, n] in [[1, 4, 4], [300, 68, 132], [130, 0, 8], [513, 520, 1036]] {
        let (a, b) = (numbers(m * k), numbers(k * n));
        let (on_a, on_b) = (device.upload(&a).unwrap(), device.upload(&b).unwrap());
        let mut c = device.upload(&vec![f32::NAN; m * n]).unwrap();
        let shape = [m, k, n];
        device.matmul_tf32(&on_a, &on_b, &mut c, shape).unwrap();
        // Of each product, relative to its size: one matrix is rounded, the other cut off.
        let inputs = 3.01 * 2f64.powi(-11) / (k.max(1) as f64 * 2f64.powi(-24));
        let error = error(&a, &b, &c.download().unwrap(), shape, 2f64.powi(-24));
        assert!(error <= 1.0 + inputs, "{m}×{k}×{n}: {error}");
    }
    let (a, mut c) = (device.zeros(6).unwrap(), device.zeros(1).unwrap());
    let odd = device.matmul_tf32(&a, &a, &mut c, [1, 6, 1]);
    assert!(matches!(odd, Err(Error::Ptx(_))), "{odd:?}");
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn softmax_and_layer_norm() {
    let device = device();
    let (rows, cols) = (7, 1001);
    let x = numbers(rows * cols);
    let on_x = device.upload(&x).unwrap();
    let mut y = device.zeros(x.len()).unwrap();
    device.softmax_rows(&on_x, &mut y, rows, cols).unwrap();
    let values = y.download().unwrap();
    for (x, y) in x.chunks(cols).zip(values.chunks(cols)) {
        let total: f64 = x.iter().map(|x| f64::from(*x).exp()).sum();
        for (x, y) in x.iter().zip(y) {
            assert!((f64::from(*y) - f64::from(*x).exp() / total).abs() < 1e-8);
        }
    }
    let (ones, zeros) = (
        device.upload(&vec![1.0; cols]).unwrap(),
        device.zeros(cols).unwrap(),
    );
    device
        .layer_norm(&on_x, &ones, &zeros, &mut y, 1e-5)
        .unwrap();
    for row in y.download().unwrap().chunks(cols) {
        let mean = row.iter().sum::<f32>() / cols as f32;
        assert!(mean.abs() < 1e-5, "{mean}");
    }
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn attention_of_equal_keys_is_the_mean_of_values() {
    let device = device();
    let shape = AttentionShape::new(2, 4, 3, 64)
        .with_kv_heads(2)
        .with_keys(5);
    let (q, k) = (numbers(2 * 4 * 3 * 64), vec![0.5; 2 * 2 * 5 * 64]);
    let v = numbers(k.len());
    let [on_q, on_k, on_v] = [&q, &k, &v].map(|x| device.upload(x).unwrap());
    let mut o = device.zeros(q.len()).unwrap();
    device
        .attention([&on_q, &on_k, &on_v], &mut o, shape)
        .unwrap();
    for (i, o) in o.download().unwrap().into_iter().enumerate() {
        let head = i / (3 * 64);
        let of_keys = (head / 4 * 2 + head % 4 / 2) * 5 * 64;
        let mean = (0..5)
            .map(|key| v[of_keys + key * 64 + i % 64])
            .sum::<f32>()
            / 5.0;
        assert!((o - mean).abs() < 1e-5, "{i}: {o}, not {mean}");
    }
    let error = device.attention([&on_q, &on_k, &on_v], &mut o, shape.with_kv_heads(3));
    assert!(matches!(error, Err(Error::Ptx(_))), "{error:?}");
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn rows_of_all_lengths() {
    let device = device();
    for (rows, cols) in [
        (3, 1000),
        (2, 65_536),
        (2, 300_000),
        (1, 1_000_001),
        (3, 262_144),
    ] {
        let host = numbers(rows * cols);
        let (x, mut y) = (
            device.upload(&host).unwrap(),
            device.zeros(host.len()).unwrap(),
        );
        device.softmax_rows(&x, &mut y, rows, cols).unwrap();
        let actual = y.download().unwrap();
        let [weight, bias] = [0, 1].map(|i| numbers(cols + i)[i..].to_vec());
        let [on_weight, on_bias] = [&weight, &bias].map(|x| device.upload(x).unwrap());
        device
            .layer_norm(&x, &on_weight, &on_bias, &mut y, 0.1)
            .unwrap();
        let normal = y.download().unwrap();
        for (row, x) in host.chunks(cols).enumerate() {
            let of = x.iter().map(|&x| f64::from(x));
            let total: f64 = of.clone().map(f64::exp).sum();
            let mean = of.clone().sum::<f64>() / cols as f64;
            let variance = of.clone().map(|x| (x - mean).powi(2)).sum::<f64>() / cols as f64;
            for (i, x) in of.enumerate() {
                let at = row * cols + i;
                let expected = x.exp() / total;
                let off = (f64::from(actual[at]) - expected).abs();
                assert!(
                    off <= 1e-5 * expected,
                    "softmax of {rows}×{cols}, {at}: {off:e}"
                );
                let expected = (x - mean) / (variance + 0.1).sqrt() * f64::from(weight[i])
                    + f64::from(bias[i]);
                let off = (f64::from(normal[at]) - expected).abs();
                assert!(off < 1e-5, "layer norm of {rows}×{cols}, {at}: {off:e}");
            }
        }
    }
}

/// The largest difference from attention in `f64`.
fn attention_error([q, k, v, o]: [&[f32]; 4], shape: AttentionShape) -> f64 {
    let (dim, of) = (shape.dim, |x: &[f32]| -> Vec<f64> {
        x.iter().map(|&x| x.into()).collect()
    });
    let (q, k, v) = (of(q), of(k), of(v));
    let mut largest = 0f64;
    for (row, query) in q.chunks(dim).enumerate() {
        let (plane, i) = (row / shape.seq_q, row % shape.seq_q);
        let sharing = shape.heads / shape.kv_heads;
        let head = plane / shape.heads * shape.kv_heads + plane % shape.heads / sharing;
        let first = head * shape.seq_k * dim;
        let hidden = if shape.causal { shape.seq_q - 1 - i } else { 0 };
        let seen = first..first + (shape.seq_k - hidden) * dim;
        let dot = |key: &[f64]| query.iter().zip(key).map(|(q, k)| q * k).sum::<f64>();
        let scores = k[seen.clone()].chunks(dim).map(dot);
        let weights: Vec<f64> = scores.map(|x| (x / (dim as f64).sqrt()).exp()).collect();
        let total: f64 = weights.iter().sum();
        for j in 0..dim {
            let values = v[seen.clone()].chunks(dim).map(|value| value[j]);
            let sum: f64 = weights.iter().zip(values).map(|(w, v)| w * v).sum();
            largest = largest.max((f64::from(o[row * dim + j]) - sum / total).abs());
        }
    }
    largest
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn attention_of_all_types() {
    let device = device();
    for (dim, seq_q, seq_k, causal) in [
        (64, 70, 150, true),
        (128, 130, 70, false),
        (128, 65, 65, true),
        (96, 20, 33, false),
    ] {
        let (batch, heads, kv_heads) = (2, 4, 2);
        let mut shape = AttentionShape::new(batch, heads, seq_q, dim)
            .with_kv_heads(kv_heads)
            .with_keys(seq_k);
        shape.causal = causal;
        let host =
            [heads * seq_q, kv_heads * seq_k, kv_heads * seq_k].map(|n| numbers(2 * n * dim));
        let [q, k, v] = host.each_ref().map(|x| device.upload(x).unwrap());
        let mut o = device.zeros(host[0].len()).unwrap();
        device.attention([&q, &k, &v], &mut o, shape).unwrap();
        let [q, k, v] = host.each_ref().map(Vec::as_slice);
        let error = attention_error([q, k, v, &o.download().unwrap()], shape);
        assert!(error < 1e-5, "f32, {shape:?}: {error:e}");

        let halves = host
            .each_ref()
            .map(|x| -> Vec<u16> { x.iter().map(|&x| f32_to_bf16(x)).collect() });
        let on = halves.each_ref().map(|x| device.upload(x).unwrap());
        let mut o = device.zeros(halves[0].len()).unwrap();
        match device.attention_half(PtxType::BF16, on.each_ref(), &mut o, shape) {
            Err(Error::Ptx(_)) if dim == 96 || device.target() < Target::Sm80 => continue,
            result => result.unwrap(),
        }
        let back = |x: &[u16]| -> Vec<f32> { x.iter().map(|&x| bf16_to_f32(x)).collect() };
        let [q, k, v] = halves.each_ref().map(|x| back(x));
        let error = attention_error([&q, &k, &v, &back(&o.download().unwrap())], shape);
        assert!(error < 2f64.powi(-7), "bf16, {shape:?}: {error:e}");
    }
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn quantised_weights_times_a_vector() {
    let device = device();
    // Blocks of a scale of 1 (f16) and of weights 1, −2, 3 and so on.
    let (rows, cols) = (37, 320);
    let block = |row: usize| {
        let weight = move |i: usize| ((i + row) % 7) as i8 - 3;
        [0x00, 0x3c]
            .into_iter()
            .chain((0..32).map(move |i| weight(i) as u8))
    };
    let blocks = (0..rows).flat_map(|row| (0..cols / 32).flat_map(move |_| block(row)));
    let w = device.upload(&blocks.collect::<Vec<u8>>()).unwrap();
    let x = numbers(cols);
    let on_x = device.upload(&x).unwrap();
    let mut y = device.zeros(rows).unwrap();
    device
        .quantized_matvec(QuantFormat::Q8_0, &w, &on_x, &mut y)
        .unwrap();
    for (row, y) in y.download().unwrap().into_iter().enumerate() {
        let terms = x.iter().enumerate();
        let terms = terms.map(|(i, x)| f64::from(*x) * (((i % 32 + row) % 7) as f64 - 3.0));
        let exact: f64 = terms.sum();
        let bound = 2f64.powi(-15) * 3.0 * cols as f64;
        assert!(
            (f64::from(y) - exact).abs() < bound,
            "{row}: {y}, not {exact}"
        );
    }
    let short = device.upload(&x[1..]).unwrap();
    let error = device.quantized_matvec(QuantFormat::Q8_0, &w, &short, &mut y);
    assert!(matches!(error, Err(Error::Ptx(_))), "{error:?}");
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn wrong_lengths_are_errors() {
    let device = device();
    let (a, mut c) = (
        device.zeros::<f32>(6).unwrap(),
        device.zeros::<f32>(4).unwrap(),
    );
    let b = device.zeros::<f32>(5).unwrap();
    let error = device.matmul(&a, &b, &mut c, 2, 3, 2).unwrap_err();
    assert!(
        matches!(
            error,
            Error::Length {
                what: "b",
                expected: 6,
                actual: 5
            }
        ),
        "{error}"
    );
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn every_gpu_computes_the_same() {
    let devices = CudaDevice::open_all().unwrap();
    assert!(!devices.is_empty());
    let [m, k, n] = [260, 516, 388];
    let (a, b) = (numbers(m * k), numbers(k * n));
    let product = |device: &CudaDevice| {
        let (a, b) = (device.upload(&a).unwrap(), device.upload(&b).unwrap());
        let mut c = device.upload(&vec![f32::NAN; m * n]).unwrap();
        device.matmul(&a, &b, &mut c, m, k, n).unwrap();
        c
    };
    // All of them are asked before any is waited for.
    let products: Vec<_> = devices.iter().map(product).collect();
    for (device, c) in devices.iter().zip(&products) {
        let c = c.download().unwrap();
        let error = error(&a, &b, &c, [m, k, n], 2f64.powi(-24));
        assert!(error <= 1.0, "{}: {error}", device.ordinal());
    }
    for (from, x) in devices.iter().zip(&products) {
        for to in &devices {
            // What was asked of both before is waited for.
            let mut copy = to.upload(&vec![f32::NAN; m * n]).unwrap();
            let busy = Stream::new(to).unwrap();
            let zeros = to.zeros(m * n).unwrap();
            busy.device().copy(&zeros, &mut copy).unwrap();
            copy.copy_from(x).unwrap();
            let reaches = to.reaches(from).unwrap();
            println!("{} to {}: {reaches}", from.ordinal(), to.ordinal());
            assert_eq!(copy.download().unwrap(), x.download().unwrap());
        }
    }
    if let [first, second, ..] = &devices[..] {
        let (x, mut y) = (
            first.zeros::<f32>(4).unwrap(),
            second.zeros::<f32>(4).unwrap(),
        );
        let foreign = second.softmax_rows(&x, &mut y, 2, 2);
        assert!(matches!(foreign, Err(Error::Foreign { what: "x" })));
        let short = y.copy_from(&first.zeros(5).unwrap());
        assert!(matches!(short, Err(Error::Length { .. })), "{short:?}");
    }
}
