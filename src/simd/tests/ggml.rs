//! Products with ggml's blocks, of every type.

use super::on_each;
use crate::simd::{BlockMatrix, Cpu, InstructionSet, multiply_blocks};
use crate::tensor::ggml::WeightType;
use WeightType::{
    BF16, F16, F32, IQ4_NL, IQ4_XS, Q2_K, Q3_K, Q4_0, Q4_1, Q4_K, Q5_0, Q5_1, Q5_K, Q6_K, Q8_0,
};

/// The types, and where the f16 of a block are.
const TYPES: [(WeightType, &[usize]); 15] = [
    (F32, &[]),
    (F16, &[0]),
    (BF16, &[]),
    (Q8_0, &[0]),
    (Q4_0, &[0]),
    (Q4_1, &[0, 2]),
    (Q5_0, &[0]),
    (Q5_1, &[0, 2]),
    (Q2_K, &[80, 82]),
    (Q3_K, &[108]),
    (Q4_K, &[0, 2]),
    (Q5_K, &[0, 2]),
    (Q6_K, &[208]),
    (IQ4_NL, &[0]),
    (IQ4_XS, &[0]),
];

/// Numbers of 16 bits in [2⁻⁷, 2⁻⁶) and their negatives, and a denormal.
const SCALES: [u16; 4] = [0x2000, 0x23ff, 0xa123, 0x0042];

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 >> 16
    }

    /// A number in [−1, 1).
    fn number(&mut self) -> f32 {
        (self.next() & 0xff_ffff) as f32 / (1 << 23) as f32 - 1.0
    }

    /// Rows of blocks with usual scales.
    fn matrix(&mut self, kind: WeightType, halves: &[usize], rows: usize, cols: usize) -> Vec<u8> {
        let row = kind.row_bytes(cols).unwrap();
        let mut data: Vec<u8> = (0..rows * row).map(|_| self.next() as u8).collect();
        for block in data.chunks_exact_mut(kind.block_bytes()) {
            match kind {
                F32 => block.copy_from_slice(&self.number().to_le_bytes()),
                BF16 => block.copy_from_slice(&self.number().to_le_bytes()[2..]),
                _ => {}
            }
            for &at in halves {
                let scale = SCALES[self.next() as usize % SCALES.len()];
                block[at..at + 2].copy_from_slice(&scale.to_le_bytes());
            }
        }
        data
    }
}

/// The products of `W`, in blocks, with each row of `x`.
fn multiply(
    isa: InstructionSet,
    kind: WeightType,
    data: &[u8],
    rows: usize,
    x: &[f32],
) -> Vec<f32> {
    let cols = data.len() / rows / kind.block_bytes() * kind.block_len();
    let weights = BlockMatrix::new(kind, data, rows, cols).unwrap();
    let mut y = vec![f32::NAN; x.len() / cols * rows];
    multiply_blocks(Cpu::new(isa, Some(1)), weights, x, &mut y).unwrap();
    y
}

#[test]
fn rows_times_vectors_are_those_in_f64() {
    on_each(|isa| {
        let random = &mut Random(7);
        for (kind, halves) in TYPES {
            let lengths = match kind.block_len() {
                1 => [1, 33, 200],
                len => [len, 3 * len, 10 * len],
            };
            for (cols, rows) in lengths.into_iter().zip([3, 5, 2]) {
                let data = random.matrix(kind, halves, rows, cols);
                let x: Vec<f32> = (0..cols).map(|_| random.number()).collect();
                let y = multiply(isa, kind, &data, rows, &x);
                let mut weights = vec![0.0; rows * cols];
                kind.dequantize(&data, &mut weights);
                for (y, row) in y.iter().zip(weights.chunks_exact(cols)) {
                    let terms = row
                        .iter()
                        .zip(&x)
                        .map(|(w, x)| f64::from(*w) * f64::from(*x));
                    let (mut sum, mut most) = (0.0, 0.0);
                    for term in terms {
                        sum += term;
                        most += term.abs();
                    }
                    // Minima and biases cancel: quants alone are up to twice as large as weights.
                    let bound = 64.0 * f64::from(f32::EPSILON) * most + 1e-30;
                    let difference = (f64::from(*y) - sum).abs();
                    assert!(difference <= bound, "{isa} {kind:?} {cols}: {y}, {sum}");
                }
            }
        }
    });
}

#[test]
fn infinite_scales_give_the_same_in_products_with_vectors_and_matrices() {
    on_each(|isa| {
        let random = &mut Random(8);
        for (kind, halves) in TYPES {
            let (rows, cols) = (6, 512);
            let mut data = random.matrix(kind, halves, rows, cols);
            let row = data.len() / rows;
            for (data, special) in data.chunks_exact_mut(row).zip([0x7c00, 0xfc00, 0x7e00_u16]) {
                let block = random.next() as usize % (row / kind.block_bytes());
                if let Some(&at) = halves.get(random.next() as usize % halves.len().max(1)) {
                    data[block * kind.block_bytes() + at..][..2]
                        .copy_from_slice(&special.to_le_bytes());
                }
            }
            for x in [1.0, -1.0, f32::INFINITY] {
                let x: Vec<f32> = (0..cols).map(|_| x * (random.number() + 1.0)).collect();
                let vector = multiply(isa, kind, &data, rows, &x);
                let matrix = multiply(isa, kind, &data, rows, &x.repeat(5));
                for (vector, matrix) in vector.iter().zip(&matrix[..rows]) {
                    let close = (vector - matrix).abs() <= 1e-3 * matrix.abs().max(1.0);
                    let same = vector.is_nan() && matrix.is_nan() || vector == matrix;
                    assert!(close || same, "{isa} {kind:?}: {vector}, {matrix}");
                }
            }
        }
    });
}
