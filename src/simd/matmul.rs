//! Matrix product, blocked for the caches as in K. Goto and R. van de Geijn, "Anatomy of
//! High-Performance Matrix Multiplication" (ACM TOMS 34, 2008): `B` in panels of `KC` rows,
//! `A` in blocks of `MC` rows, both packed, and a tile of `C` in the registers.

mod pack;
mod tile;
mod vector;

pub(super) use tile::{RegisterTile, Tile};

use super::InstructionSet;
use super::isa::{Isa, Kernel, dispatch};
use super::reduce::{Products, Sum};
use crate::error::Result;
use pack::Scratch;

/// Depth of a panel: a strip of packed `B` stays in the first-level cache, and no sum gathers
/// more than this many products, which bounds the rounding error.
const KC: usize = 256;

/// Rows of a packed block of `A`: `MC × KC` values take half of a second-level cache.
const MC: usize = 192;

/// Columns of a packed panel of `B`.
const NC: usize = 2048;

/// Products below which packing does not pay.
const SMALL: usize = 16 * 16 * 16;

/// `C = A · B` for row-major `m × k` times `k × n`.
pub(super) fn matmul(
    isa: InstructionSet,
    a: &[f32],
    b: &[f32],
    c: &mut [f32],
    shape: [usize; 3],
) -> Result<()> {
    let [m, k, n] = shape;
    let lengths = [m.checked_mul(k), k.checked_mul(n), m.checked_mul(n)];
    // Checked again because the kernels' pointers rely on it.
    if c.is_empty() || lengths != [Some(a.len()), Some(b.len()), Some(c.len())] {
        return Ok(());
    }
    if k == 0 {
        c.fill(0.0);
        return Ok(());
    }
    let product = Product { a, b, c, m, k, n };
    if n == 1 {
        dispatch(isa, Columns(product));
        Ok(())
    } else if m <= 2 || m.saturating_mul(n).saturating_mul(k) <= SMALL {
        dispatch(isa, vector::Rows(product));
        Ok(())
    } else {
        dispatch(isa, Packed(product))
    }
}

struct Product<'a> {
    a: &'a [f32],
    b: &'a [f32],
    c: &'a mut [f32],
    m: usize,
    k: usize,
    n: usize,
}

/// Matrix times vector: a dot product a row.
struct Columns<'a>(Product<'a>);

impl Kernel for Columns<'_> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let Product { a, b, c, k, .. } = self.0;
        for (row, c) in a.chunks_exact(k).zip(c) {
            *c = Sum(Products(row, b)).run(isa) as f32;
        }
    }
}

struct Packed<'a>(Product<'a>);

impl Kernel for Packed<'_> {
    type Output = Result<()>;

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) -> Result<()> {
        let Product { a, b, c, m, k, n } = self.0;
        let (tile_rows, tile_cols) = (I::Tile::ROWS, I::Tile::VECTORS * I::LANES);
        let depth = KC.min(k);
        let mut block = Scratch::new(MC.min(m).next_multiple_of(tile_rows), depth)?;
        let mut panel = Scratch::new(NC.min(n).next_multiple_of(tile_cols), depth)?;
        for col in (0..n).step_by(NC) {
            let cols = NC.min(n - col);
            for p in (0..k).step_by(KC) {
                let depth = KC.min(k - p);
                let panel = panel.values();
                pack::columns(isa, &b[p * n + col..], n, [depth, cols], tile_cols, panel);
                for row in (0..m).step_by(MC) {
                    let rows = MC.min(m - row);
                    let block = block.values();
                    pack::rows(isa, &a[row * k + p..], k, [rows, depth], tile_rows, block);
                    let c = &mut c[row * n + col..];
                    multiply_block(isa, block, panel, [rows, depth, cols], c, n, p > 0);
                }
            }
        }
        Ok(())
    }
}

/// `C = A · B`, or `C += A · B`, for a packed block of `A` and a packed panel of `B`.
#[inline(always)]
fn multiply_block<I: Isa>(
    isa: I,
    block: &[f32],
    panel: &[f32],
    [rows, depth, cols]: [usize; 3],
    c: &mut [f32],
    c_stride: usize,
    accumulate: bool,
) {
    let (tile_rows, tile_cols) = (I::Tile::ROWS, I::Tile::VECTORS * I::LANES);
    for (b, col) in panel
        .chunks_exact(depth * tile_cols)
        .zip((0..cols).step_by(tile_cols))
    {
        for (a, row) in block
            .chunks_exact(depth * tile_rows)
            .zip((0..rows).step_by(tile_rows))
        {
            let size = [tile_rows.min(rows - row), tile_cols.min(cols - col)];
            let c = &mut c[row * c_stride + col..];
            I::Tile::multiply(isa, a, b, c, c_stride, size, accumulate);
        }
    }
}
