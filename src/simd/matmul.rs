//! Matrix product, blocked for the caches as in K. Goto and R. van de Geijn, "Anatomy of
//! High-Performance Matrix Multiplication" (ACM TOMS 34, 2008): `B` in panels of `KC` rows,
//! `A` in blocks of `MC` rows, and a tile of `C` in the registers. Panels and blocks are packed
//! where they are read so often that this pays.

mod cached;
mod columns;
mod dequant;
#[cfg(feature = "llm-core")]
mod ggml;
mod im2col;
mod pack;
mod packed;
mod panel;
mod product;
mod tile;
mod vector;

pub(super) use cached::multiply_cached;
pub(crate) use dequant::multiply_words;
#[cfg(feature = "llm-core")]
pub(crate) use ggml::{BlockMatrix, multiply_blocks, multiply_rows};
pub(super) use im2col::multiply_patches;
pub(crate) use packed::Packed;

use super::InstructionSet;
use super::isa::dispatch;
use super::threads::{Cpu, THREADED, matmul_class, share};
use crate::alloc::try_zeros;
use crate::error::Result;
use crate::ops::Matmul;
use crate::ops::shape::{check_len, check_len_for, check_matrix};
use crate::tensor::Plane;
use columns::Columns;
use panel::{Panels, Unpacked};
use product::Product;
use std::ops::Range;

/// `C = A · B`, `m × k` times `k × n`.
///
/// # Errors
/// `LengthMismatch` of slices that do not have the lengths of the shape, `OutOfMemory` where there is no memory for
/// packed operands.
pub(super) fn matmul(
    isa: InstructionSet,
    pieces: usize,
    options: &Matmul,
    a: &[f32],
    b: &[f32],
    c: &mut [f32],
) -> Result<()> {
    let Matmul {
        m,
        k,
        n,
        transpose_a,
        transpose_b,
    } = *options;
    check_operands([m, k, n], [a.len(), b.len(), c.len()])?;
    if c.is_empty() {
        return Ok(());
    }
    if k == 0 {
        c.fill(0.0);
        return Ok(());
    }
    // Vectors are stored alike either way.
    let transpose_a = transpose_a && m.min(k) > 1;
    let transpose_b = transpose_b && k.min(n) > 1;
    // Products with a vector read the matrix once, row by row as it is stored.
    if n == 1 && !transpose_a {
        return columns(isa, pieces, a, b, c);
    }
    if m == 1 && transpose_b {
        return columns(isa, pieces, b, a, c);
    }
    if n == 1 {
        return row(isa, pieces, b, a, c);
    }
    if m <= 2 && !transpose_a && !transpose_b {
        let rows = a.chunks_exact(k).zip(c.chunks_exact_mut(n));
        return rows
            .into_iter()
            .try_for_each(|(a, c)| row(isa, pieces, a, b, c));
    }
    let a = Matrix::new(a, [m, k], transpose_a);
    // Its rows are the columns of `B`.
    let b = Unpacked(Matrix::new(b, [n, k], !transpose_b));
    // SAFETY: the lengths are those of the shapes.
    unsafe { multiply(isa, pieces, a, b, [m, k, n], c) }
}

/// `C = A · B` of matrices at any strides: `C`, row-major, must have `a.rows × b.cols` values, and `A` must have the
/// number of columns that `B` has rows.
///
/// # Errors
/// `LengthMismatch` of other lengths, `OutOfMemory` where there is no memory for packed operands.
pub(crate) fn multiply_planes(
    cpu: Cpu,
    (a_data, a): (&[f32], Plane),
    (b_data, b): (&[f32], Plane),
    c: &mut [f32],
) -> Result<()> {
    let shape = [a.rows, a.cols, b.cols];
    // Checked again because the kernels' pointers rely on it.
    check_len("the rows of `b`", a.cols, b.rows)?;
    check_matrix("c", [a.rows, b.cols], c.len(), " (m × n)")?;
    if c.is_empty() {
        return Ok(());
    }
    check_within("a", a.end(), a_data.len())?;
    check_within("b", b.end(), b_data.len())?;
    let matrix = |data: &[f32], offset: usize, row: usize, col: usize| Matrix {
        values: data[offset..].as_ptr(),
        row,
        col,
    };
    let a = matrix(a_data, a.offset, a.row_stride, a.col_stride);
    let b = Unpacked(matrix(b_data, b.offset, b.col_stride, b.row_stride));
    // SAFETY: neither plane reaches beyond its values, and `C` has its length.
    unsafe { multiply(cpu.isa, pieces(cpu, shape), a, b, shape, c) }
}

/// `C = C + A · B`.
///
/// # Errors
/// `LengthMismatch` if slices do not have the lengths of the shape, `OutOfMemory` if there is no memory for packed
/// operands or for the product with a vector, which is added after it was computed.
pub(crate) fn multiply_add(
    cpu: Cpu,
    options: &Matmul,
    a: &[f32],
    b: &[f32],
    c: &mut [f32],
) -> Result<()> {
    let Matmul { m, k, n, .. } = *options;
    check_operands([m, k, n], [a.len(), b.len(), c.len()])?;
    if c.is_empty() || k == 0 {
        return Ok(());
    }
    let pieces = pieces(cpu, [m, k, n]);
    if m <= 2 || n == 1 {
        let mut product = try_zeros(c.len())?;
        matmul(cpu.isa, pieces, options, a, b, &mut product)?;
        // Few values, beside those of the matrix.
        c.iter_mut().zip(product).for_each(|(c, term)| *c += term);
        return Ok(());
    }
    let a = Matrix::new(a, [m, k], options.transpose_a);
    let b = Unpacked(Matrix::new(b, [n, k], !options.transpose_b));
    // SAFETY: the lengths are those of the shapes.
    unsafe { multiply_onto(cpu.isa, pieces, a, b, [m, k, n], c, true) }
}

/// Checks the lengths of `A`, `B` and `C` again because the kernels' pointers rely on them.
fn check_operands([m, k, n]: [usize; 3], [a, b, c]: [usize; 3]) -> Result<()> {
    check_matrix("a", [m, k], a, " (m × k)")?;
    check_matrix("b", [k, n], b, " (k × n)")?;
    check_matrix("c", [m, n], c, " (m × n)")
}

/// Checks that a plane ends within its values.
fn check_within(what: &'static str, end: usize, len: usize) -> Result<()> {
    check_len_for(what, end.max(len), len, " at least, where its view ends")
}

/// Returns the number of pieces into which a matmul should be split.
fn pieces(cpu: Cpu, [m, k, n]: [usize; 3]) -> usize {
    let work = [m, k, n].map(|dim| dim as u64);
    let work = work.into_iter().fold(1, u64::saturating_mul);
    cpu.split(work, matmul_class(m, n))
}

/// Computes a matmul by blocks of `C`, divided into `pieces` pieces.
///
/// # Safety
/// `a` must have `m` rows of `k` values, `b` must have `n` columns of `k` values, and `c` must have
/// `m · n` values. `m · n` must not be 0.
unsafe fn multiply<B: Panels>(
    isa: InstructionSet,
    pieces: usize,
    a: Matrix,
    b: B,
    shape: [usize; 3],
    c: &mut [f32],
) -> Result<()> {
    // SAFETY: the caller says so.
    unsafe { multiply_onto(isa, pieces, a, b, shape, c, false) }
}

/// Computes [`multiply`], and adds the result to `C` if `accumulate` is set.
///
/// # Safety
/// As for [`multiply`].
unsafe fn multiply_onto<B: Panels>(
    isa: InstructionSet,
    pieces: usize,
    a: Matrix,
    b: B,
    [m, k, n]: [usize; 3],
    c: &mut [f32],
    accumulate: bool,
) -> Result<()> {
    let whole = Product {
        a,
        b,
        c: c.as_mut_ptr(),
        stride: n,
        k,
        rows: 0..m,
        cols: 0..n,
        accumulate,
    };
    // Where there are no threads, there is no code for blocks either.
    if pieces == 1 || !THREADED {
        return dispatch(isa, whole);
    }
    let blocks = grid(pieces, m, n).map(|(rows, cols)| Product {
        rows,
        cols,
        ..whole
    });
    share(pieces, blocks, |block| dispatch(isa, block))
}

/// Matrix times vector, the matrix stored row by row: a dot product a row.
fn columns(isa: InstructionSet, pieces: usize, a: &[f32], b: &[f32], c: &mut [f32]) -> Result<()> {
    let rows = c.len().div_ceil(pieces);
    let parts = a.chunks(rows * b.len()).zip(c.chunks_mut(rows));
    share(pieces, parts, |(a, c)| {
        dispatch(isa, Columns { a, b, c });
        Ok(())
    })
}

/// Vector times matrix, the matrix stored row by row: a sum of multiples of the rows.
fn row(isa: InstructionSet, pieces: usize, a: &[f32], b: &[f32], c: &mut [f32]) -> Result<()> {
    let stride = c.len();
    let cols = stride.div_ceil(pieces).next_multiple_of(BLOCK_COLS);
    let parts = (0..).step_by(cols).zip(c.chunks_mut(cols));
    share(pieces, parts, |(col, c)| {
        let b = &b[col..];
        dispatch(isa, vector::Row { a, b, stride, c });
        Ok(())
    })
}

/// A result is split into blocks whose numbers of rows and of columns are multiples of these, so that no tile is
/// smaller than it would be in one piece.
const BLOCK_ROWS: usize = 24;
const BLOCK_COLS: usize = 64;

/// Divides a result into about `pieces` blocks, nearly square so that they share little of the
/// operands.
fn grid(pieces: usize, m: usize, n: usize) -> impl Iterator<Item = (Range<usize>, Range<usize>)> {
    let across = (1..=pieces).filter(|across| pieces.is_multiple_of(*across));
    let half_perimeter = |&across: &usize| m / (pieces / across) + n / across;
    let across = across.min_by_key(half_perimeter).unwrap_or(1);
    let rows = m.div_ceil(pieces / across).next_multiple_of(BLOCK_ROWS);
    let cols = n.div_ceil(across).next_multiple_of(BLOCK_COLS);
    let split =
        |len: usize, step: usize| (0..len).step_by(step).map(move |at| at..len.min(at + step));
    split(m, rows).flat_map(move |rows| split(n, cols).map(move |cols| (rows.clone(), cols)))
}

/// A part of a matrix. The element at row `i` and column `j` is at the offset `i · row + j · col`.
#[derive(Clone, Copy)]
struct Matrix {
    values: *const f32,
    row: usize,
    col: usize,
}

impl Matrix {
    /// A matrix without elements.
    const NONE: Self = Self {
        values: std::ptr::null(),
        row: 1,
        col: 1,
    };

    /// A matrix of `rows × cols` values, stored column by column if it is `transposed`.
    fn new(values: &[f32], [rows, cols]: [usize; 2], transposed: bool) -> Self {
        let (row, col) = if transposed { (1, rows) } else { (cols, 1) };
        let values = values.as_ptr();
        Self { values, row, col }
    }

    #[inline(always)]
    unsafe fn at(self, row: usize, col: usize) -> *const f32 {
        // SAFETY: the caller stays within the matrix.
        unsafe { self.values.add(row * self.row + col * self.col) }
    }

    #[inline(always)]
    unsafe fn from(self, row: usize, col: usize) -> Self {
        // SAFETY: the caller stays within the matrix.
        let values = unsafe { self.at(row, col) };
        Self { values, ..self }
    }
}
