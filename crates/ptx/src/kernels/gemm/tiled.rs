//! Matmul by tiles in shared memory; each thread computes 8 × 8 elements of the result in registers.
//!
//! While a block multiplies one pair of tiles, its threads load the next into registers; the
//! tile of `A` lies transposed in shared memory, so that each step reads contiguous values of
//! both.

use super::{GemmKernel, Product};
use crate::build::Builder;
use crate::error::{Error, Result};
use crate::inst::{Op, Reg, Special};
use crate::kernel::{Extent, Launch, PtxKernel};
use crate::kernels::Kernel;
use crate::kernels::copies::{Copy, fours, outer, turn};
use crate::types::PtxType::{F32, U32, U64};
use crate::types::Target;

/// The tile of a matmul that a block computes at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Tile {
    /// The number of rows of `C`: 64 or 128.
    pub rows: u32,
    /// The number of columns of `C`: 64 or 128.
    pub cols: u32,
    /// The extent of `k` in shared memory: 8 or 16.
    pub depth: u32,
    /// The number of elements loaded at once: 4 needs `k` and `n` to be multiples of 4 and all
    /// matrices aligned to 16 bytes; 1 supports any size.
    pub width: u32,
}

impl Tile {
    /// The tile for large sizes.
    pub const LARGE: Tile = Tile {
        rows: 128,
        cols: 128,
        depth: 8,
        width: 1,
    };
    /// The tile for small sizes, which would otherwise leave multiprocessors idle.
    pub const SMALL: Tile = Tile {
        rows: 64,
        cols: 64,
        depth: 8,
        width: 1,
    };

    /// Returns the tile for sizes that are multiples of 4 and aligned matrices. It is deeper along
    /// `k`, since fewer registers hold addresses.
    #[must_use]
    pub const fn aligned(self) -> Tile {
        Tile {
            width: 4,
            depth: 16,
            ..self
        }
    }

    pub(super) fn suffix(self) -> String {
        let Tile {
            rows,
            cols,
            depth,
            width,
        } = self;
        format!("{rows}x{cols}x{depth}_v{width}")
    }

    /// Returns the number of threads; each computes 8 × 8 elements.
    fn threads(self) -> u32 {
        self.rows * self.cols / 64
    }

    /// Values of a column of the tile of `A`, with a gap that spreads columns over the banks.
    fn a_stride(self) -> u32 {
        self.rows + 4
    }

    fn a_bytes(self) -> u32 {
        self.depth * self.a_stride() * 4
    }

    fn b_bytes(self) -> u32 {
        self.depth * self.cols * 4
    }

    fn check(self) -> Result<()> {
        let valid = matches!(self.rows, 64 | 128)
            && matches!(self.cols, 64 | 128)
            && matches!(self.depth, 8 | 16)
            && matches!(self.width, 1 | 4);
        let requirement = "64 or 128 rows and columns, 8 or 16 deep, 1 or 4 values a load";
        let Tile {
            rows,
            cols,
            depth,
            width,
        } = self;
        let value = || format!("{rows} rows, {cols} columns, {depth} deep, {width} values a load");
        let error = || Error::invalid("tile", value(), requirement);
        valid.then_some(()).ok_or_else(error)
    }
}

pub(super) fn build(gemm: &GemmKernel, target: Target, tile: Tile) -> Result<PtxKernel> {
    tile.check()?;
    let grid = [
        Extent::Tiles("n", tile.cols),
        Extent::Tiles("m", tile.rows),
        gemm.products(),
    ];
    let mut launch = Launch::new(tile.threads(), grid);
    // Scalar loads need more registers for addresses than two blocks leave.
    launch.min_blocks = if tile.width == 4 { 2 } else { 1 };
    let mut k = Builder::new(gemm.name(), target, launch);
    let p = Product::declare(&mut k, gemm);
    let block = Block::new(&mut k, tile);
    let sums = block.multiply(&mut k, &p);
    block.store(&mut k, &p, &sums);
    k.finish()
}

/// A block's place in the product, and its thread's place in the block.
struct Block {
    tile: Tile,
    thread: Reg,
    first_row: Reg,
    first_col: Reg,
    /// The first row of the thread's elements in the tile; the others are 1 to 3 and 64 to 67
    /// further on.
    row: Reg,
    col: Reg,
    a_tiles: Reg,
    b_tiles: Reg,
}

impl Block {
    fn new(k: &mut Builder, tile: Tile) -> Self {
        let thread = k.special(Special::TidX);
        let (x, y) = (k.special(Special::CtaidX), k.special(Special::CtaidY));
        let across = tile.cols / 8;
        let (in_row, in_col) = (k.div(thread, across), k.rem(thread, across));
        Block {
            tile,
            thread,
            first_row: k.mul(y, tile.rows),
            first_col: k.mul(x, tile.cols),
            row: k.mul(in_row, 4),
            col: k.mul(in_col, 4),
            a_tiles: k.shared("a_tiles", F32, 2 * tile.a_bytes() / 4),
            b_tiles: k.shared("b_tiles", F32, 2 * tile.b_bytes() / 4),
        }
    }

    /// Returns the copy of a tile of `A`. Consecutive threads copy along `k`, which is contiguous in memory.
    fn copy_a(&self, k: &mut Builder, p: &Product) -> Copy {
        let Tile {
            rows, depth, width, ..
        } = self.tile;
        let across = depth / width;
        let per_pass = self.tile.threads() / across;
        let col = k.rem(self.thread, across);
        let col = k.mul(col, width);
        let row = k.div(self.thread, across);
        let to = k.mul(col, self.tile.a_stride());
        let to = k.add(to, row);
        let to = k.fma(to, 4, self.a_tiles);
        let last = k.sub(p.m, 1);
        let mut copy = Copy::new(width, depth, (depth * 4).into(), self.tile.a_stride());
        for pass in 0..rows / per_pass {
            // Rows beyond the last one repeat it: their sums are never stored.
            let row = k.offset(row, pass * per_pass);
            let row = k.add(row, self.first_row);
            let row = k.min(row, last);
            copy.from.push(k.at_2d(p.a, row, p.k, col, 4));
            copy.to.push(k.offset(to, pass * per_pass * 4));
        }
        copy.depth.push(k.value(U32, col));
        copy
    }

    /// Returns the copy of a tile of `B`. Consecutive threads copy along `n`, which is contiguous in memory.
    fn copy_b(&self, k: &mut Builder, p: &Product) -> Copy {
        let Tile {
            cols, depth, width, ..
        } = self.tile;
        let across = cols / width;
        let per_pass = (self.tile.threads() / across).min(depth);
        let col = k.rem(self.thread, across);
        let col = k.mul(col, width);
        let row = k.div(self.thread, across);
        let to = k.fma(row, cols, col);
        let to = k.fma(to, 4, self.b_tiles);
        let last = k.sub(p.n, width);
        let col = k.add(col, self.first_col);
        let col = k.min(col, last);
        let step = [p.n.into(), (depth * 4).into()];
        let step = k.op(Op::MulWide, U32, U64, &step);
        let mut copy = Copy::new(width, depth, step.into(), 1);
        for pass in 0..depth / per_pass {
            let row = k.offset(row, pass * per_pass);
            copy.from.push(k.at_2d(p.b, row, p.n, col, 4));
            copy.depth.push(k.value(U32, row));
            copy.to.push(k.offset(to, pass * per_pass * cols * 4));
        }
        copy
    }

    fn multiply(&self, k: &mut Builder, p: &Product) -> Vec<Vec<Reg>> {
        let Tile { depth, .. } = self.tile;
        let (a, b) = (self.copy_a(k, p), self.copy_b(k, p));
        let sums: Vec<Vec<Reg>> = (0..8).map(|_| k.filled(F32, 8, 0.0f32)).collect();
        let a_from = k.fma(self.row, 4, self.a_tiles);
        let b_from = k.fma(self.col, 4, self.b_tiles);
        k.comment("the first tiles");
        let (x, y) = (a.load(k, p.k), b.load(k, p.k));
        let (a_buffer, b_buffer) = (k.value(U32, 0), k.value(U32, 0));
        a.store(k, &x, a_buffer);
        b.store(k, &y, b_buffer);
        k.barrier();
        k.for_range(0, p.k, depth, |k, _| {
            k.comment("load the next tiles while these are multiplied");
            let (x, y) = (a.load(k, p.k), b.load(k, p.k));
            let a_now = k.add(a_from, a_buffer);
            let b_now = k.add(b_from, b_buffer);
            for step in 0..depth {
                self.step(k, &sums, a_now, b_now, step);
            }
            turn(k, a_buffer, self.tile.a_bytes());
            turn(k, b_buffer, self.tile.b_bytes());
            a.store(k, &x, a_buffer);
            b.store(k, &y, b_buffer);
            k.barrier();
        });
        sums
    }

    /// Adds the products of one column of A's tile with one row of B's.
    fn step(&self, k: &mut Builder, sums: &[Vec<Reg>], a: Reg, b: Reg, step: u32) {
        let (a_at, b_at) = (step * self.tile.a_stride() * 4, step * self.tile.cols * 4);
        let column = fours(k, a, a_at, 8, self.tile.rows / 2 * 4);
        let row = fours(k, b, b_at, 8, self.tile.cols / 2 * 4);
        outer(k, sums, &column, &row);
    }

    fn store(&self, k: &mut Builder, p: &Product, sums: &[Vec<Reg>]) {
        let row = k.add(self.first_row, self.row);
        let col = k.add(self.first_col, self.col);
        // As many columns at once as are sure to lie in the matrix together.
        let width = self.tile.width as usize;
        let firsts: Vec<(usize, Reg, Reg)> = (0..8)
            .step_by(width)
            .map(|j| {
                let col = k.offset(col, place(j, self.tile.cols / 2));
                (j, col, k.lt(col, p.n))
            })
            .collect();
        for (i, sums) in sums.iter().enumerate() {
            let row = k.offset(row, place(i, self.tile.rows / 2));
            let in_rows = k.lt(row, p.m);
            k.when(in_rows, |k| {
                let c = k.at_2d(p.c, row, p.n, col, 4);
                for &(j, col, in_cols) in &firsts {
                    let offset = place(j, self.tile.cols / 2) * 4;
                    k.when(in_cols, |k| {
                        let sums = &sums[j..j + width];
                        p.finish.store(k, sums, c, offset as i32, col);
                    });
                }
            });
        }
    }
}

/// Returns the position of the `i`-th of the eight rows or columns that a thread computes: two groups of four adjacent
/// ones, `half` apart.
fn place(i: usize, half: u32) -> u32 {
    i as u32 % 4 + i as u32 / 4 * half
}
