//! Products on Hopper's tensor cores: four warps together multiply from shared memory
//! (`wgmma`), which the tensor memory accelerator fills.
//!
//! One warp of a block asks for tiles and two times four warps multiply them, 64 × `cols` each.
//! A ring of stages lies between: a *full* barrier says that a stage's tiles have landed, an
//! *empty* one that both have multiplied them. As many blocks as there are multiprocessors take
//! tiles of `C` in turn. Tiles lie in shared memory with the 128-byte swizzle, `A` along `k`
//! and `B` along `n`, as they do in memory. Sources: PTX ISA 9.0, sections on `wgmma` and
//! `cp.async.bulk.tensor`; the division of labour is that of CUTLASS's cooperative kernels.

use super::{GemmKernel, Product};
use crate::ptx::build::Builder;
use crate::ptx::error::{Error, Result};
use crate::ptx::inst::{Op, Operand, Reg, Special};
use crate::ptx::kernel::{Extent, Launch, PtxKernel, TensorBox};
use crate::ptx::kernels::Kernel;
use crate::ptx::kernels::common::along_x;
use crate::ptx::kernels::hopper::{BOX_COLS, GROUP, Place, SWIZZLE, descriptor, wait};
use crate::ptx::types::PtxType::{self, BF16, F32, U32};
use crate::ptx::types::Target;

/// Rows of `C` to a block: 64 to each group of four warps that multiply.
const ROWS: u32 = 128;
/// How much of `k` a stage holds: 128 bytes, the width of the swizzle.
const DEPTH: u32 = 64;
/// Warps that multiply. One lane of each says that a stage is free: each warp knows only that
/// its own part of the products is done.
const WARPS: u32 = 8;
/// Bytes of a stage's part of `A`; that of `B` follows.
const A_BYTES: u32 = ROWS * DEPTH * 2;
/// Rows of tiles that blocks work through before they go on to the next column, so that those
/// under way share their part of `A` and `B` in the L2 cache.
const ROWS_TOGETHER: u32 = 16;

/// A stage of the ring, and how many there are.
#[derive(Clone, Copy)]
struct Ring {
    cols: u32,
    stages: u32,
}

impl Ring {
    fn stage_bytes(self) -> u32 {
        A_BYTES + self.cols * DEPTH * 2
    }

    /// The stages, then a full and an empty barrier for each.
    fn bytes(self) -> u32 {
        self.stages * (self.stage_bytes() + 16)
    }
}

/// How a product is shared out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Shape {
    /// Columns of a tile.
    pub(super) cols: u32,
    /// Whether `k` is divided, too: each part's sums are a matrix of their own.
    pub(super) split: bool,
}

pub(super) fn build(gemm: &GemmKernel, target: Target, shape: Shape) -> Result<PtxKernel> {
    let Shape { cols, split } = shape;
    if !matches!(cols, 128 | 256) {
        return Err(Error::Invalid {
            what: "cols",
            value: cols.to_string(),
            requirement: "128 or 256",
        });
    }
    let ring = Ring {
        cols,
        stages: if cols == 256 { 4 } else { 6 },
    };
    let launch = Launch::new(3 * GROUP, along_x(Extent::Multiprocessors(1))).overlapping(target);
    let mut k = Builder::new(gemm.name(), target, launch);
    let [ty, _] = gemm.types;
    let tensor = |rows, shape: [&'static str; 2]| TensorBox {
        ty,
        rows,
        cols: BOX_COLS,
        shape: shape.map(Extent::Param),
        planes: &[],
    };
    let a = k.tensor_map("a", tensor(ROWS, ["m", "k"]));
    let b = k.tensor_map("b", tensor(DEPTH, ["k", "n"]));
    let p = if split {
        Product::declare_sums(&mut k, a, b)
    } else {
        Product::declare_with(&mut k, gemm, a, b)
    };
    let splits = split.then(|| k.scalar("splits", U32));
    let block = Block::new(&mut k, &p, ring, ty, splits);
    block.start(&mut k);
    k.wait_for_grid();
    let group = k.shr(block.thread, 7);
    let produces = k.eq(group, 0);
    k.when_else(
        produces,
        |k| {
            k.act(Op::SetMaxRegDec, &[40.into()]);
            block.produce(k, &p);
        },
        |k| {
            k.act(Op::SetMaxRegInc, &[232.into()]);
            let group = k.sub(group, 1);
            block.consume(k, &p, group);
        },
    );
    k.finish()
}

struct Block {
    ring: Ring,
    ty: PtxType,
    thread: Reg,
    stages: Reg,
    full: Reg,
    empty: Reg,
    /// Tiles of `C` down, across and in all, and stages' worth of `k`.
    down: Reg,
    across: Reg,
    tiles: Reg,
    steps: Reg,
    parts: Option<Parts>,
}

/// How many parts `k` is divided into, and stages' worth of each; the last may be shorter.
struct Parts {
    count: Reg,
    steps: Reg,
}

/// A tile, or a part of `k` of one.
struct Work {
    row: Reg,
    col: Reg,
    /// Its steps, and the first value of `k`.
    steps: Reg,
    depth: Reg,
    /// Rows of `C` before those of this part.
    rows_before: Option<Reg>,
}

impl Block {
    fn new(k: &mut Builder, p: &Product, ring: Ring, ty: PtxType, splits: Option<Reg>) -> Self {
        let tiles_of = |k: &mut Builder, size, tile: u32| {
            let up = k.add(size, tile - 1);
            k.div(up, tile)
        };
        let stages = k.dynamic_shared("stages", ring.bytes());
        let full = k.add(stages, ring.stages * ring.stage_bytes());
        let (down, across) = (tiles_of(k, p.m, ROWS), tiles_of(k, p.n, ring.cols));
        let steps = tiles_of(k, p.k, DEPTH);
        let parts = splits.map(|count| {
            let up = k.add(steps, count);
            let up = k.sub(up, 1);
            let steps = k.div(up, count);
            Parts { count, steps }
        });
        Block {
            ring,
            ty,
            thread: k.special(Special::TidX),
            stages,
            full,
            empty: k.add(full, ring.stages * 8),
            down,
            across,
            tiles: k.mul(down, across),
            steps,
            parts,
        }
    }

    /// One thread initialises the barriers; nobody goes on before they are.
    fn start(&self, k: &mut Builder) {
        let first = k.eq(self.thread, 0);
        k.when(first, |k| {
            for stage in 0..self.ring.stages {
                let at = |base| Operand::At(base, (stage * 8) as i32);
                k.act(Op::MbarrierInit, &[at(self.full), 1.into()]);
                k.act(Op::MbarrierInit, &[at(self.empty), WARPS.into()]);
            }
            k.act(Op::FenceMbarrierInit, &[]);
        });
        k.barrier();
    }

    /// Runs `body` with each of this block's tiles, or parts of them.
    fn each(&self, k: &mut Builder, p: &Product, body: impl FnOnce(&mut Builder, Work)) {
        let (block, blocks) = (k.special(Special::CtaidX), k.special(Special::NctaidX));
        let count = match &self.parts {
            None => self.tiles,
            Some(parts) => k.mul(self.tiles, parts.count),
        };
        k.for_range(block, count, blocks, |k, index| {
            let work = match &self.parts {
                None => {
                    let (row, col) = self.tile(k, index);
                    let depth = k.value(U32, 0);
                    let (steps, rows_before) = (self.steps, None);
                    Work {
                        row,
                        col,
                        steps,
                        depth,
                        rows_before,
                    }
                }
                Some(parts) => {
                    let (tile, part) = (k.div(index, parts.count), k.rem(index, parts.count));
                    let (row, col) = self.tile(k, tile);
                    let first = k.mul(part, parts.steps);
                    let first = k.min(first, self.steps);
                    let left = k.sub(self.steps, first);
                    Work {
                        row,
                        col,
                        steps: k.min(left, parts.steps),
                        depth: k.mul(first, DEPTH),
                        rows_before: Some(k.mul(part, p.m)),
                    }
                }
            };
            body(k, work);
        });
    }

    /// The first row and column of a tile.
    fn tile(&self, k: &mut Builder, tile: Reg) -> (Reg, Reg) {
        // Bands of rows; in a band column by column.
        let per_band = k.mul(self.across, ROWS_TOGETHER);
        let band = k.div(tile, per_band);
        let in_band = k.rem(tile, per_band);
        let first = k.mul(band, ROWS_TOGETHER);
        let left = k.sub(self.down, first);
        let height = k.min(left, ROWS_TOGETHER);
        let col = k.div(in_band, height);
        let row = k.rem(in_band, height);
        let row = k.add(row, first);
        (k.mul(row, ROWS), k.mul(col, self.ring.cols))
    }

    /// One thread asks for the tiles of every step, as stages become empty.
    fn produce(&self, k: &mut Builder, p: &Product) {
        let first = k.eq(self.thread, 0);
        k.when(first, |k| {
            let place = Place::first(k);
            self.each(k, p, |k, work| {
                let depth = k.value(U32, work.depth);
                k.for_range(0, work.steps, 1, |k, _| {
                    // The first round finds empty barriers in the phase before the first.
                    let parity = k.xor(place.parity, 1);
                    wait(k, self.empty, &place, parity);
                    self.fill(k, p, &place, [work.row, work.col, depth]);
                    k.add_assign(depth, DEPTH);
                    place.advance(k, self.ring.stages);
                });
            });
        });
    }

    fn fill(&self, k: &mut Builder, p: &Product, place: &Place, [row, col, depth]: [Reg; 3]) {
        let full = Operand::At(k.fma(place.stage, 8, self.full), 0);
        let bytes = self.ring.stage_bytes();
        k.act(Op::MbarrierExpect, &[full, bytes.into()]);
        let to = k.fma(place.stage, bytes, self.stages);
        let load = |k: &mut Builder, map, at: [Reg; 2], offset: u32| {
            let from = Operand::Box(map, &at);
            let to = Operand::At(to, offset as i32);
            k.act(Op::TmaLoad, &[to, from, full]);
        };
        load(k, p.a, [depth, row], 0);
        for part in 0..self.ring.cols / BOX_COLS {
            let col = k.offset(col, part * BOX_COLS);
            let offset = A_BYTES + part * BOX_COLS * DEPTH * 2;
            load(k, p.b, [col, depth], offset);
        }
    }

    /// Multiplies the tiles of every step, one stage behind in giving them back.
    fn consume(&self, k: &mut Builder, p: &Product, group: Reg) {
        let place = Place::first(k);
        let lane = k.and(self.thread, 31);
        let speaks = k.eq(lane, 0);
        // The first products overwrite these; without any they are the result.
        let sums = k.filled(F32, self.ring.cols as usize / 2, 0.0f32);
        self.each(k, p, |k, work| {
            if self.parts.is_some() {
                // A part without steps has the sums of the tile before.
                for &sum in &sums {
                    k.assign(sum, 0.0f32);
                }
            }
            let before = k.value(U32, 0);
            k.for_range(0, work.steps, 1, |k, step| {
                wait(k, self.full, &place, place.parity);
                self.multiply(k, &place, group, &sums, step);
                // The products before these are done when only these are under way.
                k.act(Op::WgmmaWait, &[1.into()]);
                let later = k.gt(step, 0);
                let frees = k.and(later, speaks);
                self.free(k, before, frees);
                k.assign(before, place.stage);
                place.advance(k, self.ring.stages);
            });
            k.act(Op::WgmmaWait, &[0.into()]);
            let some = k.gt(work.steps, 0);
            let frees = k.and(some, speaks);
            self.free(k, before, frees);
            self.store(k, p, group, &sums, &work);
        });
    }

    fn free(&self, k: &mut Builder, stage: Reg, cond: Reg) {
        let empty = k.fma(stage, 8, self.empty);
        k.guarded(cond, true, |k| {
            k.act(Op::MbarrierArrive, &[Operand::At(empty, 0)]);
        });
    }

    /// Starts the products of one stage.
    fn multiply(&self, k: &mut Builder, place: &Place, group: Reg, sums: &[Reg], step: Reg) {
        let stage = k.fma(place.stage, self.ring.stage_bytes(), self.stages);
        let a = k.fma(group, 64 * DEPTH * 2, stage);
        let b = k.add(stage, A_BYTES);
        // Rows of A follow each other in groups of eight; so do those of B along k, and boxes
        // of B's columns are a box apart.
        let a = descriptor(k, a, 16, SWIZZLE);
        let b = descriptor(k, b, BOX_COLS * DEPTH * 2, SWIZZLE);
        let (later, always) = (k.gt(step, 0), k.ge(step, 0));
        let op = if self.ty == BF16 {
            Op::WgmmaBf16
        } else {
            Op::WgmmaF16
        };
        k.act(Op::WgmmaFence, &[]);
        for part in 0..DEPTH / 16 {
            // 16 values of k are 32 bytes of A's rows and 16 rows of B; addresses are in 16 bytes.
            let a = k.add(a, i64::from(part * 2));
            let b = k.add(b, i64::from(part * 16 * 128 / 16));
            let adds = if part == 0 { later } else { always };
            let scale = [1, 1, 0, 1].map(Operand::from);
            let from = [[a.into(), b.into(), adds.into()].as_slice(), &scale].concat();
            k.emit(op, PtxType::B32, &[sums.into()], &from);
        }
        k.act(Op::WgmmaCommit, &[]);
    }

    /// Lane `4g + t` of warp `w` holds columns `8j + 2t` and the next of rows `16w + g` and
    /// `16w + g + 8`.
    fn store(&self, k: &mut Builder, p: &Product, group: Reg, sums: &[Reg], work: &Work) {
        let lane = k.and(self.thread, 31);
        let warp = k.shr(self.thread, 5);
        let warp = k.and(warp, 3);
        let in_group = k.shr(lane, 2);
        let in_warp = k.fma(warp, 16, in_group);
        let row = k.fma(group, 64, work.row);
        let row = k.add(row, in_warp);
        let pair = k.and(lane, 3);
        let col = k.fma(pair, 2, work.col);
        for half in 0..2 {
            let row = k.offset(row, 8 * half as u32);
            let in_rows = k.lt(row, p.m);
            k.when(in_rows, |k| {
                let of_all = work.rows_before.map_or(row, |before| k.add(row, before));
                let c = k.at_2d(p.c, of_all, p.n, col, p.c_bytes);
                for (j, sums) in sums.chunks_exact(4).enumerate() {
                    let col = k.offset(col, 8 * j as u32);
                    // n is a multiple of 8, so both columns are within or neither.
                    let in_cols = k.lt(col, p.n);
                    k.when(in_cols, |k| {
                        let offset = (8 * j as u32 * p.c_bytes) as i32;
                        p.finish
                            .store(k, &sums[2 * half..2 * half + 2], c, offset, col);
                    });
                }
            });
        }
    }
}
