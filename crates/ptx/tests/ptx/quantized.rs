//! Quantised weights: blocks of the `gguf` package and its dequantised values.

use super::case::{Case, Expected, Value, random, rounded};
use super::oracle::unit;
use super::variants::Variant;
use relampago_ptx::kernels::QuantFormat;
use relampago_ptx::{PtxType, QuantizeKernel};

struct Golden {
    blocks: Vec<Vec<u8>>,
    weights: Vec<Vec<f32>>,
}

impl Golden {
    /// Returns a vector for rows of this number of blocks.
    fn x(&self, blocks: usize) -> Vec<f32> {
        random(blocks * self.weights[0].len(), 9)
    }
}

fn golden(format: QuantFormat) -> Golden {
    let file: &[u8] = match format {
        QuantFormat::Q4_0 => include_bytes!("gguf/q4_0.bin"),
        QuantFormat::Q8_0 => include_bytes!("gguf/q8_0.bin"),
        QuantFormat::Q4K => include_bytes!("gguf/q4_k.bin"),
        QuantFormat::Q5K => include_bytes!("gguf/q5_k.bin"),
        QuantFormat::Q6K => include_bytes!("gguf/q6_k.bin"),
        other => panic!("{other:?} has no file"),
    };
    let (values, bytes) = format.block();
    let count = file.len() / (bytes as usize + 4 * values as usize);
    let (blocks, weights) = file.split_at(count * bytes as usize);
    let weights: Vec<f32> = weights
        .chunks_exact(4)
        .map(|word| f32::from_le_bytes([word[0], word[1], word[2], word[3]]))
        .collect();
    Golden {
        blocks: blocks.chunks(bytes as usize).map(<[u8]>::to_vec).collect(),
        weights: weights
            .chunks(values as usize)
            .map(<[f32]>::to_vec)
            .collect(),
    }
}

pub(crate) fn variants() -> Vec<Variant> {
    let mut variants = Vec::new();
    for format in QuantFormat::ALL {
        let golden = golden(format);
        variants.push(Variant::new(
            QuantizeKernel::dequantize(format),
            vec![dequantize(&golden)],
        ));
        let shapes = [[5, 3], [1, 1], [4, 9], [6, 17]];
        let cases = shapes.map(|[rows, blocks]| gemv(&golden, rows, golden.x(blocks), 0.0));
        variants.push(Variant::new(QuantizeKernel::gemv(format), cases.to_vec()));
        // In spans of 256 weights; of small blocks three more.
        let per_span = 256 / golden.weights[0].len();
        // The last two have more tiles than blocks, and rows beyond what is kept of `x`.
        let shapes = [[17, 3], [1, 1], [3, 26], [16, 8], [115, 9], [98, 35]];
        let cases = shapes.map(|[rows, spans]| {
            let x = golden.x(spans * per_span + if per_span > 1 { 3 } else { 0 });
            gemv(&golden, rows, x, 2f64.powi(-15))
        });
        let mut cases = cases.to_vec();
        // Digits know no NaN.
        let mut x = golden.x(per_span);
        x[5] = f32::NAN;
        cases.push(gemv(&golden, 2, x, 0.0));
        if per_span > 1 {
            cases.push(with_nan_row(gemv(
                &golden,
                2,
                golden.x(per_span + 3),
                2f64.powi(-15),
            )));
        }
        variants.push(Variant::new(QuantizeKernel::gemv_mma(format), cases));
    }
    variants.extend(gemms());
    variants
}

/// Products with a few rows, some and many, each with a span that not all of its warps have.
fn gemms() -> Vec<Variant> {
    let of = |format, ty, shapes: &[[usize; 3]]| {
        let golden = golden(format);
        let kernel =
            QuantizeKernel::gemm(format, ty).for_size(shapes[0][0] as u32, shapes[0][1] as u32);
        let cases = shapes.iter().map(|&shape| gemm(&golden, shape, ty));
        Variant::new(kernel, cases.collect())
    };
    let (f16, bf16) = (PtxType::F16, PtxType::BF16);
    vec![
        of(QuantFormat::Q4_0, f16, &[[3, 20, 2336], [1, 2, 32]]),
        of(QuantFormat::Q8_0, bf16, &[[16, 34, 544], [3, 2, 96]]),
        of(QuantFormat::Q4K, f16, &[[2, 37, 512]]),
        of(QuantFormat::Q5K, bf16, &[[34, 35, 256]]),
        of(QuantFormat::Q6K, f16, &[[17, 66, 1280]]),
        of(QuantFormat::Q4K, bf16, &[[70, 130, 512]]),
    ]
}

/// Expects the package's values bit by bit.
fn dequantize(golden: &Golden) -> Case {
    let weights = golden.weights.concat();
    let exact = |&w: &f32| Expected {
        value: w.into(),
        bound: 0.0,
    };
    Case {
        label: format!("{} blocks", golden.blocks.len()),
        expected: weights.iter().map(exact).collect(),
        arguments: vec![
            Value::Bytes(golden.blocks.concat()),
            Value::F32s(vec![f32::NAN; weights.len()]),
            Value::U32(golden.blocks.len() as u32),
        ],
        output: 1,
    }
}

/// Rows made of the golden blocks in turn; `x_error` is how far each value of `x` may be off, of
/// the largest among 32.
fn gemv(golden: &Golden, rows: usize, x: Vec<f32>, x_error: f64) -> Case {
    let (cols, blocks) = (x.len(), x.len() / golden.weights[0].len());
    let order = |row: usize| {
        let count = golden.blocks.len();
        (0..blocks).map(move |block| (row * blocks + block) % count)
    };
    let largest = |x: &[f32]| f64::from(x.iter().fold(0f32, |max, x| max.max(x.abs())));
    let largest: Vec<f64> = x.chunks(32).map(largest).collect();
    let dot = |row: usize| {
        let weights = order(row).flat_map(|block| &golden.weights[block]);
        let (mut value, mut size) = (0f64, 0f64);
        let mut rounding = 0f64;
        for (i, (w, x)) in weights.zip(&x).enumerate() {
            rounding += f64::from(w.abs()) * largest[i / 32] * x_error;
            value += f64::from(*w) * f64::from(*x);
            // Weights are added up with their offset, which may be larger than they are.
            size += f64::from(x.abs()) * f64::from(w.abs()).max(0.3);
        }
        let bound = size * 64.0 * 2f64.powi(-24) + rounding;
        Expected { value, bound }
    };
    let weights = (0..rows)
        .flat_map(order)
        .flat_map(|block| golden.blocks[block].clone());
    Case {
        label: format!("{rows}×{cols}"),
        expected: (0..rows).map(dot).collect(),
        arguments: vec![
            Value::Bytes(weights.collect()),
            Value::F32s(x),
            Value::F32s(vec![f32::NAN; rows]),
            Value::U32(rows as u32),
            Value::U32(cols as u32),
        ],
        output: 2,
    }
}

/// Replaces the first scale of the second row, which directly follows the first row, by NaN.
fn with_nan_row(mut case: Case) -> Case {
    if let Value::Bytes(bytes) = &mut case.arguments[0] {
        let second = bytes.len() / 2;
        bytes[second..second + 2].copy_from_slice(&0x7e00u16.to_le_bytes());
    }
    case.expected[1].value = f64::NAN;
    case
}

/// `m` rows times `n` rows of weights made of the golden blocks in turn.
fn gemm(golden: &Golden, [m, n, k]: [usize; 3], ty: PtxType) -> Case {
    let blocks = k / golden.weights[0].len();
    let order = |row: usize| {
        let count = golden.blocks.len();
        (0..blocks).map(move |block| (row * blocks + block) % count)
    };
    let x = rounded(&random(m * k, 31), ty);
    let weights = |row| order(row).flat_map(|block| &golden.weights[block]);
    let dot = |x: &[f32], row: usize| {
        let (mut value, mut size) = (0f64, 0f64);
        for (w, x) in weights(row).zip(x) {
            value += f64::from(*w) * f64::from(*x);
            // Weights are rounded, those below f16's normal numbers to 2⁻²⁵.
            size += f64::from(x.abs()) * (f64::from(w.abs()) + 2f64.powi(-14));
        }
        let bound = (size + value.abs()) * (unit(ty) + 64.0 * unit(PtxType::F32));
        Expected { value, bound }
    };
    let rows = x.chunks(k).flat_map(|x| (0..n).map(move |row| (x, row)));
    let expected = rows.map(|(x, row)| dot(x, row)).collect();
    let blocks = (0..n)
        .flat_map(order)
        .flat_map(|block| golden.blocks[block].clone());
    let values = |values| match ty {
        PtxType::F16 => Value::F16s(values),
        _ => Value::Bf16s(values),
    };
    let sizes = [m, n, k].map(|size| Value::U32(size as u32));
    let mut arguments = vec![Value::Bytes(blocks.collect())];
    arguments.extend([values(x.clone()), values(vec![f32::NAN; m * n])]);
    arguments.extend(sizes);
    Case {
        label: format!("{m}×{n}×{k}"),
        arguments,
        output: 2,
        expected,
    }
}
