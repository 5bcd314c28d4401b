//! Products with a matrix of quantised weights on the tensor cores of any GPU since Ampere.
//!
//! Weights become f16 or bf16 in the registers of the lane that multiplies them, on the way from
//! memory. A lane has four that follow each other, where an instruction's layout has two pairs
//! eight apart; sums do not depend on the order, so activations are read in the same one, from
//! tiles in shared memory, 64 of `k` deep, that come through a ring of four. A span of 256 weights
//! is four of these, which are written out.
//!
//! Eight warps share a tile of rows of `x` and of weights; for few rows they share `k` as well, a span
//! to each, and add up their sums at the end.

use super::direct::Span;
use super::spans::{RUN, SPAN, Scale, Unpacking, Words};
use super::{QuantFormat, QuantizeKernel};
use crate::ptx::build::{ALL_LANES, Builder};
use crate::ptx::error::Result;
use crate::ptx::inst::{Op, Operand, Reg, Special};
use crate::ptx::kernel::{Extent, Launch, PtxKernel};
use crate::ptx::kernels::common::WARP;
use crate::ptx::kernels::gemm::narrow;
use crate::ptx::kernels::{Kernel, values};
use crate::ptx::types::PtxType::{self, B32, BF16, F32, U8, U32};
use crate::ptx::types::Target;

const WARPS: u32 = 8;
const THREADS: u32 = WARPS * WARP;
/// Rows of weights to a warp: four fragments of eight.
const COLS: u32 = 32;
const FRAGMENTS: u32 = COLS / 8;
/// How much of `k` a tile holds, in values and in units of 16 bytes; and tiles of a span.
const DEPTH: u32 = 64;
const UNITS: u32 = DEPTH / 8;
const TILES: u32 = SPAN / DEPTH;
/// Rows and bytes of the tiles of a stage: of a group of warps that share `k` one after the other.
const STAGE_ROWS: u32 = 128;
const STAGE: u32 = STAGE_ROWS * DEPTH * 2;

/// Blocks that leave few multiprocessors idle.
const ENOUGH: u32 = 128;
/// Rows that the block copies at once.
const PASS: u32 = THREADS / UNITS;

/// How eight warps share a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Shares {
    /// Rows of `x` in a tile.
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
        let wide = m.div_ceil(Self::WIDE.rows) * n.div_ceil(Self::WIDE.cols());
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
    /// Of lane `4g + t`.
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
    /// Bytes by which this lane's words are beyond the first.
    beyond: Reg,
}

/// One thread's part in copying tiles of `x`: its units of a stage.
struct Copies {
    /// Rows of `x` that are [`PASS`] apart.
    from: Vec<Reg>,
    /// The index in `k` of the first.
    col: Reg,
    to: Reg,
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

    fn copies(&self, k: &mut Builder, x: Reg) -> Copies {
        let (row, unit) = (k.shr(self.thread, 3), k.and(self.thread, UNITS - 1));
        let last = k.sub(self.m, 1);
        let (share, in_tile) = (k.div(row, self.shares.rows), k.rem(row, self.shares.rows));
        let col = k.mul(unit, 8);
        let col = k.fma(share, SPAN, col);
        let place = swizzled(k, row, unit);
        let place = k.fma(row, UNITS, place);
        let from = (0..self.shares.rows.div_ceil(PASS)).map(|pass| {
            // Rows beyond the last repeat it; their sums are not stored.
            let row = k.offset(in_tile, pass * PASS);
            let row = k.add(self.first_row, row);
            let row = k.min(row, last);
            k.at_2d(x, row, self.depth, col, 2)
        });
        Copies {
            from: from.collect(),
            col,
            to: k.fma(place, 16, self.stages),
        }
    }

    /// Asks for tile `tile` from the spans at `base` on, zeros beyond `k`.
    fn ask(&self, k: &mut Builder, copies: &Copies, base: Reg, tile: u32) {
        let spans = tile / TILES * self.shares.warps[2];
        let first = k.add(copies.col, base);
        for pass in 0..STAGE_ROWS / PASS {
            // Further rows of a stage are of other rows of `x`, or of further spans of the same.
            let (row, share) = (
                pass % copies.from.len() as u32,
                pass * PASS / self.shares.rows,
            );
            let further = (spans + share) * SPAN + tile % TILES * DEPTH;
            let col = k.offset(first, further);
            let inside = k.lt(col, self.depth);
            let none = k.value(U32, 0);
            let bytes = k.select(inside, 16, none);
            let from = k.at(copies.from[row as usize], base, 2);
            let to = tile % TILES * STAGE + pass * PASS * DEPTH * 2;
            let operands = [
                Operand::At(copies.to, to as i32),
                Operand::At(from, (2 * further) as i32),
                16.into(),
                bytes.into(),
            ];
            k.act(Op::CpAsync16, &operands);
        }
        k.act(Op::CpAsyncCommit, &[]);
    }

    /// Where this lane's first words of each of its rows of weights are, in the warp's share of `k`.
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
        let unpacking = Unpacking::new(k, self.t);
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
            let mut spans: Vec<Weights> = rows
                .iter()
                .zip(&heads)
                .map(|(&row, head)| Weights {
                    span: Span::new(self.format, [row, self.beyond], &exist),
                    format: self.format,
                    words: head.words.clone(),
                    scales: head.scales.clone(),
                    of_run: Vec::new(),
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
                }
                let mut next = None;
                if tile + 1 == TILES {
                    for &row in &rows {
                        k.add_assign(row, i64::from(self.span_bytes() * all));
                    }
                    let base = k.add(base, SPAN * all);
                    next = Some(self.heads(k, &rows, &unpacking, base));
                }
                for step in 0..DEPTH / 16 {
                    let mut right = Vec::new();
                    for span in &mut spans {
                        right.push(span.fragment(k, self, tile, step));
                    }
                    for (i, sums) in (0..).zip(&sums) {
                        let a = left.load(k, tile, step, i);
                        for (b, sums) in right.iter().zip(sums) {
                            self.mma(k, sums, &a, b);
                        }
                    }
                }
                for (head, next) in heads.iter().zip(next.iter().flatten()) {
                    head.assign(k, next);
                }
            }
        });
        k.act(Op::CpAsyncWait, &[0.into()]);
        sums
    }

    /// Which runs of the warp's span exist, where the first one's begins at `base`.
    fn exist(&self, k: &mut Builder, base: Reg) -> Vec<Reg> {
        let first = k.fma(self.share, SPAN, base);
        Span::runs(k, self.format, first, self.depth)
    }

    /// What of each row's span is needed first.
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
            let mut words = Words::default();
            for step in 0..DEPTH / 16 {
                words.load(k, &span, self.format, place(0, step));
            }
            let scales = self.format.scales(k, &span, unpacking, own);
            Head { words, scales }
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

    /// Lane `4g + t` holds columns `2t` and the next of rows `g` and `g + 8` of each fragment.
    fn store(&self, k: &mut Builder, sums: &[Vec<Vec<Reg>>], y: Reg) {
        let row = k.add(self.first_row, self.warp_row);
        let row = k.add(row, self.g);
        let col = k.add(self.first_col, self.warp_col);
        let col = k.fma(self.t, 2, col);
        for (i, sums) in (0..).zip(sums) {
            for half in 0..2u32 {
                let row = k.offset(row, 16 * i + 8 * half);
                let in_rows = k.lt(row, self.m);
                k.when(in_rows, |k| {
                    let to = k.at_2d(y, row, self.n, col, 2);
                    for (j, sums) in (0..).zip(sums) {
                        self.store_pair(k, &sums[2 * half as usize..][..2], to, 8 * j, col);
                    }
                });
            }
        }
    }

    /// Two values, together where rows begin at whole words.
    fn store_pair(&self, k: &mut Builder, sums: &[Reg], to: Reg, further: u32, col: Reg) {
        let col = k.offset(col, further);
        let next = k.add(col, 1);
        let both = k.lt(next, self.n);
        let odd = k.and(self.n, 1);
        let even = k.eq(odd, 0);
        let together = k.and(both, even);
        let values: Vec<Reg> = sums.iter().map(|&sum| narrow(k, self.ty, sum)).collect();
        let at = (2 * further) as i32;
        k.when_else(
            together,
            |k| k.st_global(self.ty, to, at, values.as_slice()),
            |k| {
                for (i, (&value, col)) in values.iter().zip([col, next]).enumerate() {
                    let inside = k.lt(col, self.n);
                    let at = at + 2 * i as i32;
                    k.guarded(inside, true, |k| k.st_global(self.ty, to, at, value));
                }
            },
        );
    }

    /// Adds up the sums of warps that shared `k`, through shared memory.
    fn store_shared(&self, k: &mut Builder, sums: &[Vec<Vec<Reg>>], y: Reg) {
        let (rows, cols) = (self.shares.rows, self.shares.cols());
        k.barrier();
        let row = k.fma(self.share, rows, self.g);
        let col = k.fma(self.t, 2, self.warp_col);
        let to = k.fma(row, cols, col);
        let to = k.fma(to, 4, self.stages);
        for (i, sums) in (0..).zip(sums) {
            for (j, sums) in (0..).zip(sums) {
                for half in 0..2 {
                    let at = 4 * ((16 * i + 8 * half) * cols + 8 * j);
                    let pair = &sums[2 * half as usize..][..2];
                    k.st_shared(F32, to, at as i32, pair);
                }
            }
        }
        k.barrier();
        let from = k.fma(self.thread, 4, self.stages);
        for pass in 0..rows * cols / THREADS {
            let index = k.offset(self.thread, pass * THREADS);
            let (row, col) = (k.div(index, cols), k.rem(index, cols));
            let (row, col) = (k.add(self.first_row, row), k.add(self.first_col, col));
            let (in_rows, in_cols) = (k.lt(row, self.m), k.lt(col, self.n));
            let total = k.value(F32, 0.0f32);
            for share in 0..self.shares.warps[2] {
                let at = 4 * (share * rows * cols + pass * THREADS);
                let part = k.ld_shared(F32, from, at as i32);
                k.add_assign(total, part);
            }
            let value = narrow(k, self.ty, total);
            let inside = k.and(in_rows, in_cols);
            k.when(inside, |k| {
                let to = k.at_2d(y, row, self.n, col, 2);
                k.st_global(self.ty, to, 0, value);
            });
        }
    }
}

/// Where this lane's values of `x` lie in a tile: four that follow each other, of each 16 of `k`.
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

/// What of a row's span is loaded while the one before is multiplied: the first tile's words, and
/// the scales of runs `2t` and `2t + 1`.
struct Head {
    words: Words,
    scales: [Vec<Scale>; 2],
}

impl Head {
    fn assign(&self, k: &mut Builder, next: &Head) {
        self.words.assign(k, &next.words);
        for (scale, next) in self
            .scales
            .iter()
            .flatten()
            .zip(next.scales.iter().flatten())
        {
            k.assign(scale.scale, next.scale);
            if let (Some(minimum), Some(next)) = (scale.minimum, next.minimum) {
                k.assign(minimum, next);
            }
        }
    }
}

/// This lane's part of a row's span.
struct Weights {
    span: Span,
    format: QuantFormat,
    words: Words,
    /// Of runs `2t` and `2t + 1`.
    scales: [Vec<Scale>; 2],
    /// Of the run at work, by part.
    of_run: Vec<Scale>,
}

/// The run, and which half of it, that step `step` of tile `tile` multiplies.
fn place(tile: u32, step: u32) -> [u32; 2] {
    [tile * (DEPTH / RUN) + step / 2, step % 2]
}

impl Weights {
    /// Loads what a tile needs.
    fn load(&mut self, k: &mut Builder, tile: u32) {
        for step in 0..DEPTH / 16 {
            self.words
                .load(k, &self.span, self.format, place(tile, step));
        }
    }

    /// Sixteen of `k` as a right fragment, rounded to the type of `x`.
    fn fragment(&mut self, k: &mut Builder, block: &Block, tile: u32, step: u32) -> Vec<Reg> {
        let [run, half] = place(tile, step);
        if half == 0 {
            self.of_run = self.shared(k, block.lane, run);
        }
        let bytes = self.words.weights(k, &self.span, self.format, [run, half]);
        let (bytes, offset) = match self.format {
            QuantFormat::Q4K | QuantFormat::Q5K => (bytes, 0.0),
            _ => (k.xor(bytes, 0x8080_8080u32), 128.0),
        };
        let scale = &self.of_run[half as usize % self.of_run.len()];
        let number = |i: u32| {
            // 2²³ + a byte has the byte as its lowest bits.
            let upper = k.value(B32, 0x4b00_0000);
            let select = [bytes.into(), upper.into(), (0x7440 | i).into()];
            let number = k.op(Op::Prmt, B32, F32, &select);
            let number = k.sub(number, 8_388_608.0 + offset);
            match scale.minimum {
                Some(minimum) => k.fma(number, scale.scale, minimum),
                None => k.mul(number, scale.scale),
            }
        };
        let numbers: Vec<Reg> = (0..4).map(number).collect();
        let (op, ty) = if block.ty == BF16 {
            (Op::CvtBf16x2F32, PtxType::BF16x2)
        } else {
            (Op::CvtF16x2F32, PtxType::F16x2)
        };
        let pair = |pair: &[Reg]| k.convert(op, ty, &[pair[1].into(), pair[0].into()]);
        numbers.chunks_exact(2).map(pair).collect()
    }

    /// A run's scales, and its minimum negated, from the lane that has them.
    fn shared(&self, k: &mut Builder, lane: Reg, run: u32) -> Vec<Scale> {
        let first = k.and(lane, WARP - 4);
        let from = k.offset(first, run / 2);
        let mut of = |value: Reg| {
            let operands = [value.into(), from.into(), 31.into(), ALL_LANES.into()];
            k.op(Op::ShflIdx, B32, F32, &operands)
        };
        let mut scales = Vec::new();
        for scale in &self.scales[run as usize % 2] {
            let minimum = scale.minimum.map(&mut of);
            scales.push((of(scale.scale), minimum));
        }
        let negated = |(scale, minimum): (Reg, Option<Reg>)| Scale {
            scale,
            minimum: minimum.map(|minimum| k.neg(minimum)),
        };
        scales.into_iter().map(negated).collect()
    }
}
