//! Attention on Hopper's tensor cores.
//!
//! A block has 128 queries of one head. One warp asks for tiles of 128 keys and values; two
//! groups of four warps have 64 queries each. While the tensor cores multiply one tile's weights
//! with its values, the group turns the next tile's scores into weights; and where one group
//! computes weights, the other may multiply. After Shah et al., *FlashAttention-3*, 2024.

use super::part::{self, Part, Rows};
use super::{AttentionKernel, Heads};
use crate::build::Builder;
use crate::error::Result;
use crate::inst::{Op, Operand, Reg, Special};
use crate::kernel::{Extent, Launch, PtxKernel, TensorBox};
use crate::kernels::Kernel;
use crate::kernels::hopper::{BOX_COLS, GROUP, Place, SWIZZLE, descriptor, wait, wait_at};
use crate::kernels::values;
use crate::types::PtxType::{B32, BF16, F32, U32};
use crate::types::Target;

/// The number of queries of a block.
const QUERIES: u32 = 128;
/// The number of keys of a tile.
const KEYS: u32 = 128;
/// The number of bytes of a box: 128 rows of 128 bytes.
const BOX: u32 = KEYS * 128;
const STAGES: u32 = 2;
/// The number of warps that multiply.
const WARPS: u32 = 8;
/// The number of registers in which a thread has its share of a tile's scores.
const SCORES: usize = KEYS as usize / 2;

pub(super) fn build(kernel: AttentionKernel, target: Target) -> Result<PtxKernel> {
    kernel.check(&[64, 128], "64 or 128")?;
    values::check_half(kernel.ty)?;
    let launch = Launch::new(3 * GROUP, part::grid(QUERIES));
    let mut k = Builder::new(kernel.name(), target, launch);
    let tensor = |rows, planes| TensorBox {
        ty: kernel.ty,
        rows: KEYS,
        cols: BOX_COLS,
        shape: [Extent::Param(rows), Extent::Fixed(kernel.dim)],
        planes,
    };
    let q = k.tensor_map("q", tensor("seq_q", &["batch", "heads"]));
    let keys = k.tensor_map("k", tensor("seq_k", &["batch", "kv_heads"]));
    let values = k.tensor_map("v", tensor("seq_k", &["batch", "kv_heads"]));
    let o = k.pointer("o", kernel.ty);
    let heads = Heads::declare(&mut k);
    let block = Block::new(&mut k, kernel, heads);
    block.start(&mut k);
    let group = k.shr(block.thread, 7);
    let produces = k.eq(group, 0);
    k.when_else(
        produces,
        |k| {
            k.act(Op::SetMaxRegDec, &[24.into()]);
            block.produce(k, q, keys, values);
        },
        |k| {
            k.act(Op::SetMaxRegInc, &[240.into()]);
            let group = k.sub(group, 1);
            block.consume(k, o, group);
        },
    );
    k.finish()
}

struct Block {
    part: Part,
    thread: Reg,
    /// Shared memory: the queries, then stages of keys, then stages of values.
    queries: Reg,
    keys: Reg,
    values: Reg,
    /// Barriers: `ready` for the arrival of the queries, `full` for the arrival of keys and values in each stage, and
    /// `empty` for the end of their use.
    ready: Reg,
    full: [Reg; 2],
    empty: [Reg; 2],
}

impl Block {
    fn new(k: &mut Builder, kernel: AttentionKernel, heads: Heads) -> Self {
        let tile = Self::tile_bytes(kernel);
        let queries = k.dynamic_shared("tiles", (1 + 2 * STAGES) * tile + 8 * (1 + 4 * STAGES));
        let ready = k.add(queries, (1 + 2 * STAGES) * tile);
        let mut barriers = |i: u32| k.add(ready, 8 + 8 * STAGES * i);
        let (full, empty) = ([barriers(0), barriers(1)], [barriers(2), barriers(3)]);
        Block {
            part: Part::new(k, kernel, heads, QUERIES),
            thread: k.special(Special::TidX),
            queries,
            keys: k.add(queries, tile),
            values: k.add(queries, (1 + STAGES) * tile),
            ready,
            full,
            empty,
        }
    }

    /// Bytes of 128 rows of the head's dimension.
    fn tile_bytes(kernel: AttentionKernel) -> u32 {
        kernel.dim / BOX_COLS * BOX
    }

    fn start(&self, k: &mut Builder) {
        let first = k.eq(self.thread, 0);
        k.when(first, |k| {
            k.act(Op::MbarrierInit, &[Operand::At(self.ready, 0), 1.into()]);
            for stage in 0..STAGES {
                for (barriers, count) in [(self.full, 1), (self.empty, WARPS)] {
                    for barrier in barriers {
                        let at = Operand::At(barrier, (8 * stage) as i32);
                        k.act(Op::MbarrierInit, &[at, count.into()]);
                    }
                }
            }
            k.act(Op::FenceMbarrierInit, &[]);
        });
        k.barrier();
    }

    /// Asks for 128 rows of a plane, a box of 64 columns after the other.
    fn load(&self, k: &mut Builder, map: Reg, [row, plane]: [Reg; 2], to: Reg, barrier: Reg) {
        let barrier = Operand::At(barrier, 0);
        let bytes = Self::tile_bytes(self.part.kernel);
        k.act(Op::MbarrierExpect, &[barrier, bytes.into()]);
        for part in 0..self.part.kernel.dim / BOX_COLS {
            let col = k.value(U32, part * BOX_COLS);
            let to = Operand::At(to, (part * BOX) as i32);
            let from = Operand::Box(map, &[col, row, plane]);
            k.act(Op::TmaLoad3, &[to, from, barrier]);
        }
    }

    /// One thread asks for the queries, and then for tiles as stages become empty.
    fn produce(&self, k: &mut Builder, q: Reg, keys: Reg, values: Reg) {
        let first = k.eq(self.thread, 0);
        k.when(first, |k| {
            let from = [self.part.first, self.part.heads.plane];
            self.load(k, q, from, self.queries, self.ready);
            let place = Place::first(k);
            k.for_range(0, self.part.end, KEYS, |k, key| {
                let parity = k.xor(place.parity, 1);
                let from = [key, self.part.heads.kv_plane];
                let of = [(keys, self.keys), (values, self.values)];
                for (i, (map, to)) in of.into_iter().enumerate() {
                    wait(k, self.empty[i], &place, parity);
                    let to = k.fma(place.stage, Self::tile_bytes(self.part.kernel), to);
                    let full = k.fma(place.stage, 8, self.full[i]);
                    self.load(k, map, from, to, full);
                }
                place.advance(k, STAGES);
            });
        });
    }

    fn consume(&self, k: &mut Builder, o: Reg, group: Reg) {
        let zero = k.value(U32, 0);
        wait_at(k, self.ready, zero);
        let (lane, warp) = (k.and(self.thread, 31), k.shr(self.thread, 5));
        let warp = k.and(warp, 3);
        let first = k.mul(warp, 16);
        let first = k.fma(group, 64, first);
        let rows = Rows::new(k, &self.part, lane, first);
        let (key_place, value_place) = (Place::first(k), Place::first(k));
        let scores = k.filled(F32, SCORES, 0.0f32);
        let sums = k.filled(F32, self.part.kernel.dim as usize / 2, 0.0f32);
        self.start_scores(k, group, &key_place, &scores);
        k.act(Op::WgmmaWait, &[0.into()]);
        self.free(k, self.empty[0], &key_place);
        self.mask(k, &rows, zero, &scores);
        let _ = rows.weigh(k, &scores);
        let weights = self.part.rounded(k, &scores);
        k.for_range(KEYS, self.part.end, KEYS, |k, key| {
            self.start_scores(k, group, &key_place, &scores);
            self.start_sums(k, &value_place, &weights, &sums);
            // The scores are there while the sums may not be.
            k.act(Op::WgmmaWait, &[1.into()]);
            self.free(k, self.empty[0], &key_place);
            self.mask(k, &rows, key, &scores);
            let rescale = rows.weigh(k, &scores);
            k.act(Op::WgmmaWait, &[0.into()]);
            self.free(k, self.empty[1], &value_place);
            Rows::rescale(k, &sums, rescale);
            for (&to, from) in weights.iter().zip(self.part.rounded(k, &scores)) {
                k.assign(to, from);
            }
        });
        self.start_sums(k, &value_place, &weights, &sums);
        k.act(Op::WgmmaWait, &[0.into()]);
        rows.store(k, &self.part, o, &sums);
    }

    /// `wgmma` for the kernel's type, with A in shared memory or in registers.
    fn op(&self, in_memory: bool) -> Op {
        match (self.part.kernel.ty == BF16, in_memory) {
            (true, true) => Op::WgmmaBf16,
            (true, false) => Op::WgmmaBf16Regs,
            (false, true) => Op::WgmmaF16,
            (false, false) => Op::WgmmaF16Regs,
        }
    }

    /// Scores of the group's queries with the next tile of keys: both lie along the dimension.
    fn start_scores(&self, k: &mut Builder, group: Reg, place: &Place, scores: &[Reg]) {
        wait(k, self.full[0], place, place.parity);
        let queries = k.fma(group, 64 * 128, self.queries);
        let keys = k.fma(place.stage, Self::tile_bytes(self.part.kernel), self.keys);
        let (a, b) = (
            descriptor(k, queries, 16, SWIZZLE),
            descriptor(k, keys, 16, SWIZZLE),
        );
        k.act(Op::WgmmaFence, &[]);
        for part in 0..self.part.kernel.dim / 16 {
            // 16 of the dimension are 32 bytes; boxes have 64.
            let further = i64::from((part / 4 * BOX + part % 4 * 32) / 16);
            let (a, b) = (k.add(a, further), k.add(b, further));
            let adds = if part == 0 {
                k.lt(self.thread, 0)
            } else {
                k.ge(self.thread, 0)
            };
            let scale = [1, 1, 0, 0].map(Operand::from);
            let from = [[a.into(), b.into(), adds.into()].as_slice(), &scale].concat();
            k.emit(self.op(true), B32, &[scores.into()], &from);
        }
        k.act(Op::WgmmaCommit, &[]);
    }

    /// Adds the products of a tile's weights with its values, which lie across the keys.
    fn start_sums(&self, k: &mut Builder, place: &Place, weights: &[Reg], sums: &[Reg]) {
        wait(k, self.full[1], place, place.parity);
        let values = k.fma(place.stage, Self::tile_bytes(self.part.kernel), self.values);
        let b = descriptor(k, values, BOX, SWIZZLE);
        let always = k.ge(self.thread, 0);
        k.act(Op::WgmmaFence, &[]);
        for (part, weights) in weights.chunks_exact(4).enumerate() {
            // 16 keys are as many rows of 128 bytes.
            let b = k.add(b, part as i64 * 16 * 128 / 16);
            let scale = [1, 1, 1].map(Operand::from);
            let from = [[weights.into(), b.into(), always.into()].as_slice(), &scale].concat();
            k.emit(self.op(false), B32, &[sums.into()], &from);
        }
        k.act(Op::WgmmaCommit, &[]);
    }

    /// Releases a stage that this warp has used, and moves to the next stage.
    fn free(&self, k: &mut Builder, empty: Reg, place: &Place) {
        let lane = k.and(self.thread, 31);
        let speaks = k.eq(lane, 0);
        let empty = k.fma(place.stage, 8, empty);
        k.guarded(speaks, true, |k| {
            k.act(Op::MbarrierArrive, &[Operand::At(empty, 0)]);
        });
        place.advance(k, STAGES);
    }

    /// Masks the scores of keys that do not exist or that a query does not see, if the tile has any.
    fn mask(&self, k: &mut Builder, rows: &Rows, key: Reg, scores: &[Reg]) {
        let needed = self.part.masked(k, key, KEYS);
        k.when(needed, |k| rows.mask(k, &self.part, key, scores));
    }
}
