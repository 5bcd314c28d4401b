//! Quantised weights: the `gguf` package's blocks and what it makes of them.

use super::case::{Case, Expected, Value, random};
use super::variants::Variant;
use relampago::ptx::QuantizeKernel;
use relampago::ptx::kernels::QuantFormat;

struct Golden {
    blocks: Vec<Vec<u8>>,
    weights: Vec<Vec<f32>>,
}

fn golden(format: QuantFormat) -> Golden {
    let file: &[u8] = match format {
        QuantFormat::Q4_0 => include_bytes!("gguf/q4_0.bin"),
        QuantFormat::Q8_0 => include_bytes!("gguf/q8_0.bin"),
        QuantFormat::Q4K => include_bytes!("gguf/q4_k.bin"),
        QuantFormat::Q5K => include_bytes!("gguf/q5_k.bin"),
        QuantFormat::Q6K => include_bytes!("gguf/q6_k.bin"),
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
        let cases = shapes.map(|[rows, blocks]| gemv(&golden, rows, blocks, 0.0));
        variants.push(Variant::new(QuantizeKernel::gemv(format), cases.to_vec()));
        // In spans of 256 weights; of small blocks three more.
        let per_span = 256 / golden.weights[0].len();
        let shapes = [[17, 3], [1, 1], [3, 26], [16, 8]];
        let cases = shapes.map(|[rows, spans]| {
            let blocks = spans * per_span + if per_span > 1 { 3 } else { 0 };
            gemv(&golden, rows, blocks, 2f64.powi(-15))
        });
        variants.push(Variant::new(
            QuantizeKernel::gemv_mma(format),
            cases.to_vec(),
        ));
    }
    variants
}

/// Bit by bit what the package says.
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
fn gemv(golden: &Golden, rows: usize, blocks: usize, x_error: f64) -> Case {
    let order = |row: usize| {
        let count = golden.blocks.len();
        (0..blocks).map(move |block| (row * blocks + block) % count)
    };
    let cols = blocks * golden.weights[0].len();
    let x = random(cols, 9);
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
            Value::F32s(x.clone()),
            Value::F32s(vec![f32::NAN; rows]),
            Value::U32(rows as u32),
            Value::U32(cols as u32),
        ],
        output: 2,
    }
}
