//! Products with ggml's blocks, of every type.

use super::on_each;
use crate::graph::steps::ALONE_BELOW;
use crate::simd::{BlockMatrix, Cpu, InstructionSet, multiply_blocks, multiply_rows};
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

/// The product of each row in f64, and its error's bound: that of `f32`, and where a type's integers
/// are multiplied as integers half a step of 16 bits for each element.
fn expected(kind: WeightType, data: &[u8], x: &[f32]) -> Vec<[f64; 2]> {
    let step = match kind {
        F32 | F16 | BF16 | Q2_K | Q3_K | IQ4_NL | IQ4_XS => 0.0,
        _ => 1.001 / 32_768.0,
    };
    let mut weights = vec![0.0; data.len() / kind.block_bytes() * kind.block_len()];
    kind.dequantize(data, &mut weights);
    let rows = weights.chunks_exact(x.len());
    rows.map(|row| {
        let (mut sum, mut most, mut rounding) = (0.0, 0.0, 0.0);
        for (weights, x) in row.chunks(32).zip(x.chunks(32)) {
            let largest = x.iter().fold(0.0_f32, |largest, x| largest.max(x.abs()));
            for (&w, &x) in weights.iter().zip(x) {
                let (w, x) = (f64::from(w), f64::from(x));
                sum += w * x;
                most += (w * x).abs();
                rounding += w.abs() * f64::from(largest) * step;
            }
        }
        // Minima and biases cancel: quants alone are up to twice as large as weights.
        [sum, 64.0 * f64::from(f32::EPSILON) * most + rounding]
    })
    .collect()
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
                for (y, [sum, bound]) in y.iter().zip(expected(kind, &data, &x)) {
                    let difference = (f64::from(*y) - sum).abs();
                    assert!(
                        difference <= bound + 1e-30,
                        "{isa} {kind:?} {cols}: {y}, {sum}"
                    );
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
                let matrix = multiply(isa, kind, &data, rows, &x.repeat(ALONE_BELOW + 1));
                for (vector, matrix) in vector.iter().zip(&matrix[..rows]) {
                    let close = (vector - matrix).abs() <= 1e-3 * matrix.abs().max(1.0);
                    let same = vector.is_nan() && matrix.is_nan() || vector == matrix;
                    assert!(close || same, "{isa} {kind:?}: {vector}, {matrix}");
                }
            }
        }
    });
}

#[test]
fn groups_of_any_size_are_multiplied() {
    on_each(|isa| {
        let random = &mut Random(9);
        for (kind, halves) in TYPES {
            // An odd number of rows beyond those that are computed together.
            let (rows, cols) = (7, 512);
            let data = random.matrix(kind, halves, rows, cols);
            // Groups of one size each, and groups of several sizes.
            let sizes: [[f32; 3]; 8] = [
                [0.0; 3],
                [1e-40; 3],
                [1e-30; 3],
                [3e38; 3],
                [1e30, 1.0, 1e-30],
                [1.0, 0.0, 1e-40],
                [1e-40, 0.0, 1e-38],
                [1e-20, 1e-25, 1e-20],
            ];
            for size in sizes {
                let x: Vec<f32> = (0..cols)
                    .map(|i| size[i / 32 % 3] * random.number())
                    .collect();
                let y = multiply(isa, kind, &data, rows, &x);
                for (y, [sum, bound]) in y.iter().zip(expected(kind, &data, &x)) {
                    // Sums that nearly overflow may do so in another order.
                    let close = (f64::from(*y) - sum).abs() <= bound + 1e-41;
                    assert!(close || bound > 1e33, "{isa} {kind:?} {size:?}: {y}, {sum}");
                }
            }
        }
    });
}

#[test]
fn elements_that_are_not_finite_give_the_same_in_products_with_vectors_and_matrices() {
    on_each(|isa| {
        let random = &mut Random(10);
        for (kind, halves) in TYPES {
            let (rows, cols) = (5, 512);
            let data = random.matrix(kind, halves, rows, cols);
            for special in [f32::INFINITY, f32::NEG_INFINITY, f32::NAN] {
                let mut x: Vec<f32> = (0..cols).map(|_| random.number()).collect();
                x[random.next() as usize % cols] = special;
                let vector = multiply(isa, kind, &data, rows, &x);
                let matrix = multiply(isa, kind, &data, rows, &x.repeat(ALONE_BELOW));
                for (vector, matrix) in vector.iter().zip(&matrix[..rows]) {
                    let same = vector.is_nan() && matrix.is_nan() || vector == matrix;
                    assert!(
                        same && !vector.is_finite(),
                        "{isa} {kind:?}: {vector}, {matrix}"
                    );
                }
            }
        }
    });
}

#[test]
fn whole_numbers_of_fifteen_bits_are_multiplied_exactly() {
    on_each(|isa| {
        let numbers = [1.0, -7.0, 1024.0, 16_383.0, -32_767.0, 32_767.0, 3.0, 0.0];
        // A scale of ½, and weights of 1.
        let mut block = vec![0x00, 0x38];
        block.extend([1; 32]);
        for i in 0..32 {
            let mut x = [0.0; 32];
            x[i] = numbers[i % 8];
            x[(i + 5) % 32] = 1.0;
            let y = multiply(isa, Q8_0, &block, 1, &x);
            assert_eq!(y, [0.5 * (numbers[i % 8] + 1.0)], "{isa} {i}");
        }
        // Just below a power of two, where integers would not fit 16 bits.
        for most in [1.0_f32.next_down(), 32_767.498, 32_767.5, 2.0, 1e20] {
            let y = multiply(isa, Q8_0, &block, 1, &[most; 32]);
            let error = (y[0] / (16.0 * most) - 1.0).abs();
            assert!(error < 1.0 / 32_768.0, "{isa} {most}: {}", y[0]);
        }
    });
}

#[test]
fn several_vectors_have_the_bits_of_each() {
    on_each(|isa| {
        let mut random = Random(23);
        for (kind, halves) in TYPES {
            let (rows, cols) = (7, 512);
            let data = random.matrix(kind, halves, rows, cols);
            let weights = BlockMatrix::new(kind, &data, rows, cols).unwrap();
            for count in 1..=9 {
                let mut x: Vec<f32> = (0..count * cols).map(|_| random.number()).collect();
                // One of them is multiplied anew from its weights.
                x[cols - 1] = f32::INFINITY;
                let mut y = vec![0.0; count * rows];
                multiply_rows(Cpu::new(isa, Some(1)), weights, &x, &mut y, true).unwrap();
                for (x, y) in x.chunks_exact(cols).zip(y.chunks_exact(rows)) {
                    let wanted = multiply(isa, kind, &data, rows, x);
                    let same = wanted
                        .iter()
                        .zip(y)
                        .all(|(a, b)| a.to_bits() == b.to_bits());
                    assert!(same, "{isa} {kind:?}, {count}: {y:?}, not {wanted:?}");
                }
            }
        }
    });
}

/// The number of threads that a pass gets changes no bit of its products.
#[test]
fn sharing_among_threads_changes_no_product() {
    let mut random = Random(17);
    let (rows, cols) = (2048, 1024);
    for (kind, halves) in [TYPES[0], TYPES[3], TYPES[10]] {
        let data = random.matrix(kind, halves, rows, cols);
        for count in [1, 2, 3, 16, 128] {
            let x: Vec<f32> = (0..count * cols).map(|_| random.number()).collect();
            let results = [1, 2, 3, 7].map(|threads| {
                let cpu = Cpu {
                    isa: InstructionSet::best(),
                    threads,
                };
                let weights = BlockMatrix::new(kind, &data, rows, cols).unwrap();
                let mut y = vec![0.0; count * rows];
                multiply_blocks(cpu, weights, &x, &mut y).unwrap();
                y.into_iter().map(f32::to_bits).collect::<Vec<_>>()
            });
            for result in &results[1..] {
                assert!(result == &results[0], "{kind:?}, {count} rows");
            }
        }
    }
}
