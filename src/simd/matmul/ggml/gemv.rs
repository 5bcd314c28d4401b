//! Matrix times vectors: integers of blocks times vectors rounded to 16 bits for each group, or numbers times numbers.
//! Several vectors share each read of the weights; the products of each have the bits that it has alone.

mod k_quants;
mod plain;
mod prepare;
mod short;

use super::BlockMatrix;
use crate::simd::isa::{Isa, Kernel};
use crate::simd::reduce::sum_lanes;
use crate::tensor::ggml::{MAX_BLOCK, WeightType};
use k_quants::{LongRows, Q4K, Q5K, Q6K};
use plain::{any_row, bf16_row, f16_row, f32_row};
use short::{Q40, Q41, Q50, Q51, Q80, ShortRows};

pub(super) use prepare::{Prepare, Prepared};
pub(super) use short::ROWS;

/// The distance of prefetches, in bytes. With 1024 a matrix from memory takes a seventh longer on a
/// Zen 3.
const AHEAD: usize = 4096;

/// Some rows of a product with vectors.
pub(super) struct Gemv<'a, 'y> {
    pub(super) weights: BlockMatrix<'a>,
    /// The row of the first result.
    pub(super) first: usize,
    pub(super) xs: &'a [Prepared<'a>],
    /// The results of each vector.
    pub(super) y: &'a mut [&'y mut [f32]],
}

impl Kernel for Gemv<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        // A block's 16 bytes fill AVX2's vector of pairs, but half of AVX-512's.
        match self.weights.kind {
            WeightType::F32 => self.elements(isa, f32_row),
            WeightType::F16 => self.elements(isa, f16_row),
            WeightType::BF16 => self.elements(isa, bf16_row),
            WeightType::Q8_0 => isa.call_narrow(ShortRows(self, Q80)),
            WeightType::Q4_0 => isa.call_narrow(ShortRows(self, Q40)),
            WeightType::Q4_1 => isa.call_narrow(ShortRows(self, Q41)),
            WeightType::Q5_0 => isa.call_narrow(ShortRows(self, Q50)),
            WeightType::Q5_1 => isa.call_narrow(ShortRows(self, Q51)),
            WeightType::Q4_K => isa.call_narrow(LongRows(self, Q4K)),
            WeightType::Q5_K => isa.call_narrow(LongRows(self, Q5K)),
            WeightType::Q6_K => isa.call_narrow(LongRows(self, Q6K)),
            _ => self.elements(isa, any_row),
        }
    }
}

impl Gemv<'_, '_> {
    /// Returns the number of rows.
    fn rows(&self) -> usize {
        self.y.first().map_or(0, |y| y.len())
    }

    /// Computes the products of rows by a function of the type, the row and a prepared `x`.
    #[inline(always)]
    fn elements<I: Isa>(self, isa: I, product: impl Fn(I, WeightType, &[u8], Prepared<'_>) -> f32) {
        let kind = self.weights.kind;
        for i in 0..self.rows() {
            let row = self.weights.row(self.first + i);
            for (&x, y) in self.xs.iter().zip(&mut *self.y) {
                y[i] = product(isa, kind, row, x);
            }
        }
    }
}

/// The product of a row, computed anew from its weights if it is not finite: scales that are infinite
/// or NaN, products that overflow and vectors that 16 bits do not represent then give what they give
/// in a product of matrices.
#[inline(always)]
fn checked<I: Isa>(isa: I, weights: BlockMatrix<'_>, row: usize, x: &[f32], product: f32) -> f32 {
    if product.is_finite() {
        return product;
    }
    let (kind, row) = (weights.kind, weights.row(row));
    isa.call(Dequantized { kind, row, x })
}

/// The product of a row of any weights, dequantised piece by piece.
struct Dequantized<'a> {
    kind: WeightType,
    row: &'a [u8],
    x: &'a [f32],
}

impl Kernel for Dequantized<'_> {
    type Output = f32;

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) -> f32 {
        let bytes = MAX_BLOCK / self.kind.block_len() * self.kind.block_bytes();
        let mut weights = [0.0; MAX_BLOCK];
        let mut sum = isa.splat(0.0);
        for (blocks, x) in self.row.chunks(bytes).zip(self.x.chunks(MAX_BLOCK)) {
            self.kind.dequantize(blocks, &mut weights);
            let weights = &weights[..x.len()];
            for (w, x) in weights.chunks(I::LANES).zip(x.chunks(I::LANES)) {
                sum = isa.mul_add(isa.load_first(w, 0.0), isa.load_first(x, 0.0), sum);
            }
        }
        sum_lanes(isa, sum)
    }
}
