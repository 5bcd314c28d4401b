//! Random tensors of GGUF files.

use crate::support::Random;
use relampago::llm::{GgufWriter, WeightType};

/// Adds a tensor of random weights to a file; returns them.
pub(crate) fn random_tensor(
    writer: &mut GgufWriter,
    name: &str,
    shape: &[usize],
    kind: WeightType,
    random: &mut Random,
) -> Vec<f64> {
    let len: usize = shape.iter().product();
    let blocks = len / kind.block_len();
    let data: Vec<u8> = (0..blocks).flat_map(|_| block(kind, random)).collect();
    let mut weights = vec![0.0; len];
    kind.dequantize(&data, &mut weights);
    writer.tensor(name, shape, kind, &data).unwrap();
    weights.into_iter().map(f64::from).collect()
}

/// A block of random bytes whose scales give weights of about 0.1.
fn block(kind: WeightType, random: &mut Random) -> Vec<u8> {
    use WeightType::{F16, F32, IQ4_NL, IQ4_XS, Q2_K, Q3_K, Q4_1, Q4_K, Q5_1, Q5_K, Q6_K, Q8_0};
    let mut block: Vec<u8> = (0..kind.block_bytes())
        .map(|_| random.next() as u8)
        .collect();
    let value = random.value() / 64.0;
    let mut set = |at: usize, half: u16| block[at..at + 2].copy_from_slice(&half.to_le_bytes());
    match kind {
        F32 => return value.to_le_bytes().to_vec(),
        F16 => set(0, 0x2000 | random.next() as u16 & 0x87ff),
        WeightType::BF16 => set(0, (value.to_bits() >> 16) as u16),
        Q8_0 | IQ4_NL => set(0, 0x1400),
        Q4_1 | Q5_1 => {
            set(0, 0x1c00);
            set(2, 0xa000);
        }
        Q2_K => {
            set(80, 0x1800);
            set(82, 0x1800);
        }
        Q3_K => set(108, 0x1000),
        Q4_K | Q5_K => {
            set(0, 0x0400);
            set(2, 0x0c00);
        }
        Q6_K => set(208, 0x0400),
        IQ4_XS => set(0, 0x0400),
        _ => set(0, 0x2000),
    }
    block
}
