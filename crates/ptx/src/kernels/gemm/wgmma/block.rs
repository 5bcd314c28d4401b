//! Persistent blocks with one warp that asks for tiles and eight that multiply them.
//!
//! A ring of stages is between them: a *full* barrier reports that a stage's tiles have arrived, and an *empty* barrier
//! that all warps have multiplied them. As many blocks as there are multiprocessors take tiles of `C` in turn. Tiles
//! lie in shared memory with the 128-byte swizzle, `A` along `k` and `B` along `n`, as they do in memory.

use super::super::Product;
use crate::build::Builder;
use crate::inst::{Op, Operand, Reg, Special};
use crate::kernel::{Extent, TensorBox};
use crate::kernels::hopper::{Place, wait};
use crate::types::PtxType::{self, U32};

/// The number of warps that multiply. One lane of each warp releases a stage, because a warp knows only that its own
/// part of the products is done.
const WARPS: u32 = 8;
/// The number of rows of `C` that blocks compute before they go on to the next column of tiles. Blocks that run at the
/// same time then compute about as many rows as columns, and share their part of `A` and `B` in the L2 cache.
const ROWS_TOGETHER: u32 = 2048;
/// The number of bytes of a row in shared memory: the width of the swizzle.
const ROW_BYTES: u32 = 128;

/// How `A` and `B` lie in memory.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Inputs {
    /// `A` is `m × k`, and `B` is `k × n`.
    Plain,
    /// `A` is `m × k`, and `B` is `n × k`. Each is the sum of one or two planes: the parameter `planes` has their number.
    Planes,
}

/// The tiles of a stage, and the number of stages.
#[derive(Clone, Copy)]
pub(super) struct Ring {
    pub(super) ty: PtxType,
    /// The number of rows of the tile of `C`.
    pub(super) rows: u32,
    pub(super) cols: u32,
    pub(super) stages: u32,
    pub(super) inputs: Inputs,
}

impl Ring {
    /// Returns the extent of `k` in a stage: a row of shared memory.
    pub(super) fn depth(self) -> u32 {
        ROW_BYTES / self.ty.bytes()
    }

    /// Bytes of a stage's part of `A`; boxes of `B` follow.
    pub(super) fn a_bytes(self) -> u32 {
        self.rows * ROW_BYTES
    }

    /// Returns the number of bytes of a box of `B`, which has the same number of elements along `n` and along `k`.
    pub(super) fn box_bytes(self) -> u32 {
        self.depth() * ROW_BYTES
    }

    pub(super) fn stage_bytes(self) -> u32 {
        self.a_bytes() + self.cols / self.depth() * self.box_bytes()
    }

    /// The stages, then a full and an empty barrier for each.
    fn bytes(self) -> u32 {
        self.stages * (self.stage_bytes() + 16)
    }

    /// Returns the boxes of the tensor maps of `A` and `B`.
    pub(super) fn tensors(self) -> [TensorBox; 2] {
        let (planes, b): (&[_], _) = match self.inputs {
            Inputs::Plain => (&[], (self.depth(), ["k", "n"])),
            Inputs::Planes => (&["planes"], (self.cols, ["n", "k"])),
        };
        [(self.rows, ["m", "k"]), b].map(|(rows, shape)| TensorBox {
            ty: self.ty,
            rows,
            cols: self.depth(),
            shape: shape.map(Extent::Param),
            planes,
        })
    }
}

pub(super) struct Block {
    pub(super) ring: Ring,
    pub(super) thread: Reg,
    pub(super) stages: Reg,
    pub(super) full: Reg,
    pub(super) empty: Reg,
    /// Tiles of `C` down, across and in all, and stages' worth of `k`.
    pub(super) down: Reg,
    pub(super) across: Reg,
    pub(super) tiles: Reg,
    pub(super) steps: Reg,
    pub(super) parts: Option<Parts>,
}

/// The number of parts of `k`, and the number of stages of each; the last part may be shorter.
pub(super) struct Parts {
    pub(super) count: Reg,
    pub(super) steps: Reg,
}

/// A tile, or a part of `k` of one.
pub(super) struct Work {
    pub(super) row: Reg,
    pub(super) col: Reg,
    /// The number of its steps, and the first index along `k`.
    pub(super) steps: Reg,
    pub(super) depth: Reg,
    /// Rows of `C` before those of this part.
    pub(super) rows_before: Option<Reg>,
}

impl Block {
    /// Prepares a block. `splits` is the number of parts of `k`, and `planes` that of the planes of [`Inputs::Planes`].
    pub(super) fn new(
        k: &mut Builder,
        p: &Product,
        ring: Ring,
        [splits, planes]: [Option<Reg>; 2],
    ) -> Self {
        let tiles_of = |k: &mut Builder, size, tile: u32| {
            let up = k.add(size, tile - 1);
            k.div(up, tile)
        };
        let stages = k.dynamic_shared("stages", ring.bytes());
        let full = k.add(stages, ring.stages * ring.stage_bytes());
        let (down, across) = (tiles_of(k, p.m, ring.rows), tiles_of(k, p.n, ring.cols));
        let mut steps = tiles_of(k, p.k, ring.depth());
        if let Some(planes) = planes {
            // The product of the second planes is below the rounding of the others.
            let products = k.mul(planes, 2);
            let products = k.sub(products, 1);
            steps = k.mul(steps, products);
        }
        let parts = splits.map(|count| {
            let up = k.add(steps, count);
            let up = k.sub(up, 1);
            let steps = k.div(up, count);
            Parts { count, steps }
        });
        Block {
            ring,
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

    /// One thread initialises the barriers, and all threads wait for it.
    pub(super) fn start(&self, k: &mut Builder) {
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
    pub(super) fn each(&self, k: &mut Builder, p: &Product, body: impl FnOnce(&mut Builder, Work)) {
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
                        depth: k.mul(first, self.ring.depth()),
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
        let together = ROWS_TOGETHER / self.ring.rows;
        let per_band = k.mul(self.across, together);
        let band = k.div(tile, per_band);
        let in_band = k.rem(tile, per_band);
        let first = k.mul(band, together);
        let left = k.sub(self.down, first);
        let height = k.min(left, together);
        let col = k.div(in_band, height);
        let row = k.rem(in_band, height);
        let row = k.add(row, first);
        (k.mul(row, self.ring.rows), k.mul(col, self.ring.cols))
    }

    /// One thread asks for the tiles of every step, as stages become empty.
    pub(super) fn produce(&self, k: &mut Builder, p: &Product) {
        let first = k.eq(self.thread, 0);
        k.when(first, |k| {
            let place = Place::first(k);
            self.each(k, p, |k, work| {
                let depth = k.value(U32, work.depth);
                let is_sum = self.ring.inputs == Inputs::Planes;
                let product = is_sum.then(|| k.value(U32, 0));
                k.for_range(0, work.steps, 1, |k, _| {
                    // The first round finds empty barriers in the phase before the first.
                    let parity = k.xor(place.parity, 1);
                    wait(k, self.empty, &place, parity);
                    let at = [work.row, work.col, depth];
                    match product {
                        None => self.fill(k, p, &place, at),
                        Some(product) => self.fill_planes(k, p, &place, at, product),
                    }
                    k.add_assign(depth, self.ring.depth());
                    if let Some(product) = product {
                        let ends = k.ge(depth, p.k);
                        k.guarded(ends, true, |k| {
                            k.assign(depth, 0);
                            k.add_assign(product, 1);
                        });
                    }
                    place.advance(k, self.ring.stages);
                });
            });
        });
    }

    /// Announces the bytes of a stage; returns its full barrier and its address.
    fn expect(&self, k: &mut Builder, place: &Place) -> (Operand<'_>, Reg) {
        let full = Operand::At(k.fma(place.stage, 8, self.full), 0);
        let bytes = self.ring.stage_bytes();
        k.act(Op::MbarrierExpect, &[full, bytes.into()]);
        (full, k.fma(place.stage, bytes, self.stages))
    }

    /// Asks for tiles of the planes of a product: first the first planes of `A` and `B`, then the second one of `A`, and last
    /// that of `B`.
    fn fill_planes(
        &self,
        k: &mut Builder,
        p: &Product,
        place: &Place,
        [row, col, depth]: [Reg; 3],
        product: Reg,
    ) {
        let (full, to) = self.expect(k, place);
        let tiles = [(p.a, row, 1, 0), (p.b, col, 2, self.ring.a_bytes())];
        for (map, row, second, offset) in tiles {
            let is_second = k.eq(product, second);
            let one = k.value(U32, 1);
            let plane = k.select(is_second, one, 0);
            let from = Operand::Box(map, &[depth, row, plane]);
            k.act(Op::TmaLoad3, &[Operand::At(to, offset as i32), from, full]);
        }
    }

    fn fill(&self, k: &mut Builder, p: &Product, place: &Place, [row, col, depth]: [Reg; 3]) {
        let (full, to) = self.expect(k, place);
        let load = |k: &mut Builder, map, at: [Reg; 2], offset: u32| {
            let from = Operand::Box(map, &at);
            let to = Operand::At(to, offset as i32);
            k.act(Op::TmaLoad, &[to, from, full]);
        };
        load(k, p.a, [depth, row], 0);
        let across = self.ring.depth();
        for part in 0..self.ring.cols / across {
            let col = k.offset(col, part * across);
            let offset = self.ring.a_bytes() + part * self.ring.box_bytes();
            load(k, p.b, [col, depth], offset);
        }
    }

    /// Releases a stage if this warp has multiplied it; one lane signals it.
    pub(super) fn free(&self, k: &mut Builder, stage: Reg, [multiplied, speaks]: [Reg; 2]) {
        let cond = k.and(multiplied, speaks);
        let empty = k.fma(stage, 8, self.empty);
        k.guarded(cond, true, |k| {
            k.act(Op::MbarrierArrive, &[Operand::At(empty, 0)]);
        });
    }

    /// Waits for the last products, and frees their stage if there were steps.
    pub(super) fn drain(&self, k: &mut Builder, steps: Reg, stage: Reg, speaks: Reg) {
        k.act(Op::WgmmaWait, &[0.into()]);
        let some = k.gt(steps, 0);
        self.free(k, stage, [some, speaks]);
    }
}
