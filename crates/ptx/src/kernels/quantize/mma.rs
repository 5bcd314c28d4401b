//! A matrix of quantised weights times a vector on tensor cores (`mma.sync` of signed bytes, since
//! Ampere), limited by how quickly weights can be read.
//!
//! A block stays for one *tile* of 16 rows after another; its warps take 256 of `k` at a time, a
//! *span*, in turn. Blocks of weights come as they are, 16 bytes a copy, through a ring of the warp's own
//! in shared memory, which asks for the next tile before this one ends, and become signed bytes there.
//! `x` does, too, as it is read: two digits of base 256 of each value, in units of 2⁻¹⁴ to 2⁻¹⁵ of
//! the largest among 32, which are kept for the tiles to come. Sums are exact.
//!
//! A span has eight *runs* of 32 weights, and one instruction multiplies a run of 16 rows. Column `n` of the right
//! factor is always the part of `x` that run `n` is multiplied with, which is why 32 lanes hold all 256 values of it.
//! Of the products of run `j` only column `j` is used. Lane `4g + t` keeps those of runs `2t` and `2t + 1` for rows `g`
//! and `g + 8` ([`Window::row`] says which rows of the tile they are), and adds `scale · product − minimum · X`, where
//! `X` is the sum of `x`.

use super::digit_cache::DigitCache;
use super::digits::{Digits, Input};
use super::ring::Ring;
use super::spans::{RUN, SPAN, Unpacking, Words};
use super::window::{Row, Window};
use super::{QuantFormat, QuantizeKernel};
use crate::build::Builder;
use crate::error::Result;
use crate::inst::{Op, Reg, Special};
use crate::kernel::{Extent, Launch, PtxKernel};
use crate::kernels::Kernel;
use crate::kernels::common::{Combine, WARP, along_x, over_lanes};
use crate::types::PtxType::{B32, F32, S32, U8, U32};
use crate::types::Target;

/// The number of rows of a tile.
pub(super) const ROWS: u32 = 16;
/// The number of warps among which a block divides its spans. The spans of eight warps are whole units of 16 bytes in
/// every format.
pub(super) const WARPS: u32 = 8;
/// The number of blocks per multiprocessor.
const BLOCKS: u32 = 2;

pub(super) fn build(kernel: QuantizeKernel, target: Target) -> Result<PtxKernel> {
    // For these, and this format, the assembler would keep registers in memory.
    let spills = kernel.format == QuantFormat::Q6K && target.capability() >= 100;
    let blocks = if spills { 1 } else { BLOCKS };
    let grid = along_x(Extent::Multiprocessors(blocks));
    let mut launch = Launch::new(WARPS * WARP, grid).overlapping(target);
    launch.min_blocks = blocks;
    let mut k = Builder::new(kernel.name(), target, launch);
    let (w, x, y) = (k.pointer("w", U8), k.pointer("x", F32), k.pointer("y", F32));
    let (rows, cols) = (k.scalar("rows", U32), k.scalar("cols", U32));
    let warp = Warp::new(&mut k, kernel.format, [rows, cols]);
    let ring = Ring::new(&mut k, &warp, w);
    let unpacking = Unpacking::new(&mut k, kernel.format, warp.t);
    ring.fill(&mut k, &warp);
    ring.clear(&mut k, &warp);
    // Weights do not depend on what ran before, but `x` and `y` may.
    k.wait_for_grid();
    let input = Input::new(&mut k, &warp, x);
    let kept = DigitCache::new(&mut k, &warp);
    let sums = k.filled(F32, 2, 0.0f32);
    let partial = Partial::new(&mut k, &warp);
    let tiles = Tiles {
        warp,
        ring,
        unpacking,
        input,
        sums,
    };
    let warp = &tiles.warp;
    k.for_range(warp.block, warp.tiles, warp.blocks, |k, tile| {
        for &sum in &tiles.sums {
            k.assign(sum, 0.0f32);
        }
        match &kept {
            None => tiles.make(k, None),
            Some(kept) => {
                let here = kept.begin(k, warp, tile);
                k.when_else(here, |k| tiles.take(k, kept), |k| tiles.make(k, Some(kept)));
            }
        }
        partial.finish(k, warp, tile, &tiles.sums, y);
    });
    k.act(Op::CpAsyncWait, &[0.into()]);
    k.finish()
}

/// The state of a warp's multiplication.
struct Tiles {
    warp: Warp,
    ring: Ring,
    unpacking: Unpacking,
    input: Input,
    /// The accumulators of this lane's two rows.
    sums: Vec<Reg>,
}

impl Tiles {
    /// A tile for which `x` is made into digits, to be kept where there is room.
    fn make(&self, k: &mut Builder, kept: Option<&DigitCache>) {
        let Tiles {
            warp, ring, input, ..
        } = self;
        input.begin(k, warp);
        k.for_range(warp.number, warp.spans, WARPS, |k, span| {
            // `x` before the next weights are asked for, behind which it would come.
            input.advance(k, warp);
            ring.advance(k, warp);
            let made = input.make(k);
            let x = made.share(k, warp);
            self.add(k, span, &x);
            if let Some(kept) = kept {
                // Once all weights have been read: a load does not overtake a store.
                kept.put(k, warp, &made);
            }
        });
    }

    /// A tile by the digits that were kept.
    fn take(&self, k: &mut Builder, kept: &DigitCache) {
        let Tiles { warp, ring, .. } = self;
        k.for_range(warp.number, warp.spans, WARPS, |k, span| {
            ring.advance(k, warp);
            let x = kept.get(k, warp);
            self.add(k, span, &x);
        });
    }

    /// Adds a span's products.
    fn add(&self, k: &mut Builder, span: Reg, x: &Digits) {
        let Tiles { warp, sums, .. } = self;
        let rows = self.ring.rows(k);
        let products = warp.products(k, &rows, x);
        let exist = warp.exist(k, span);
        for (row, &sum) in sums.iter().enumerate() {
            let scales = warp.format.scales(k, &rows[row], &self.unpacking, exist);
            for (odd, scales) in scales.iter().enumerate() {
                for (part, scale) in scales.iter().enumerate() {
                    x.add(k, sum, scale, products[part][odd][row], odd);
                }
            }
        }
    }
}

/// This thread's place.
pub(super) struct Warp {
    pub(super) format: QuantFormat,
    thread: Reg,
    pub(super) number: Reg,
    pub(super) lane: Reg,
    /// The warp's own shared memory, and where this lane's share of it is, of 16 bytes each.
    pub(super) own: Reg,
    pub(super) own_lane: Reg,
    /// The parts of the lane's index, `4g + t`.
    pub(super) g: Reg,
    pub(super) t: Reg,
    /// The first of the two rows of a tile that this lane multiplies; the second is eight rows further.
    pub(super) row: Reg,
    /// Whether `t` is 0, whether it is 1, and so on up to 3.
    pub(super) is: [Reg; 4],
    /// The block's first tile, the number of tiles, and the number of blocks among which they are divided.
    pub(super) block: Reg,
    pub(super) tiles: Reg,
    pub(super) blocks: Reg,
    pub(super) rows: Reg,
    pub(super) cols: Reg,
    pub(super) spans: Reg,
}

impl Warp {
    fn new(k: &mut Builder, format: QuantFormat, [rows, cols]: [Reg; 2]) -> Self {
        let (thread, block) = (k.special(Special::TidX), k.special(Special::CtaidX));
        let lane = k.and(thread, WARP - 1);
        let t = k.and(lane, 3);
        let g = k.shr(lane, 2);
        let window = Window::of(format);
        let bytes = Ring::bytes(window) + DigitCache::bytes(window).unwrap_or(0);
        let number = k.shr(thread, 5);
        let own = k.dynamic_shared("spans", WARPS * bytes);
        let own = k.fma(number, bytes, own);
        let up = k.add(cols, SPAN - 1);
        let more_rows = k.add(rows, ROWS - 1);
        Warp {
            format,
            thread,
            number,
            lane,
            own,
            own_lane: k.fma(lane, 16, own),
            g,
            row: window.row(k, g),
            t,
            is: [0, 1, 2, 3].map(|i| k.eq(t, i)),
            block,
            tiles: k.shr(more_rows, ROWS.trailing_zeros()),
            blocks: k.special(Special::NctaidX),
            rows,
            cols,
            spans: k.shr(up, SPAN.trailing_zeros()),
        }
    }

    /// Whether runs `2t` and `2t + 1` of a span lie in the row.
    fn exist(&self, k: &mut Builder, span: Reg) -> [Reg; 2] {
        let first = k.mul(span, SPAN / RUN);
        let first = k.fma(self.t, 2, first);
        let runs = k.shr(self.cols, RUN.trailing_zeros());
        let second = k.add(first, 1);
        [k.lt(first, runs), k.lt(second, runs)]
    }

    /// The products that this lane uses, by part of a run, odd or even run, and row.
    fn products(&self, k: &mut Builder, rows: &[Row; 2], x: &Digits) -> Vec<[[Reg; 2]; 2]> {
        let parts = self.format.parts();
        let kept: Vec<[[Reg; 2]; 2]> = (0..parts)
            .map(|_| [0, 1].map(|_| [k.reg(S32), k.reg(S32)]))
            .collect();
        let mut words = [Words::default(), Words::default()];
        for run in self.format.order() {
            let halves = [0, 1].map(|half| {
                [0, 1].map(|i| words[i].weights(k, &rows[i], self.format, [run, half], true))
            });
            let odd = run as usize % 2;
            for (part, kept) in kept.iter().enumerate() {
                // A run of two scales is multiplied half by half.
                let half = part..if parts == 2 { part + 1 } else { 2 };
                let a = halves[half.clone()].concat();
                let [high, low] = [x.high, x.low].map(|b| mma(k, &a, &b[half.clone()]));
                for (row, &kept) in kept[odd].iter().enumerate() {
                    let [high, low] = [high[odd + 2 * row], low[odd + 2 * row]];
                    let from = [high.into(), 256.into(), low.into()];
                    let keep = |k: &mut Builder| k.emit(Op::MadLo, S32, &[kept.into()], &from);
                    // The first writes them in every lane.
                    if run < 2 {
                        keep(k);
                    } else {
                        k.guarded(self.is[run as usize / 2], true, keep);
                    }
                }
            }
        }
        kept
    }
}

/// The partial results of warps for a tile's rows, double-buffered: while one tile is added up, the
/// next one can be stored.
struct Partial {
    /// The address of this lane's partial result.
    to: Reg,
    from: Reg,
    /// Whether this thread adds up a row.
    mine: Reg,
}

impl Partial {
    const BYTES: u32 = ROWS * WARPS * 4;

    fn new(k: &mut Builder, warp: &Warp) -> Self {
        let partial = k.shared("partial", F32, 2 * ROWS * WARPS);
        let place = k.fma(warp.row, WARPS, warp.number);
        let (to, from) = (
            k.fma(place, 4, partial),
            k.fma(warp.thread, WARPS * 4, partial),
        );
        Partial {
            to,
            from,
            mine: k.lt(warp.thread, ROWS),
        }
    }

    /// Adds up the lanes of each row, then warps; thread `i` stores row `i`.
    fn finish(&self, k: &mut Builder, warp: &Warp, tile: Reg, sums: &[Reg], y: Reg) {
        for (half, &sum) in sums.iter().enumerate() {
            let sum = over_lanes(k, Combine::Sum, sum, 4);
            let offset = (half as u32 * 8 * WARPS * 4) as i32;
            k.guarded(warp.is[0], true, |k| k.st_shared(F32, self.to, offset, sum));
        }
        k.barrier();
        let row = k.fma(tile, ROWS, warp.thread);
        let exists = k.lt(row, warp.rows);
        let stores = k.and(self.mine, exists);
        k.when(stores, |k| {
            let sum = k.value(F32, 0.0f32);
            for part in 0..WARPS / 4 {
                for value in k.ld_vector(Op::LdShared, F32, 4, self.from, 16 * part as i32) {
                    k.add_assign(sum, value);
                }
            }
            let y = k.at(y, row, 4);
            k.st_global(F32, y, 0, sum);
        });
        for place in [self.to, self.from] {
            let other = k.xor(place, Self::BYTES);
            k.assign(place, other);
        }
    }
}

/// Returns the exact products of 16 rows of 32 bytes, or of 16 bytes, with eight columns.
fn mma(k: &mut Builder, a: &[Reg], b: &[Reg]) -> Vec<Reg> {
    let zeros = k.filled(S32, 4, 0);
    let to = k.regs(S32, 4);
    let from = [a.into(), b.into(), zeros.as_slice().into()];
    let op = if b.len() == 2 {
        Op::MmaS8
    } else {
        Op::MmaS8Half
    };
    k.emit(op, B32, &[to.as_slice().into()], &from);
    to
}
