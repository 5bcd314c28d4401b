//! Products with weights in ggml's blocks, which are read where a file has them.

mod gemv;

use super::panel::{KC, Part, Strips};
use super::tile::VECTORS;
use super::{Matrix, multiply, pack, pieces};
use crate::alloc::scratch::Scratch;
use crate::alloc::try_zeros;
use crate::error::Result;
use crate::graph::steps::ALONE_BELOW;
use crate::ops::OpClass;
use crate::ops::shape::check_matrix;
use crate::simd::isa::{Isa, MAX_LANES, dispatch};
use crate::simd::threads::{Cpu, share, share_out};
use crate::tensor::ggml::{MAX_BLOCK, WeightType};
use crate::tensor::quantized::half::f16_to_f32;
use gemv::{Gemv, Prepare, ROWS};
use std::ops::Range;

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

    /// Returns the weights of some rows.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub(crate) fn dequantized(&self, cpu: Cpu, rows: Range<usize>) -> Result<Vec<f32>> {
        let mut weights = try_zeros(rows.len() * self.cols)?;
        let pieces = cpu.split(weights.len() as u64, OpClass::Elementwise);
        share_out(pieces, self.cols, &mut weights, |at, to| {
            let first = rows.start + at / self.cols;
            for (row, to) in to.chunks_exact_mut(self.cols).enumerate() {
                self.dequantize_row(first + row, to);
            }
            Ok(())
        })?;
        Ok(weights)
    }
}

/// `y = x · Wᵀ` for each row of `x`, which has one value for each column of the matrix.
///
/// # Errors
/// `LengthMismatch` of other lengths, `OutOfMemory` where there is no memory for panels.
pub(crate) fn multiply_blocks(
    cpu: Cpu,
    weights: BlockMatrix<'_>,
    x: &[f32],
    y: &mut [f32],
) -> Result<()> {
    let alone = x.len() / weights.cols < ALONE_BELOW;
    multiply_rows(cpu, weights, x, y, alone)
}

/// [`multiply_blocks`]; with `alone` each row has the bits that it has by itself, however many there are.
///
/// # Errors
/// The errors of [`multiply_blocks`].
pub(crate) fn multiply_rows(
    cpu: Cpu,
    weights: BlockMatrix<'_>,
    x: &[f32],
    y: &mut [f32],
    alone: bool,
) -> Result<()> {
    let (k, n) = (weights.cols, weights.rows);
    let m = x.len() / k;
    // Checked because the kernels' pointers rely on it.
    check_matrix("x", [m, k], x.len(), " (m × k)")?;
    check_matrix("y", [m, n], y.len(), " (m × n)")?;
    if y.is_empty() {
        return Ok(());
    }
    if alone {
        return gemv(cpu, weights, x, y);
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

/// `y = W · x` for each row of `x`.
fn gemv(cpu: Cpu, weights: BlockMatrix<'_>, x: &[f32], y: &mut [f32]) -> Result<()> {
    let (k, n) = (weights.cols, weights.rows);
    let mut room = Scratch::new(x.len())?;
    let xs = x.chunks_exact(k).zip(room.chunks_exact_mut(k));
    let kind = weights.kind;
    let xs = xs.map(|(x, room)| dispatch(cpu.isa, Prepare { kind, x, room }));
    let xs: Vec<_> = xs.collect();
    let work = (xs.len() as u64).saturating_mul(n as u64 * k as u64 * 2);
    let pieces = cpu.split(work, OpClass::Reduction);
    let len = n.div_ceil(pieces).next_multiple_of(ROWS);
    // A piece has some of the columns of each row of `y`.
    let mut parts: Vec<Vec<&mut [f32]>> = (0..n.div_ceil(len)).map(|_| Vec::new()).collect();
    for y in y.chunks_exact_mut(n) {
        for (part, y) in parts.iter_mut().zip(y.chunks_mut(len)) {
            part.push(y);
        }
    }
    share(pieces, parts.into_iter().enumerate(), |(part, mut y)| {
        let product = Gemv {
            weights,
            first: part * len,
            xs: &xs,
            y: &mut y,
        };
        dispatch(cpu.isa, product);
        Ok(())
    })
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

#[inline(always)]
fn scale(low: u8, high: u8) -> f32 {
    f16_to_f32(u16::from_le_bytes([low, high]))
}

#[inline(always)]
fn tail<const BYTES: usize>(block: &[u8; BYTES]) -> &[u8; 16] {
    let (_, bytes) = block.split_last_chunk().unwrap_or((&[], &[0; 16]));
    bytes
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
