//! Matrix product, blocked for the caches as in K. Goto and R. van de Geijn, "Anatomy of
//! High-Performance Matrix Multiplication" (ACM TOMS 34, 2008): `B` in panels of `KC` rows,
//! `A` in blocks of `MC` rows, and a tile of `C` in the registers. Panels and blocks are packed
//! where they are read so often that this pays.

mod pack;
mod tile;
mod vector;

use super::InstructionSet;
use super::isa::{Isa, Kernel, dispatch};
use super::reduce::{Products, Sum};
use super::threads::share;
use crate::error::Result;
use crate::ops::Matmul;
use pack::Scratch;
use std::ops::Range;
use tile::{Place, Strip, VECTORS};

/// Depth of a panel: a strip of packed `B` stays in the first-level cache, and no sum gathers
/// more than this many products, which bounds the rounding error.
const KC: usize = 256;

/// Rows of a block of `A`: `MC × KC` values take half of a second-level cache.
const MC: usize = 192;

/// Columns of a panel of `B`.
const NC: usize = 2048;

/// Values of `B` above which it is packed: fewer stay in the caches however they lie.
const PACK_B_VALUES: usize = 128 * 128;

/// Strips of one operand by which each strip of the other is multiplied, from which on it pays
/// to pack it.
const PACK_STRIPS: usize = 6;

/// `C = A · B`, `m × k` times `k × n`.
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
    let lengths = [m.checked_mul(k), k.checked_mul(n), m.checked_mul(n)];
    // Checked again because the kernels' pointers rely on it.
    if c.is_empty() || lengths != [Some(a.len()), Some(b.len()), Some(c.len())] {
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
    let whole = Product {
        a: Matrix::new(a, [m, k], transpose_a),
        // Its rows are the columns of `B`.
        b: Matrix::new(b, [n, k], !transpose_b),
        c: c.as_mut_ptr(),
        stride: n,
        k,
        rows: 0..m,
        cols: 0..n,
    };
    if pieces == 1 {
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

/// Rows and columns of blocks into which a result is split are multiples of these, so that no
/// tile is smaller than it would be in one piece.
const BLOCK_ROWS: usize = 24;
const BLOCK_COLS: usize = 64;

/// A result in about so many blocks, nearly square so that they share little of the operands.
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

/// Matrix times vector: a dot product a row.
struct Columns<'a> {
    a: &'a [f32],
    b: &'a [f32],
    c: &'a mut [f32],
}

impl Kernel for Columns<'_> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        for (row, c) in self.a.chunks_exact(self.b.len()).zip(self.c) {
            *c = Sum(Products(row, self.b)).run(isa) as f32;
        }
    }
}

/// A part of a matrix: its value at row `i` and column `j` lies `i · row + j · col` further on.
#[derive(Clone, Copy)]
struct Matrix {
    values: *const f32,
    row: usize,
    col: usize,
}

impl Matrix {
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

/// A block of `C`: some rows of `A`, as deep as `k`, times some columns of `B`.
struct Product {
    a: Matrix,
    b: Matrix,
    /// `C` with its rows `stride` apart.
    c: *mut f32,
    stride: usize,
    k: usize,
    rows: Range<usize>,
    cols: Range<usize>,
}

// SAFETY: operands are only read, and blocks that run at the same time do not overlap in `C`.
unsafe impl Send for Product {}

impl Kernel for Product {
    type Output = Result<()>;

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) -> Result<()> {
        let (k, stride) = (self.k, self.stride);
        let (m, n) = (self.rows.len(), self.cols.len());
        let width = VECTORS * I::LANES;
        // SAFETY: the block lies within the matrices.
        let (a, b, c) = unsafe {
            (
                self.a.from(self.rows.start, 0),
                self.b.from(self.cols.start, 0),
                self.c.add(self.rows.start * stride + self.cols.start),
            )
        };
        let depth = KC.min(k);
        // The tile reads rows of `A` and columns of `B` that lie as they do untransposed.
        let pack_a = self.a.col != 1 || n > PACK_STRIPS * width || !I::BROADCASTS_ROWS;
        let pack_b = self.b.row != 1 || (m > PACK_STRIPS * I::TILE_ROWS && k * n > PACK_B_VALUES);
        let mut block = Scratch::new(if pack_a { MC.min(m) } else { 0 }, depth)?;
        let in_place = if pack_b { 0 } else { n / width * width };
        let packed_cols = NC.min(n - in_place).next_multiple_of(width);
        let mut panel = Scratch::new(packed_cols, depth)?;
        for col in (0..n).step_by(NC) {
            let cols = NC.min(n - col);
            for p in (0..k).step_by(KC) {
                let depth = KC.min(k - p);
                // SAFETY: all of these lie within the matrices, by their lengths.
                unsafe {
                    let panel = Panel::new(isa, b.from(col, p), cols, depth, pack_b, &mut panel);
                    for row in (0..m).step_by(MC) {
                        let place = Place {
                            c: c.add(row * stride + col),
                            stride,
                            rows: MC.min(m - row),
                            cols,
                            accumulate: p > 0,
                        };
                        let scratch = pack_a.then(|| block.values());
                        multiply_block(isa, a.from(row, p), scratch, &panel, place);
                    }
                }
            }
        }
        Ok(())
    }
}

/// Columns of `B` as strips: the first in place, the rest packed.
struct Panel<'a> {
    b: Matrix,
    depth: usize,
    in_place: usize,
    packed: &'a [f32],
}

impl<'a> Panel<'a> {
    /// # Safety
    /// `b`, transposed, must have `cols` rows of `depth` values.
    #[inline(always)]
    unsafe fn new<I: Isa>(
        isa: I,
        b: Matrix,
        cols: usize,
        depth: usize,
        pack: bool,
        scratch: &'a mut Scratch,
    ) -> Self {
        let width = VECTORS * I::LANES;
        let in_place = if pack { 0 } else { cols / width * width };
        let packed = scratch.values();
        for col in (in_place..cols).step_by(width) {
            let used = width.min(cols - col);
            let to = &mut packed[(col - in_place) * depth..];
            // SAFETY: the caller's promise.
            unsafe {
                let widths = [used, used.next_multiple_of(I::LANES)];
                pack::strip(isa, b.from(col, 0), widths, depth, to);
            }
        }
        Self {
            b,
            depth,
            in_place,
            packed,
        }
    }

    #[inline(always)]
    fn strip(&self, col: usize, width: usize) -> Strip {
        if col < self.in_place {
            Strip {
                // SAFETY: within the columns that `new` was promised.
                values: unsafe { self.b.at(col, 0) },
                across: 1,
                deep: self.b.col,
            }
        } else {
            Strip {
                values: self.packed[(col - self.in_place) * self.depth..].as_ptr(),
                across: 1,
                deep: width,
            }
        }
    }
}

/// Multiplies a block of `A`, packed to `scratch` if there is some, and a panel of `B`.
///
/// # Safety
/// `a` must have the rows of `place`, as deep as the panel, which must have its columns; those
/// must be writable.
#[inline(always)]
unsafe fn multiply_block<I: Isa>(
    isa: I,
    a: Matrix,
    mut scratch: Option<&mut [f32]>,
    panel: &Panel<'_>,
    place: Place,
) {
    let (width, depth) = (VECTORS * I::LANES, panel.depth);
    for col in (0..place.cols).step_by(width) {
        let cols = width.min(place.cols - col);
        let b = panel.strip(col, cols.next_multiple_of(I::LANES));
        let mut row = 0;
        while row < place.rows {
            let rows = height::<I>(place.rows - row);
            // SAFETY: rows and columns of the block and the panel.
            unsafe {
                let a = a.from(row, 0);
                let a = match &mut scratch {
                    Some(scratch) if col == 0 => {
                        pack::strip(isa, a, [rows, rows], depth, &mut scratch[row * depth..])
                    }
                    Some(scratch) => Strip {
                        values: scratch[row * depth..].as_ptr(),
                        across: 1,
                        deep: rows,
                    },
                    None => Strip {
                        values: a.values,
                        across: a.row,
                        deep: a.col,
                    },
                };
                let place = Place {
                    c: place.c.add(row * place.stride + col),
                    rows,
                    cols,
                    ..place
                };
                tile::multiply(isa, a, b, depth, place);
            }
            row += rows;
        }
    }
}

/// Rows of the next tile: what would be left for a last low tile is shared by the last two.
#[inline(always)]
fn height<I: Isa>(rows: usize) -> usize {
    if rows > I::TILE_ROWS && rows < 2 * I::TILE_ROWS {
        rows.div_ceil(2)
    } else {
        rows.min(I::TILE_ROWS)
    }
}
