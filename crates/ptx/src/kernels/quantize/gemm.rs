//! Products with a matrix of quantised weights on the tensor cores of any GPU since Ampere.
//!
//! Weights become f16 or bf16 in the registers of the lane that multiplies them, on the way from
//! memory. A lane has four consecutive weights, where an instruction's layout has two pairs that are
//! eight apart. Sums do not depend on the order, so activations are read in the same order. They come
//! from tiles in shared memory, which have 64 elements along `k` and form a ring of four. A span of 256
//! weights has four of these tiles, and the loop over them is unrolled.
//!
//! Eight warps share a tile of rows of `x` and of weights. For few rows they also divide `k`, one span
//! for each warp, and add their accumulators at the end.

mod copies;
mod store;
mod weights;

use super::direct::Span;
use super::spans::{RUN, SPAN, Unpacking};
use super::{QuantFormat, QuantizeKernel};
use crate::build::Builder;
use crate::error::Result;
use crate::inst::{Op, Reg, Special};
use crate::kernel::{Extent, Launch, PtxKernel};
use crate::kernels::common::WARP;
use crate::kernels::{Kernel, values};
use crate::types::PtxType::{self, B32, BF16, F32, U8, U32};
use crate::types::Target;
use weights::{Head, Weights};

const WARPS: u32 = 8;
const THREADS: u32 = WARPS * WARP;
/// The number of rows of weights per warp: four fragments of eight.
const COLS: u32 = 32;
const FRAGMENTS: u32 = COLS / 8;
/// The extent of `k` in a tile.
const DEPTH: u32 = 64;
const UNITS: u32 = DEPTH / 8;
const TILES: u32 = SPAN / DEPTH;
/// The number of rows in the tiles of a stage. The tiles of warps that divide `k` lie one after the other.
const STAGE_ROWS: u32 = 128;
const STAGE: u32 = STAGE_ROWS * DEPTH * 2;

/// The number of blocks that leave few multiprocessors idle.
const ENOUGH: u32 = 128;
/// The division of a matmul among eight warps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Shares {
    /// The number of rows of `x` in a tile.
    rows: u32,
    /// Warps along the rows of `x`, along those of weights, and along `k`.
    warps: [u32; 3],
}

impl Shares {
    pub(super) const WIDE: Shares = Shares {
        rows: 128,
        warps: [1, 8, 1],
    };
    pub(super) const MANY: Shares = Shares {
        rows: 128,
        warps: [2, 4, 1],
    };
    const SOME: Shares = Shares {
        rows: 32,
        warps: [1, 2, 4],
    };
    const FEW: Shares = Shares {
        rows: 16,
        warps: [1, 1, 8],
    };

    pub(super) fn for_size(m: u32, n: u32) -> Self {
        let (down, across) = (m.div_ceil(Self::WIDE.rows), n.div_ceil(Self::WIDE.cols()));
        let wide = down.saturating_mul(across);
        match m {
            0..=16 => Self::FEW,
            17..=64 => Self::SOME,
            _ if wide >= ENOUGH => Self::WIDE,
            _ => Self::MANY,
        }
    }

    pub(super) fn suffix(self) -> String {
        format!("{}x{}", self.rows, self.cols())
    }

    /// Rows of weights in a tile.
    fn cols(self) -> u32 {
        self.warps[1] * COLS
    }

    /// Rows of `x` to a warp.
    fn warp_rows(self) -> u32 {
        self.rows / self.warps[0]
    }
}

pub(super) fn build(
    kernel: QuantizeKernel,
    ty: PtxType,
    shares: Shares,
    target: Target,
) -> Result<PtxKernel> {
    values::check_half(ty)?;
    let grid = [
        Extent::Tiles("n", shares.cols()),
        Extent::Tiles("m", shares.rows),
        Extent::Fixed(1),
    ];
    let mut launch = Launch::new(THREADS, grid);
    // Smaller tiles leave registers for a second block, which works while the first one waits.
    launch.min_blocks = if shares == Shares::FEW { 2 } else { 1 };
    let mut k = Builder::new(kernel.name(), target, launch);
    let (w, x, y) = (k.pointer("w", U8), k.pointer("x", ty), k.pointer("y", ty));
    let [m, n, depth] = ["m", "n", "k"].map(|name| k.scalar(name, U32));
    let block = Block::new(&mut k, kernel.format, ty, shares, [m, n, depth]);
    let sums = block.multiply(&mut k, w, x);
    if shares.warps[2] > 1 {
        block.store_shared(&mut k, &sums, y);
    } else {
        block.store(&mut k, &sums, y);
    }
    k.finish()
}

struct Block {
    format: QuantFormat,
    ty: PtxType,
    shares: Shares,
    m: Reg,
    n: Reg,
    depth: Reg,
    thread: Reg,
    /// The index of the lane, `4g + t`.
    lane: Reg,
    g: Reg,
    t: Reg,
    first_row: Reg,
    first_col: Reg,
    /// The warp's first row and column in the tile, and its share of `k`.
    warp_row: Reg,
    warp_col: Reg,
    share: Reg,
    stages: Reg,
    /// The distance in bytes from the first word to this lane's words.
    beyond: Reg,
}

/// A unit's place in a row of a tile: lanes read pairs of units of four rows.
fn swizzled(k: &mut Builder, row: Reg, unit: Reg) -> Reg {
    let turn = k.and(row, 3);
    let turn = k.shl(turn, 1);
    k.xor(unit, turn)
}

impl Block {
    fn new(
        k: &mut Builder,
        format: QuantFormat,
        ty: PtxType,
        shares: Shares,
        [m, n, depth]: [Reg; 3],
    ) -> Self {
        let (thread, stages) = (
            k.special(Special::TidX),
            k.dynamic_shared("stages", TILES * STAGE),
        );
        let (x, y) = (k.special(Special::CtaidX), k.special(Special::CtaidY));
        let (warp, lane) = (k.shr(thread, 5), k.and(thread, WARP - 1));
        let t = k.and(lane, 3);
        let [rows, cols, _] = shares.warps;
        let (row, rest) = (k.rem(warp, rows), k.div(warp, rows));
        let (col, share) = (k.rem(rest, cols), k.div(rest, cols));
        Block {
            format,
            ty,
            shares,
            m,
            n,
            depth,
            thread,
            lane,
            g: k.shr(lane, 2),
            t,
            first_row: k.mul(y, shares.rows),
            first_col: k.mul(x, shares.cols()),
            warp_row: k.mul(row, shares.warp_rows()),
            warp_col: k.mul(col, COLS),
            share,
            stages,
            beyond: {
                let words = k.mul(t, 4);
                k.widen(words)
            },
        }
    }

    /// Computes the addresses of this lane's first words of each of its rows of weights, in the
    /// warp's share of `k`.
    fn rows(&self, k: &mut Builder, w: Reg) -> Vec<Reg> {
        let (values, bytes) = self.format.block();
        let blocks = k.div(self.depth, values);
        let row_bytes = k.mul(blocks, bytes);
        let last = k.sub(self.n, 1);
        let first = k.add(self.first_col, self.warp_col);
        let first = k.add(first, self.g);
        let own = k.mul(self.t, 4);
        let own = k.fma(self.share, self.span_bytes(), own);
        let row = |i| {
            let row = k.offset(first, 8 * i);
            let row = k.min(row, last);
            k.at_2d(w, row, row_bytes, own, 1)
        };
        (0..FRAGMENTS).map(row).collect()
    }

    fn span_bytes(&self) -> u32 {
        let (values, bytes) = self.format.block();
        SPAN / values * bytes
    }

    /// The warp's sums: by fragment of rows of `x` and of weights.
    fn multiply(&self, k: &mut Builder, w: Reg, x: Reg) -> Vec<Vec<Vec<Reg>>> {
        let copies = self.copies(k, x);
        let rows = self.rows(k, w);
        let left = Left::new(k, self);
        let unpacking = Unpacking::new(k, self.format, self.t);
        let fragments = self.shares.warp_rows() / 16;
        let sums: Vec<Vec<Vec<Reg>>> = (0..fragments)
            .map(|_| (0..FRAGMENTS).map(|_| k.filled(F32, 4, 0.0f32)).collect())
            .collect();
        let zero = k.value(U32, 0);
        for tile in 0..TILES - 1 {
            self.ask(k, &copies, zero, tile);
        }
        let all = self.shares.warps[2];
        let heads = self.heads(k, &rows, &unpacking, zero);
        k.for_range(0, self.depth, SPAN * all, |k, base| {
            let exist = self.exist(k, base);
            let pairs = rows.iter().zip(&heads);
            let mut spans: Vec<Weights> = pairs
                .map(|(&row, head)| {
                    let span = Span::new(self.format, [row, self.beyond], &exist);
                    Weights::new(span, self.format, head)
                })
                .collect();
            for tile in 0..TILES {
                // All but the last two tiles asked for have come, and all have read the one before.
                k.act(Op::CpAsyncWait, &[(TILES - 2).into()]);
                k.barrier();
                self.ask(k, &copies, base, tile + TILES - 1);
                if tile + 1 < TILES {
                    for span in &mut spans {
                        span.load(k, tile + 1);
                    }
                    self.tile(k, &left, &mut spans, &sums, tile);
                    continue;
                }
                for &row in &rows {
                    k.add_assign(row, i64::from(self.span_bytes() * all));
                }
                let base = k.add(base, SPAN * all);
                let next = self.heads(k, &rows, &unpacking, base);
                self.tile(k, &left, &mut spans, &sums, tile);
                for (head, next) in heads.iter().zip(&next) {
                    head.assign(k, next);
                }
            }
        });
        k.act(Op::CpAsyncWait, &[0.into()]);
        sums
    }

    /// Multiplies a tile of `x` with its part of each row's span.
    fn tile(
        &self,
        k: &mut Builder,
        left: &Left,
        spans: &mut [Weights],
        sums: &[Vec<Vec<Reg>>],
        tile: u32,
    ) {
        for step in 0..DEPTH / 16 {
            let mut right = Vec::new();
            for span in &mut *spans {
                right.push(span.fragment(k, self, tile, step));
            }
            for (i, sums) in (0..).zip(sums) {
                let a = left.load(k, tile, step, i);
                for (b, sums) in right.iter().zip(sums) {
                    self.mma(k, sums, &a, b);
                }
            }
        }
    }

    /// Computes which runs of the warp's span exist, if the first warp's span begins at `base`.
    fn exist(&self, k: &mut Builder, base: Reg) -> Vec<Reg> {
        let first = k.fma(self.share, SPAN, base);
        Span::runs(k, self.format, first, self.depth)
    }

    /// Loads the part of each row's span that is needed first.
    fn heads(&self, k: &mut Builder, rows: &[Reg], unpacking: &Unpacking, base: Reg) -> Vec<Head> {
        let exist = self.exist(k, base);
        let first = k.fma(self.share, SPAN, base);
        let own = k.fma(self.t, 2 * RUN, first);
        let own = [0, RUN].map(|further| {
            let first = k.offset(own, further);
            k.lt(first, self.depth)
        });
        let head = |&row: &Reg| {
            let span = Span::new(self.format, [row, self.beyond], &exist);
            Head::load(k, &span, self.format, unpacking, own)
        };
        rows.iter().map(head).collect()
    }

    fn mma(&self, k: &mut Builder, sums: &[Reg], a: &[Reg], b: &[Reg]) {
        let op = if self.ty == BF16 {
            Op::MmaBf16
        } else {
            Op::MmaF16
        };
        k.emit(op, B32, &[sums.into()], &[a.into(), b.into(), sums.into()]);
    }
}

/// The addresses of this lane's elements of `x` in a tile: four consecutive ones of each 16 along
/// `k`.
struct Left {
    steps: Vec<Reg>,
}

impl Left {
    fn new(k: &mut Builder, block: &Block) -> Self {
        let row = k.fma(block.share, block.shares.rows, block.warp_row);
        let row = k.add(row, block.g);
        let (half, odd) = (k.shr(block.t, 1), k.and(block.t, 1));
        let row_at = k.fma(row, DEPTH * 2, block.stages);
        let row_at = k.fma(odd, 8, row_at);
        let step = |step| {
            let unit = k.offset(half, 2 * step);
            let unit = swizzled(k, row, unit);
            k.fma(unit, 16, row_at)
        };
        Left {
            steps: (0..DEPTH / 16).map(step).collect(),
        }
    }

    /// A fragment of 16 rows.
    fn load(&self, k: &mut Builder, tile: u32, step: u32, fragment: u32) -> Vec<Reg> {
        let from = self.steps[step as usize];
        let [above, below] = [0, 8].map(|further| {
            let at = tile * STAGE + (16 * fragment + further) * DEPTH * 2;
            k.ld_vector(Op::LdShared, B32, 2, from, at as i32)
        });
        vec![above[0], below[0], above[1], below[1]]
    }
}
