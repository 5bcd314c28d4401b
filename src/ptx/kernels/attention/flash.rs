//! Attention on Hopper's tensor cores.
//!
//! A block has 128 queries of one head. One warp asks for tiles of 128 keys and values; two
//! groups of four warps have 64 queries each. While the tensor cores multiply one tile's weights
//! with its values, the group turns the next tile's scores into weights; and where one group
//! computes weights, the other may multiply. After Shah et al., *FlashAttention-3*, 2024.

use super::{AttentionKernel, Heads};
use crate::ptx::build::Builder;
use crate::ptx::error::Result;
use crate::ptx::inst::{Op, Operand, Reg, Special};
use crate::ptx::kernel::{Extent, Launch, PtxKernel, TensorBox};
use crate::ptx::kernels::Kernel;
use crate::ptx::kernels::common::{Combine, over_lanes};
use crate::ptx::kernels::hopper::{BOX_COLS, GROUP, Place, SWIZZLE, descriptor, wait, wait_at};
use crate::ptx::types::PtxType::{self, B32, BF16, F32, U32};
use crate::ptx::types::Target;

/// Queries of a block, and keys of a tile.
const QUERIES: u32 = 128;
const KEYS: u32 = 128;
/// Bytes of a box: 128 rows of 128 bytes.
const BOX: u32 = KEYS * 128;
const STAGES: u32 = 2;
/// Warps that multiply.
const WARPS: u32 = 8;
/// Registers of a thread for its share of a tile's scores.
const SCORES: usize = KEYS as usize / 2;

pub(super) fn build(kernel: AttentionKernel, target: Target) -> Result<PtxKernel> {
    kernel.check(&[64, 128], "64 or 128")?;
    let grid = [
        Extent::Tiles("seq_q", QUERIES),
        Extent::Param("heads"),
        Extent::Param("batch"),
    ];
    let launch = Launch::new(3 * GROUP, grid);
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
    kernel: AttentionKernel,
    heads: Heads,
    thread: Reg,
    /// The first query, and the first key that none of the block's sees.
    first: Reg,
    end: Reg,
    /// Shared memory: the queries, then stages of keys, then stages of values.
    queries: Reg,
    keys: Reg,
    values: Reg,
    /// Barriers: the queries have landed; keys and values have, stage by stage; and each have
    /// been used.
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
        // The last queries of a causal mask see the most keys: they come first.
        let (block, blocks) = (k.special(Special::CtaidX), k.special(Special::NctaidX));
        let last = k.sub(blocks, 1);
        let tile_index = k.sub(last, block);
        let first = k.mul(tile_index, QUERIES);
        let end = if kernel.causal {
            let behind = k.sub(heads.seq_k, heads.seq_q);
            let end = k.add(first, QUERIES);
            let end = k.add(end, behind);
            k.min(end, heads.seq_k)
        } else {
            heads.seq_k
        };
        Block {
            kernel,
            thread: k.special(Special::TidX),
            first,
            end,
            queries,
            keys: k.add(queries, tile),
            values: k.add(queries, (1 + STAGES) * tile),
            ready,
            full,
            empty,
            heads,
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
        let bytes = Self::tile_bytes(self.kernel);
        k.act(Op::MbarrierExpect, &[barrier, bytes.into()]);
        for part in 0..self.kernel.dim / BOX_COLS {
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
            let from = [self.first, self.heads.plane];
            self.load(k, q, from, self.queries, self.ready);
            let place = Place::first(k);
            k.for_range(0, self.end, KEYS, |k, key| {
                let parity = k.xor(place.parity, 1);
                let from = [key, self.heads.kv_plane];
                let of = [(keys, self.keys), (values, self.values)];
                for (i, (map, to)) in of.into_iter().enumerate() {
                    wait(k, self.empty[i], &place, parity);
                    let to = k.fma(place.stage, Self::tile_bytes(self.kernel), to);
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
        let rows = Rows::new(k, self, group);
        let (key_place, value_place) = (Place::first(k), Place::first(k));
        let scores = k.filled(F32, SCORES, 0.0f32);
        let sums = k.filled(F32, self.kernel.dim as usize / 2, 0.0f32);
        self.start_scores(k, group, &key_place, &scores);
        k.act(Op::WgmmaWait, &[0.into()]);
        self.free(k, self.empty[0], &key_place);
        self.mask(k, &rows, zero, &scores);
        let _ = rows.weigh(k, &scores);
        let weights = self.rounded(k, &scores);
        k.for_range(KEYS, self.end, KEYS, |k, key| {
            self.start_scores(k, group, &key_place, &scores);
            self.start_sums(k, &value_place, &weights, &sums);
            // The scores are there while the sums may not be.
            k.act(Op::WgmmaWait, &[1.into()]);
            self.free(k, self.empty[0], &key_place);
            self.mask(k, &rows, key, &scores);
            let rescale = rows.weigh(k, &scores);
            k.act(Op::WgmmaWait, &[0.into()]);
            self.free(k, self.empty[1], &value_place);
            for (i, &sum) in sums.iter().enumerate() {
                k.mul_assign(sum, rescale[i / 2 % 2]);
            }
            for (&to, from) in weights.iter().zip(self.rounded(k, &scores)) {
                k.assign(to, from);
            }
        });
        self.start_sums(k, &value_place, &weights, &sums);
        k.act(Op::WgmmaWait, &[0.into()]);
        rows.store(k, self, o, &sums);
    }

    /// `wgmma` for the kernel's type, with A in shared memory or in registers.
    fn op(&self, in_memory: bool) -> Op {
        match (self.kernel.ty == BF16, in_memory) {
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
        let keys = k.fma(place.stage, Self::tile_bytes(self.kernel), self.keys);
        let (a, b) = (
            descriptor(k, queries, 16, SWIZZLE),
            descriptor(k, keys, 16, SWIZZLE),
        );
        k.act(Op::WgmmaFence, &[]);
        for part in 0..self.kernel.dim / 16 {
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
        let values = k.fma(place.stage, Self::tile_bytes(self.kernel), self.values);
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

    /// Says that this warp has used a stage, and goes on to the next.
    fn free(&self, k: &mut Builder, empty: Reg, place: &Place) {
        let lane = k.and(self.thread, 31);
        let speaks = k.eq(lane, 0);
        let empty = k.fma(place.stage, 8, empty);
        k.guarded(speaks, true, |k| {
            k.act(Op::MbarrierArrive, &[Operand::At(empty, 0)]);
        });
        place.advance(k, STAGES);
    }

    /// Takes out scores of keys that do not exist or are not to be seen, where a tile has any.
    fn mask(&self, k: &mut Builder, rows: &Rows, key: Reg, scores: &[Reg]) {
        let after = k.add(key, KEYS);
        let needed = if self.kernel.causal {
            // The first query sees the fewest keys.
            let behind = k.sub(self.heads.seq_k, self.heads.seq_q);
            let sees = k.add(self.first, behind);
            let sees = k.add(sees, 1);
            let sees = k.min(sees, self.heads.seq_k);
            k.gt(after, sees)
        } else {
            k.gt(after, self.heads.seq_k)
        };
        k.when(needed, |k| {
            let first = k.add(key, rows.col);
            for (i, &score) in scores.iter().enumerate() {
                let (block, half, odd) = (i / 4, i / 2 % 2, i % 2);
                let key = k.offset(first, 8 * block as u32 + odd as u32);
                let hidden = k.ge(key, rows.sees[half]);
                k.guarded(hidden, true, |k| k.assign(score, f32::NEG_INFINITY));
            }
        });
    }

    /// Weights as the left matrix of a product: two to a register.
    fn rounded(&self, k: &mut Builder, weights: &[Reg]) -> Vec<Reg> {
        let (op, ty) = if self.kernel.ty == BF16 {
            (Op::CvtBf16x2F32, PtxType::BF16x2)
        } else {
            (Op::CvtF16x2F32, PtxType::F16x2)
        };
        let pair = |pair: &[Reg]| k.convert(op, ty, &[pair[1].into(), pair[0].into()]);
        weights.chunks_exact(2).map(pair).collect()
    }
}

/// The two queries of a thread, eight apart, and what it knows of them.
struct Rows {
    /// The first query's number, and the first of the thread's columns in eight.
    row: Reg,
    col: Reg,
    /// The first key that each does not see.
    sees: [Reg; 2],
    /// log₂ e times the scale, by which scores become powers of 2.
    unit: Reg,
    /// The largest score so far, and this thread's part of the sum of weights.
    max: [Reg; 2],
    total: [Reg; 2],
}

impl Rows {
    fn new(k: &mut Builder, block: &Block, group: Reg) -> Self {
        let lane = k.and(block.thread, 31);
        let warp = k.shr(block.thread, 5);
        let warp = k.and(warp, 3);
        let in_warp = k.shr(lane, 2);
        let row = k.fma(warp, 16, in_warp);
        let row = k.fma(group, 64, row);
        let row = k.add(row, block.first);
        let pair = k.and(lane, 3);
        let sees = [0, 8].map(|further| {
            if !block.kernel.causal {
                return block.heads.seq_k;
            }
            let behind = k.sub(block.heads.seq_k, block.heads.seq_q);
            let last = k.add(row, behind);
            let end = k.add(last, further + 1);
            k.min(end, block.heads.seq_k)
        });
        Rows {
            row,
            col: k.mul(pair, 2),
            sees,
            unit: k.mul(block.heads.scale, std::f32::consts::LOG2_E),
            max: [f32::NEG_INFINITY; 2].map(|x| k.value(F32, x)),
            total: [0.0f32; 2].map(|x| k.value(F32, x)),
        }
    }

    /// Turns scores into weights, in units of the largest score; the result is by what earlier
    /// sums have to be multiplied.
    fn weigh(&self, k: &mut Builder, scores: &[Reg]) -> [Reg; 2] {
        [0, 1].map(|half| {
            let mine: Vec<Reg> = (0..scores.len())
                .filter(|i| i / 2 % 2 == half)
                .map(|i| scores[i])
                .collect();
            let max = k.value(F32, self.max[half]);
            for &score in &mine {
                Combine::Max.apply(k, max, score);
            }
            // Four lanes share a row.
            let max = over_lanes(k, Combine::Max, max, 4);
            let down = k.sub(self.max[half], max);
            let down = k.mul(down, self.unit);
            let rescale = k.ex2(down);
            k.assign(self.max[half], max);
            k.mul_assign(self.total[half], rescale);
            let base = k.mul(max, self.unit);
            let base = k.neg(base);
            for &score in &mine {
                let power = k.fma(score, self.unit, base);
                k.emit(Op::Ex2, F32, &[score.into()], &[power.into()]);
                k.add_assign(self.total[half], score);
            }
            rescale
        })
    }

    fn store(&self, k: &mut Builder, block: &Block, o: Reg, sums: &[Reg]) {
        for half in 0..2 {
            let total = over_lanes(k, Combine::Sum, self.total[half], 4);
            let scale = k.rcp(total);
            let row = k.offset(self.row, 8 * half as u32);
            let exists = k.lt(row, block.heads.seq_q);
            let row = k.widen(row);
            let from = [
                block.heads.plane.into(),
                block.heads.seq_q.into(),
                row.into(),
            ];
            let row = k.op(Op::MadWide, U32, PtxType::U64, &from);
            let row = k.fma(row, i64::from(block.kernel.dim * 2), o);
            let at = k.at(row, self.col, 2);
            let mut scaled = Vec::new();
            for pair in sums.chunks_exact(4) {
                for &sum in &pair[2 * half..2 * half + 2] {
                    scaled.push(k.mul(sum, scale));
                }
            }
            let words = block.rounded(k, &scaled);
            k.when(exists, |k| {
                for (i, &word) in words.iter().enumerate() {
                    k.st_global(B32, at, 16 * i as i32, word);
                }
            });
        }
    }
}
