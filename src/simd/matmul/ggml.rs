//! Products with weights in ggml's blocks, which are read where a file has them.

use super::panel::{KC, Part, Strips};
use super::tile::VECTORS;
use super::{Matrix, multiply, pack, pieces};
use crate::error::Result;
use crate::ops::OpClass;
use crate::simd::isa::{Isa, Kernel, MAX_LANES, dispatch};
use crate::simd::threads::{Cpu, share_out};
use crate::tensor::ggml::{MAX_BLOCK, WeightType};

/// Rows from which on weights are unpacked for a product of blocks.
const GEMM_ROWS: usize = 4;

/// A matrix whose rows are blocks, one after the other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockMatrix<'a> {
    kind: WeightType,
    data: &'a [u8],
    rows: usize,
    cols: usize,
    row_bytes: usize,
}

impl<'a> BlockMatrix<'a> {
    /// A matrix of `rows` rows of `cols` weights; `None` if the data has another size.
    pub(crate) fn new(kind: WeightType, data: &'a [u8], rows: usize, cols: usize) -> Option<Self> {
        let row_bytes = kind.row_bytes(cols)?;
        let fits = cols > 0 && row_bytes.checked_mul(rows) == Some(data.len());
        fits.then_some(Self {
            kind,
            data,
            rows,
            cols,
            row_bytes,
        })
    }

    fn row(&self, row: usize) -> &'a [u8] {
        &self.data[row * self.row_bytes..][..self.row_bytes]
    }

    /// Writes the weights of a row.
    pub(crate) fn dequantize_row(&self, row: usize, to: &mut [f32]) {
        self.kind.dequantize(self.row(row), to);
    }
}

/// `y = x · Wᵀ` for each row of `x`, which has as many values as the matrix columns.
///
/// # Errors
/// `OutOfMemory` where there is no memory for panels.
pub(crate) fn multiply_blocks(
    cpu: Cpu,
    weights: BlockMatrix<'_>,
    x: &[f32],
    y: &mut [f32],
) -> Result<()> {
    let (k, n) = (weights.cols, weights.rows);
    let m = x.len() / k;
    // Checked because the kernels' pointers rely on it.
    if m * k != x.len() || m.checked_mul(n) != Some(y.len()) || y.is_empty() {
        return Ok(());
    }
    if m < GEMM_ROWS {
        let rows = x.chunks_exact(k).zip(y.chunks_exact_mut(n));
        return rows
            .into_iter()
            .try_for_each(|(x, y)| gemv(cpu, weights, x, y));
    }
    let shape = [m, k, n];
    // SAFETY: the lengths are those of the shape.
    unsafe {
        multiply(
            cpu.isa,
            pieces(cpu, shape),
            Matrix::new(x, [m, k], false),
            weights,
            shape,
            y,
        )
    }
}

/// `y = W · x`, each row's products added up as its blocks are unpacked.
fn gemv(cpu: Cpu, weights: BlockMatrix<'_>, x: &[f32], y: &mut [f32]) -> Result<()> {
    let pieces = cpu.split((weights.rows * weights.cols) as u64 * 2, OpClass::Reduction);
    share_out(pieces, 1, y, |first, y| {
        dispatch(
            cpu.isa,
            Gemv {
                weights,
                first,
                x,
                y,
            },
        );
        Ok(())
    })
}

/// Some rows of a product with a vector.
struct Gemv<'a> {
    weights: BlockMatrix<'a>,
    first: usize,
    x: &'a [f32],
    y: &'a mut [f32],
}

impl Kernel for Gemv<'_> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        for (i, y) in self.y.iter_mut().enumerate() {
            let row = self.weights.row(self.first + i);
            *y = match self.weights.kind {
                WeightType::Q8_0 => short_blocks::<I, 34>(isa, row, self.x, q8_0),
                WeightType::Q4_0 => short_blocks::<I, 18>(isa, row, self.x, q4_0),
                WeightType::Q4_1 => short_blocks::<I, 20>(isa, row, self.x, q4_1),
                kind => any_blocks(isa, kind, row, self.x),
            };
        }
    }
}

/// The dot product of a row of 32-weight blocks of `BYTES` bytes each.
#[inline(always)]
fn short_blocks<I: Isa, const BYTES: usize>(
    isa: I,
    row: &[u8],
    x: &[f32],
    add: impl Fn(I, &[u8; BYTES], &[f32; 32], [I::F32; 2]) -> [I::F32; 2],
) -> f32 {
    let (blocks, _) = row.as_chunks::<BYTES>();
    let (x, _) = x.as_chunks::<32>();
    let mut sums = [isa.splat(0.0); 2];
    for (block, x) in blocks.iter().zip(x) {
        isa.prefetch(block.as_ptr().wrapping_add(1024).cast());
        sums = add(isa, block, x, sums);
    }
    sum_of(isa, isa.add(sums[0], sums[1]))
}

#[inline(always)]
fn sum_of<I: Isa>(isa: I, sums: I::F32) -> f32 {
    isa.to_array(sums)[..I::LANES].iter().sum()
}

/// A finite binary16 without a branch.
#[inline(always)]
fn scale(low: u8, high: u8) -> f32 {
    /// 2¹¹², which makes up for the difference of the exponents' biases.
    const REBIAS: f32 = f32::from_bits((127 + 112) << 23);
    let bits = u32::from(u16::from_le_bytes([low, high]));
    let magnitude = f32::from_bits((bits & 0x7fff) << 13) * REBIAS;
    f32::from_bits(magnitude.to_bits() | (bits & 0x8000) << 16)
}

#[inline(always)]
fn q8_0<I: Isa>(isa: I, block: &[u8; 34], x: &[f32; 32], sums: [I::F32; 2]) -> [I::F32; 2] {
    let mut sum = isa.splat(0.0);
    for at in (0..32).step_by(I::LANES) {
        // SAFETY: 32 bytes follow the scale, of which `LANES` divide the number.
        let q = unsafe { isa.load_signed_bytes(block.as_ptr().add(2 + at)) };
        sum = isa.mul_add(isa.bits_to_float(q), isa.load(&x[at..]), sum);
    }
    let d = isa.splat(scale(block[0], block[1]));
    [isa.mul_add(sum, d, sums[0]), sums[1]]
}

/// The sums of 16 bytes' low and high halves times `x`, each half less `bias`.
#[inline(always)]
fn nibbles<I: Isa>(isa: I, bytes: &[u8; 16], x: &[f32; 32], bias: i32) -> I::F32 {
    let mut sums = [isa.splat(0.0); 2];
    for at in (0..16).step_by(I::LANES) {
        // SAFETY: there are 16 bytes, of which `LANES` divide the number.
        let q = unsafe { isa.load_bytes(bytes.as_ptr().add(at)) };
        let bias = isa.splat_bits(bias);
        let low = isa.sub_bits(isa.and_bits(q, isa.splat_bits(15)), bias);
        let high = isa.sub_bits(isa.shr_bits(q, 4), bias);
        sums[0] = isa.mul_add(isa.bits_to_float(low), isa.load(&x[at..]), sums[0]);
        sums[1] = isa.mul_add(isa.bits_to_float(high), isa.load(&x[16 + at..]), sums[1]);
    }
    isa.add(sums[0], sums[1])
}

#[inline(always)]
fn tail<const BYTES: usize>(block: &[u8; BYTES]) -> &[u8; 16] {
    let (_, bytes) = block.split_last_chunk().unwrap_or((&[], &[0; 16]));
    bytes
}

#[inline(always)]
fn q4_0<I: Isa>(isa: I, block: &[u8; 18], x: &[f32; 32], sums: [I::F32; 2]) -> [I::F32; 2] {
    let d = isa.splat(scale(block[0], block[1]));
    [
        isa.mul_add(nibbles(isa, tail(block), x, 8), d, sums[0]),
        sums[1],
    ]
}

#[inline(always)]
fn q4_1<I: Isa>(isa: I, block: &[u8; 20], x: &[f32; 32], sums: [I::F32; 2]) -> [I::F32; 2] {
    let d = isa.splat(scale(block[0], block[1]));
    let m = isa.splat(scale(block[2], block[3]));
    let mut total = isa.splat(0.0);
    for at in (0..32).step_by(I::LANES) {
        total = isa.add(total, isa.load(&x[at..]));
    }
    let sum = nibbles(isa, tail(block), x, 0);
    [isa.mul_add(sum, d, sums[0]), isa.mul_add(total, m, sums[1])]
}

/// The dot product of a row of any blocks, unpacked piece by piece.
#[inline(always)]
fn any_blocks<I: Isa>(isa: I, kind: WeightType, row: &[u8], x: &[f32]) -> f32 {
    let bytes = MAX_BLOCK / kind.block_len() * kind.block_bytes();
    let mut weights = [0.0; MAX_BLOCK];
    let mut sum = isa.splat(0.0);
    for (blocks, x) in row.chunks(bytes).zip(x.chunks(MAX_BLOCK)) {
        kind.dequantize(blocks, &mut weights);
        let weights = &weights[..x.len()];
        for (w, x) in weights.chunks(I::LANES).zip(x.chunks(I::LANES)) {
            sum = isa.mul_add(isa.load_first(w, 0.0), isa.load_first(x, 0.0), sum);
        }
    }
    sum_of(isa, sum)
}

// A panel starts with a block.
const _: () = assert!(KC.is_multiple_of(MAX_BLOCK));

impl Strips for BlockMatrix<'_> {
    #[inline(always)]
    fn strip<I: Isa>(self, isa: I, part: Part, wide: usize, to: &mut [f32]) {
        #[allow(clippy::large_stack_arrays)] // 32 KB, in one frame.
        let mut rows = [0.0; VECTORS * MAX_LANES * KC];
        let (len, bytes) = (self.kind.block_len(), self.kind.block_bytes());
        for (col, to) in (part.col..part.col + part.cols).zip(rows.chunks_exact_mut(KC)) {
            let blocks = &self.row(col)[part.p / len * bytes..][..part.depth / len * bytes];
            unpack(isa, self.kind, blocks, &mut to[..part.depth]);
        }
        let rows = Matrix::new(&rows, [VECTORS * MAX_LANES, KC], false);
        // SAFETY: there are as many rows as a strip is wide at most, of `KC` values.
        unsafe { pack::strip(isa, rows, [part.cols, wide], part.depth, to) };
    }
}

/// Writes the weights of blocks, vector by vector for the commonest types.
#[inline(always)]
fn unpack<I: Isa>(isa: I, kind: WeightType, blocks: &[u8], to: &mut [f32]) {
    match kind {
        WeightType::Q4_1 => {
            let (blocks, _) = blocks.as_chunks::<20>();
            for (block, to) in blocks.iter().zip(to.chunks_exact_mut(32)) {
                let (d, m) = (scale(block[0], block[1]), scale(block[2], block[3]));
                unpack_nibbles(isa, tail(block), [d, m], 0, to);
            }
        }
        WeightType::Q4_0 => {
            let (blocks, _) = blocks.as_chunks::<18>();
            for (block, to) in blocks.iter().zip(to.chunks_exact_mut(32)) {
                unpack_nibbles(isa, tail(block), [scale(block[0], block[1]), 0.0], 8, to);
            }
        }
        _ => kind.dequantize(blocks, to),
    }
}

#[inline(always)]
fn unpack_nibbles<I: Isa>(isa: I, bytes: &[u8; 16], [d, m]: [f32; 2], bias: i32, to: &mut [f32]) {
    let (d, m, bias) = (isa.splat(d), isa.splat(m), isa.splat_bits(bias));
    for at in (0..16).step_by(I::LANES) {
        // SAFETY: there are 16 bytes, of which `LANES` divide the number.
        let q = unsafe { isa.load_bytes(bytes.as_ptr().add(at)) };
        let halves = [isa.and_bits(q, isa.splat_bits(15)), isa.shr_bits(q, 4)];
        for (half, q) in halves.into_iter().enumerate() {
            let q = isa.bits_to_float(isa.sub_bits(q, bias));
            isa.store(isa.add(isa.mul(q, d), m), &mut to[16 * half + at..]);
        }
    }
}
