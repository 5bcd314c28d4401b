//! The product of few rows on tensor cores, which multiply signed bytes exactly (`mma.sync`, since Ampere).
//!
//! A block makes three digits of base 256 of each element of `x`, in units of 2⁻²² to 2⁻²³ of the largest of a *run*. Then its
//! warps share the columns of one *tile* of 16 rows of weights after another. A warp multiplies a *chunk* of four runs at once,
//! of which lane `4g + t` loads run `t` of rows `g` and `g + 8`. In the right factor, columns `2t` and `2t + 1` have
//! digits of run `t` alone, and zeros elsewhere: so the products that lane `4g + t` receives are those of run `t`, whose
//! scales it loads.

mod factor;
mod finish;

use super::{Loaded, PackedFormat, PackedMatmulKernel, Params, Row, divide_by_root};
use crate::build::Builder;
use crate::error::Result;
use crate::inst::{Op, Reg, Special};
use crate::kernel::{Extent, Launch, PtxKernel};
use crate::kernels::common::WARP;
use crate::kernels::{Activation, Kernel};
use crate::types::PtxType::{F32, U32};
use crate::types::Target;
use factor::Digits;
use finish::Finish;

/// The number of rows of weights in a tile.
const ROWS: u32 = PackedMatmulKernel::DIGIT_ROWS;
/// The number of columns that a thread makes digits of, a whole run or half of one.
const PART: u32 = 16;
/// The number of runs of a chunk.
const RUNS: u32 = 4;

/// The number of columns of a run, of which a lane loads the weights by instructions of 16 bytes.
fn run_len(format: PackedFormat) -> u32 {
    match format {
        PackedFormat::Nibbles => 32,
        PackedFormat::Bytes | PackedFormat::Floats => 16,
    }
}

/// The number of parts of a run.
fn parts_of_run(format: PackedFormat) -> u32 {
    run_len(format) / PART
}

/// The maximum number of columns of all kernels.
const MOST_COLS: u32 = 1 << 14;
/// Bytes of a run's unit and sum.
const UNIT_BYTES: u32 = 8;
/// At least the bytes of a block's other arrays.
const STATIC_BYTES: u32 = 1 << 11;

/// Bytes of a run's digits, the three digits one after the other.
fn digits_bytes(format: PackedFormat) -> u32 {
    3 * run_len(format)
}

/// Bytes of the sums of warps for the rows of a tile, of all rows of `x`.
fn sums_bytes(sizes: Sizes) -> u32 {
    4 * ROWS * sizes.warps * sizes.tokens
}

/// The division of a [`PackedMatmulKernel::digits`] kernel's work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DigitSplit {
    /// A multiprocessor computes three tiles at once, for matrices of many rows.
    Rows,
    /// A multiprocessor computes one tile at once and loads more of it ahead, for matrices with less tiles than
    /// multiprocessors compute with [`DigitSplit::Rows`].
    Columns,
    /// A multiprocessor computes one tile at once, of up to four rows of `x`, for which it reads the weights once.
    Tokens,
}

impl DigitSplit {
    /// Returns the maximum number of columns.
    pub fn cols(self, target: Target) -> u32 {
        let sizes = Sizes::of(self);
        let bytes = target
            .max_shared()
            .saturating_sub(STATIC_BYTES + 2 * sums_bytes(sizes));
        // Of bytes, which need more than nibbles.
        let of_col = digits_bytes(PackedFormat::Bytes) + UNIT_BYTES;
        let cols = bytes / sizes.tokens * run_len(PackedFormat::Bytes) / of_col;
        (cols / 1024 * 1024).min(MOST_COLS)
    }
}

/// The sizes of a block. Measured on an H200 with 4 to 24 warps.
#[derive(Clone, Copy)]
struct Sizes {
    /// The number of warps, a multiple of 4.
    warps: u32,
    /// The number of blocks per multiprocessor.
    blocks: u32,
    /// The number of chunks that a warp loads ahead.
    ahead: u32,
    /// The number of rows of `x`.
    tokens: u32,
}

impl Sizes {
    fn of(split: DigitSplit) -> Self {
        let [warps, blocks, ahead, tokens] = match split {
            DigitSplit::Rows => [8, 3, 1, 1],
            DigitSplit::Columns => [16, 1, 4, 1],
            DigitSplit::Tokens => [16, 1, 2, 4],
        };
        Self {
            warps,
            blocks,
            ahead,
            tokens,
        }
    }
}

pub(super) fn build(
    kernel: PackedMatmulKernel,
    gate: Option<Activation>,
    split: DigitSplit,
    target: Target,
) -> Result<PtxKernel> {
    let sizes = Sizes::of(split);
    let grid = [
        Extent::Multiprocessors(sizes.blocks),
        Extent::Tiles("tokens", sizes.tokens),
        Extent::Fixed(1),
    ];
    let mut launch = Launch::new(sizes.warps * WARP, grid).overlapping(target);
    launch.min_blocks = sizes.blocks;
    let mut k = Builder::new(kernel.name(), target, launch);
    let params = Params::declare(&mut k, kernel.format);
    let normalises = k.scalar("normalises", U32);
    let normalises = k.ne(normalises, 0);
    let epsilon = k.scalar("epsilon", F32);
    let thread = k.special(Special::TidX);
    let tiles = Tiles::new(&mut k, gate, params.rows);
    let warp = Warp::new(&mut k, &params, thread);
    let cursor = Cursor::new(&mut k, &params, &tiles, &warp, sizes);
    for stage in 0..sizes.ahead {
        cursor.load(&mut k, &params, &tiles, &warp, stage);
    }
    cursor.advance(&mut k, &params, &tiles, &warp);
    let digits = Digits::new(&mut k, kernel.format, split, &warp);
    let squares = k.shared("squares", F32, sizes.warps * sizes.tokens);
    k.wait_for_grid();
    let tokens = Tokens::new(&mut k, &params, sizes);
    let has_tiles = k.lt(tiles.block, tiles.all);
    k.when(has_tiles, |k| {
        digits.make_all(k, &params, &warp, &tokens, normalises, squares);
        k.barrier();
        let finish = Finish::new(k, &tiles, &tokens, &warp, [thread, digits.parts], sizes);
        let factor = k.value(F32, params.scale);
        let normalises = k.and(normalises, finish.has_col);
        k.when(normalises, |k| {
            let own = k.fma(finish.row, 4 * sizes.warps, squares);
            normalise(k, factor, [own, params.k, epsilon], sizes.warps);
        });
        let sums = k.filled(F32, 2 * sizes.tokens as usize, 0.0f32);
        k.for_range(tiles.block, tiles.all, tiles.blocks, |k, tile| {
            for &sum in &sums {
                k.assign(sum, 0.0f32);
            }
            let round = sizes.warps * sizes.ahead;
            k.for_range(warp.number, cursor.limit, round, |k, chunk| {
                for stage in 0..sizes.ahead {
                    let chunk = k.offset(chunk, sizes.warps * stage);
                    let exists = k.lt(chunk, warp.chunks);
                    k.when(exists, |k| {
                        let rows = &cursor.stages[stage as usize];
                        digits.multiply(k, &params, (&warp, &tokens), rows, chunk, &sums);
                    });
                    cursor.load(k, &params, &tiles, &warp, stage);
                }
                cursor.advance(k, &params, &tiles, &warp);
            });
            finish.tile(k, &params, &tiles, [tile, factor], &sums);
        });
    });
    k.finish()
}

/// The rows of `x` of a block.
struct Tokens {
    first: Reg,
    /// The number of rows, and the number that a block has room for.
    count: Reg,
    most: u32,
}

impl Tokens {
    fn new(k: &mut Builder, params: &Params, sizes: Sizes) -> Self {
        let block = k.special(Special::CtaidY);
        let first = k.mul(block, sizes.tokens);
        let left = k.sub(params.tokens, first);
        Self {
            first,
            count: k.min(left, sizes.tokens),
            most: sizes.tokens,
        }
    }

    /// Calls a function with each row's number if the row exists.
    fn each(&self, k: &mut Builder, mut body: impl FnMut(&mut Builder, u32)) {
        for token in 0..self.most {
            if token == 0 {
                body(k, token);
                continue;
            }
            let exists = k.gt(self.count, token);
            k.when(exists, |k| body(k, token));
        }
    }
}

/// The tiles of a matrix, which blocks share.
struct Tiles {
    gate: Option<Activation>,
    /// The columns of `y` per tile, and of all tiles.
    cols: [Reg; 2],
    cols_of_tile: u32,
    all: Reg,
    block: Reg,
    blocks: Reg,
}

impl Tiles {
    /// With gates, a tile has the rows of eight gates and those of the values that they multiply.
    fn new(k: &mut Builder, gate: Option<Activation>, rows: Reg) -> Self {
        let (cols_of_tile, cols) = match gate {
            None => (ROWS, rows),
            Some(_) => (ROWS / 2, k.shr(rows, 1)),
        };
        let up = k.add(cols, cols_of_tile - 1);
        let last = k.sub(cols, 1);
        Self {
            gate,
            cols: [cols, last],
            cols_of_tile,
            all: k.shr(up, cols_of_tile.trailing_zeros()),
            block: k.special(Special::CtaidX),
            blocks: k.special(Special::NctaidX),
        }
    }

    /// The rows of weights of lane `4g + t` in a tile. For rows beyond the end it loads the last ones.
    fn rows(&self, k: &mut Builder, params: &Params, tile: Reg, g: Reg) -> [Row; 2] {
        let [cols, last] = self.cols;
        let first = k.fma(tile, self.cols_of_tile, g);
        let rows = if self.gate.is_some() {
            let first = k.min(first, last);
            [first, k.add(first, cols)]
        } else {
            let second = k.add(first, ROWS / 2);
            [k.min(first, last), k.min(second, last)]
        };
        rows.map(|row| params.weights.row(k, row))
    }
}

/// The position of a thread in its warp.
struct Warp {
    number: Reg,
    lane: Reg,
    g: Reg,
    t: Reg,
    /// The number of chunks in a row, and the last run.
    chunks: Reg,
    last_run: Reg,
}

impl Warp {
    fn new(k: &mut Builder, params: &Params, thread: Reg) -> Self {
        let lane = k.and(thread, WARP - 1);
        let run = run_len(params.weights.format);
        let runs = k.shr(params.k, run.trailing_zeros());
        let up = k.add(runs, RUNS - 1);
        Self {
            number: k.shr(thread, WARP.trailing_zeros()),
            lane,
            g: k.shr(lane, RUNS.trailing_zeros()),
            t: k.and(lane, RUNS - 1),
            chunks: k.shr(up, RUNS.trailing_zeros()),
            last_run: k.sub(runs, 1),
        }
    }
}

/// The weights that are being loaded: rounds of `ahead` chunks per warp, tile after tile.
struct Cursor {
    sizes: Sizes,
    /// The number of chunks of a row in whole rounds.
    limit: Reg,
    tile: Reg,
    chunk: Reg,
    rows: [Row; 2],
    stages: Vec<[Loaded; 2]>,
}

impl Cursor {
    fn new(k: &mut Builder, params: &Params, tiles: &Tiles, warp: &Warp, sizes: Sizes) -> Self {
        let round = sizes.warps * sizes.ahead;
        let up = k.add(warp.chunks, round - 1);
        let rounds = k.div(up, round);
        let stages = (0..sizes.ahead).map(|_| [0, 1].map(|_| zeros(k)));
        let stages = stages.collect();
        Self {
            sizes,
            limit: k.mul(rounds, round),
            tile: k.value(U32, tiles.block),
            chunk: k.value(U32, warp.number),
            rows: tiles.rows(k, params, tiles.block, warp.g),
            stages,
        }
    }

    /// Loads a chunk of the round, if it exists.
    fn load(&self, k: &mut Builder, params: &Params, tiles: &Tiles, warp: &Warp, stage: u32) {
        let chunk = k.offset(self.chunk, self.sizes.warps * stage);
        let in_row = k.lt(chunk, warp.chunks);
        let in_matrix = k.lt(self.tile, tiles.all);
        let exists = k.and(in_row, in_matrix);
        k.when(exists, |k| {
            let run = k.fma(chunk, RUNS, warp.t);
            // Beyond the end of a row digits are zeros.
            let run = k.min(run, warp.last_run);
            for (row, stage) in self.rows.iter().zip(&self.stages[stage as usize]) {
                let next = load(k, params, row, run);
                stage.assign(k, &next);
            }
        });
    }

    /// Advances to the next round, which may be the first one of the block's next tile.
    fn advance(&self, k: &mut Builder, params: &Params, tiles: &Tiles, warp: &Warp) {
        k.add_assign(self.chunk, self.sizes.warps * self.sizes.ahead);
        let over = k.ge(self.chunk, self.limit);
        k.when(over, |k| {
            k.assign(self.chunk, warp.number);
            k.add_assign(self.tile, tiles.blocks);
            let next = tiles.rows(k, params, self.tile, warp.g);
            for (row, next) in self.rows.iter().zip(next) {
                k.assign(row.words, next.words);
                k.assign(row.scales, next.scales);
            }
        });
    }
}

/// Registers for the weights of a run.
fn zeros(k: &mut Builder) -> Loaded {
    Loaded {
        words: k.filled(U32, 4, 0),
        group: Some([0, 1].map(|_| k.value(F32, 0.0f32))),
    }
}

/// Loads the weights of a run, and their scale and offset.
fn load(k: &mut Builder, params: &Params, row: &Row, run: Reg) -> Loaded {
    let at = k.at(row.words, run, 16);
    let part = k.mul(run, parts_of_run(params.weights.format));
    Loaded {
        words: k.ld_vector(Op::LdGlobalNc, U32, 4, at, 0),
        group: params.weights.group(k, row, part),
    }
}

/// Multiplies a factor by the inverse of the root mean square of a row, whose sums of squares warps left.
fn normalise(k: &mut Builder, factor: Reg, [squares, cols, epsilon]: [Reg; 3], warps: u32) {
    let sum = k.value(F32, 0.0f32);
    for four in 0..warps / 4 {
        for value in k.ld_vector(Op::LdShared, F32, 4, squares, 16 * four as i32) {
            k.add_assign(sum, value);
        }
    }
    divide_by_root(k, factor, sum, [cols, epsilon]);
}
