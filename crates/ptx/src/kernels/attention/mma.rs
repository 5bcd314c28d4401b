//! Attention on the tensor cores of any GPU since Ampere, by `mma.sync`.
//!
//! A block has 128 queries of one head, and each of its four warps has 32: two fragments of 16, so
//! that a warp uses the keys and values that it reads twice. `cp.async` copies tiles of 64 keys and of
//! 64 values: the values while queries are multiplied by keys, and the next keys while weights are
//! multiplied by values. Scores stay in registers, where their fragments become those of weights.
//! After Dao, *FlashAttention-2*, 2023.
//!
//! In shared memory the 16-byte units of a row change places by its number, so that the eight rows
//! that an `ldmatrix` reads lie in different banks.

use super::part::{self, Part, Rows};
use super::{AttentionKernel, row_at};
use crate::build::Builder;
use crate::error::Result;
use crate::inst::{Op, Operand, Reg, Special};
use crate::kernel::PtxKernel;
use crate::kernels::common::WARP;
use crate::kernels::fragments::{load_matrices, multiply};
use crate::kernels::values;
use crate::types::PtxType::{F32, U32};
use crate::types::Target;

const WARPS: u32 = 4;
const THREADS: u32 = WARPS * WARP;
/// The number of fragments of 16 queries per warp.
const FRAGMENTS: u32 = 2;
/// The number of queries of a block.
const QUERIES: u32 = WARPS * FRAGMENTS * 16;
/// The number of bytes of a tile of keys, and of a tile of values.
const TILE: u32 = 16 << 10;
/// The number of rows of a fragment of a left matrix, and of two fragments of a right one side by side.
const ROWS: u32 = 16;

pub(super) fn build(kernel: AttentionKernel, target: Target) -> Result<PtxKernel> {
    kernel.check(&[64, 128], "64 or 128")?;
    values::check_half(kernel.ty)?;
    let (mut k, [q, keys, values, o], part) = part::begin(kernel, target, [THREADS, QUERIES]);
    let block = Block::new(&mut k, part);
    block.attend(&mut k, [q, keys, values], o);
    k.finish()
}

struct Block {
    part: Part,
    thread: Reg,
    lane: Reg,
    /// The address of the tiles of queries, keys and values, which are consecutive.
    tiles: Reg,
}

/// One thread's share of copying tiles of rows.
struct Copy {
    /// The address of the first unit in global memory.
    from: Reg,
    to: Reg,
    tile: u32,
    /// The number of rows from the thread's first one on.
    left: Reg,
    /// The number of bytes of a row.
    bytes: u32,
}

impl Block {
    fn new(k: &mut Builder, part: Part) -> Self {
        let bytes = part.kernel.dim * 2;
        let tiles = k.dynamic_shared("tiles", QUERIES * bytes + 2 * TILE);
        let thread = k.special(Special::TidX);
        Block {
            part,
            thread,
            lane: k.and(thread, WARP - 1),
            tiles,
        }
    }

    /// Keys of a tile: as many as leave no registers without use.
    fn keys(&self) -> u32 {
        TILE / self.row_bytes()
    }

    /// Bytes of a row of queries, keys or values.
    fn row_bytes(&self) -> u32 {
        self.part.kernel.dim * 2
    }

    /// The rows of a plane from `first` up to `end`, to the tile that begins with row `tile`.
    fn copy(
        &self,
        k: &mut Builder,
        base: Reg,
        plane: [Reg; 2],
        [first, end]: [Reg; 2],
        tile: u32,
    ) -> Copy {
        let units = self.part.kernel.dim / 8;
        let in_tile = k.shr(self.thread, units.trailing_zeros());
        let unit = k.and(self.thread, units - 1);
        let row = k.add(first, in_tile);
        let from = row_at(k, base, [plane[0], plane[1], row], self.row_bytes());
        // A thread's rows in the tile are whole eights apart, and turned alike.
        let turn = k.and(in_tile, 7);
        let place = k.xor(unit, turn);
        let to = k.fma(in_tile, self.row_bytes(), self.tiles);
        let end = k.max(end, row);
        Copy {
            from: k.at(from, unit, 16),
            to: k.fma(place, 16, to),
            tile: tile * self.row_bytes(),
            left: k.sub(end, row),
            bytes: self.row_bytes(),
        }
    }

    /// Computes the address of unit `unit`, 0 or 1, of a row of the tile that begins with row
    /// `tile`. Later units are at the XOR with their distance.
    fn lane_at(&self, k: &mut Builder, tile: u32, [row, unit]: [Reg; 2]) -> Reg {
        let turn = k.and(row, 7);
        let place = k.xor(unit, turn);
        let row = k.offset(row, tile);
        let at = k.fma(row, self.row_bytes(), self.tiles);
        k.fma(place, 16, at)
    }

    fn attend(&self, k: &mut Builder, [q, keys, values]: [Reg; 3], o: Reg) {
        let (part, heads) = (&self.part, &self.part.heads);
        let zero = k.value(U32, 0);
        let of_q = [heads.plane, heads.seq_q];
        let of_k = [heads.kv_plane, heads.seq_k];
        let queries = self.copy(k, q, of_q, [part.first, heads.seq_q], 0);
        let keys = self.copy(k, keys, of_k, [zero, part.end], QUERIES);
        let values = self.copy(k, values, of_k, [zero, part.end], QUERIES + self.keys());
        queries.start(k, QUERIES, zero);
        keys.start(k, self.keys(), zero);
        k.act(Op::CpAsyncCommit, &[]);
        let lanes = Lanes::new(k, self);
        let rows = lanes.rows.each_ref();
        let sums = [0, 1].map(|_| k.filled(F32, part.kernel.dim as usize / 2, 0.0f32));
        k.for_range(0, part.end, self.keys(), |k, key| {
            // The keys are there, and nobody reads the values before these any more.
            k.act(Op::CpAsyncWait, &[0.into()]);
            k.barrier();
            values.start(k, self.keys(), key);
            values.advance(k, self.keys());
            k.act(Op::CpAsyncCommit, &[]);
            let scores = self.scores(k, &lanes);
            k.act(Op::CpAsyncWait, &[0.into()]);
            k.barrier();
            let next = k.add(key, self.keys());
            keys.advance(k, self.keys());
            keys.start(k, self.keys(), next);
            k.act(Op::CpAsyncCommit, &[]);
            let masked = part.masked(k, key, self.keys());
            k.when(masked, |k| {
                for (rows, scores) in rows.into_iter().zip(&scores) {
                    rows.mask(k, part, key, scores);
                }
            });
            for (i, rows) in rows.into_iter().enumerate() {
                let rescale = rows.weigh(k, &scores[i]);
                Rows::rescale(k, &sums[i], rescale);
            }
            self.add(k, &lanes, &scores, &sums);
        });
        k.act(Op::CpAsyncWait, &[0.into()]);
        for (rows, sums) in rows.into_iter().zip(&sums) {
            rows.store(k, part, o, sums);
        }
    }

    /// Products of the warp's queries with a tile of keys: both lie along the dimension.
    fn scores(&self, k: &mut Builder, lanes: &Lanes) -> [Vec<Reg>; 2] {
        let scores = [0, 1].map(|_| k.filled(F32, self.keys() as usize / 2, 0.0f32));
        for step in 0..self.part.kernel.dim / 16 {
            let rows = ROWS * self.row_bytes();
            let a = [0, 1].map(|i| load(k, Op::LdMatrix4, lanes.queries, step, i * rows));
            for (pair, at) in (0..self.keys() / ROWS).enumerate() {
                let b = load(k, Op::LdMatrix4, lanes.keys, step, at * rows);
                self.products(k, &scores, &a, &b, pair);
            }
        }
        scores
    }

    /// Adds the products of a tile's weights with its values, which lie across the keys.
    fn add(&self, k: &mut Builder, lanes: &Lanes, weights: &[Vec<Reg>; 2], sums: &[Vec<Reg>; 2]) {
        for step in 0..self.keys() / ROWS {
            let part = 8 * step as usize..8 * (step as usize + 1);
            let a = weights
                .each_ref()
                .map(|weights| self.part.rounded(k, &weights[part.clone()]));
            for (pair, at) in (0..self.part.kernel.dim / 16).enumerate() {
                let rows = step * ROWS * self.row_bytes();
                let b = load(k, Op::LdMatrix4Trans, lanes.values, at, rows);
                self.products(k, sums, &a, &b, pair);
            }
        }
    }

    /// Both fragments' products with two right ones, `pair` times 16 columns further on.
    fn products(
        &self,
        k: &mut Builder,
        sums: &[Vec<Reg>; 2],
        a: &[Vec<Reg>; 2],
        b: &[Reg],
        pair: usize,
    ) {
        for (sums, a) in sums.iter().zip(a) {
            for (half, b) in b.chunks_exact(2).enumerate() {
                let sums = &sums[8 * pair + 4 * half..][..4];
                multiply(k, self.part.kernel.ty, sums, a, b);
            }
        }
    }
}

/// Loads fragments `pairs` pairs of units further on in the lane's rows, and `rows` bytes below: the
/// swizzle turns eight units among themselves.
fn load(k: &mut Builder, op: Op, at: Reg, pairs: u32, rows: u32) -> Vec<Reg> {
    let (eights, within) = (pairs / 4, pairs % 4);
    let at = match within {
        0 => at,
        within => k.xor(at, within * 32),
    };
    load_matrices(k, op, at, eights * 128 + rows)
}

/// The state of a lane: its rows of scores, and the addresses of its fragments in each tile.
struct Lanes {
    rows: [Rows; 2],
    queries: Reg,
    keys: Reg,
    values: Reg,
}

impl Lanes {
    fn new(k: &mut Builder, block: &Block) -> Self {
        let warp = k.shr(block.thread, 5);
        let first = k.mul(warp, FRAGMENTS * ROWS);
        let rows = [0, ROWS].map(|further| {
            let first = k.offset(first, further);
            Rows::new(k, &block.part, block.lane, first)
        });
        // Lane 8i + j names row j of matrix i: below each other, then side by side; of keys, which
        // are read as columns, side by side first.
        let (low, high) = (k.and(block.lane, 15), k.shr(block.lane, 4));
        let (row, eight) = (k.and(block.lane, 7), k.shr(block.lane, 3));
        let (side, below) = (k.and(eight, 1), k.shr(eight, 1));
        let key = k.fma(below, 8, row);
        let query = k.add(first, low);
        Lanes {
            rows,
            queries: block.lane_at(k, 0, [query, high]),
            keys: block.lane_at(k, QUERIES, [key, side]),
            values: block.lane_at(k, QUERIES + block.keys(), [low, high]),
        }
    }
}

impl Copy {
    /// Starts the copy of this thread's units of the next tile, which has `rows` rows and begins at row `first`. Rows
    /// after the last one are zeros.
    fn start(&self, k: &mut Builder, rows: u32, first: Reg) {
        let per_pass = THREADS * 16 / self.bytes;
        let left = k.max(self.left, first);
        let left = k.sub(left, first);
        for row in (0..rows).step_by(per_pass as usize) {
            let inside = k.gt(left, row);
            let none = k.value(U32, 0);
            let bytes = k.select(inside, 16, none);
            let further = row * self.bytes;
            let operands = [
                Operand::At(self.to, (self.tile + further) as i32),
                Operand::At(self.from, further as i32),
                16.into(),
                bytes.into(),
            ];
            k.act(Op::CpAsync16, &operands);
        }
    }

    /// Moves to the next tile, `rows` rows further.
    fn advance(&self, k: &mut Builder, rows: u32) {
        k.add_assign(self.from, i64::from(rows * self.bytes));
    }
}
