//! Attention in f32 on any GPU since Volta, by tiles in shared memory and registers.
//!
//! Two products of tiles, each as in the tiled product of matrices: queries times 64 keys, whose sums become weights,
//! and those times values. A thread has four queries in both, and of each eight keys' scores and an eighth of the
//! dimension. Keys and values are loaded in pieces of 4 KB: the next piece while the current one is multiplied. Weights
//! go through shared memory, since every thread of a query needs them all; these are lanes of one warp. After Dao et
//! al., 2022.

use super::part::{self, Part};
use super::state::{self, LOWEST};
use super::{AttentionKernel, row_at};
use crate::build::Builder;
use crate::error::Result;
use crate::inst::{Reg, Special};
use crate::kernel::PtxKernel;
use crate::kernels::common::{Combine, over_lanes};
use crate::kernels::copies::{Copy, fours, outer, turn};
use crate::types::PtxType::{F32, U32};
use crate::types::Target;

const THREADS: u32 = 128;
/// The number of lanes that share their queries.
const LANES: u32 = 8;
/// The number of queries that these lanes share. Eight were faster by 3 to 12%, but fill the registers, and the shared
/// memory of most GPUs.
const EACH: u32 = 4;
/// The number of queries of a block.
const QUERIES: u32 = THREADS / LANES * EACH;
/// The number of bytes from one element of a head to the next in the tile of queries.
const QUERY_STRIDE: u32 = (QUERIES + 4) * 4;
/// The number of bytes from one key's weights to the next key's.
const WEIGHT_STRIDE: u32 = QUERIES * 4;
/// The number of keys of a tile.
const KEYS: u32 = 64;
/// The extent of the dimension in a block of keys.
const DEPTH: u32 = 16;
const KEY_STRIDE: u32 = KEYS + 4;
/// The number of elements of the values matrix in a piece, which is loaded at once.
const PIECE: u32 = 1024;
/// The number of bytes of each of the two stages.
const STAGE: u32 = DEPTH * KEY_STRIDE * 4;

pub(super) fn build(kernel: AttentionKernel, target: Target) -> Result<PtxKernel> {
    kernel.check(&[64, 128], "64 or 128")?;
    let (mut k, [q, keys, values, o], part) = part::begin(kernel, target, [THREADS, QUERIES]);
    let block = Block::new(&mut k, part);
    block.attend(&mut k, [q, keys, values], o);
    k.finish()
}

struct Block {
    part: Part,
    thread: Reg,
    /// The index of the group of threads.
    group: Reg,
    lane: Reg,
    /// Shared memory: queries, transposed; weights, transposed; stages of keys or values.
    tile: Reg,
    weights: Reg,
    stages: Reg,
    /// log₂ e times the scale, by which scores become powers of 2.
    unit: Reg,
}

/// The state of a thread's queries: the largest score, its part of the sum of weights, and the
/// accumulators.
struct State {
    max: Vec<Reg>,
    total: Vec<Reg>,
    sums: Vec<Vec<Reg>>,
}

impl Block {
    fn new(k: &mut Builder, part: Part) -> Self {
        let (tile, weights) = (part.kernel.dim * QUERY_STRIDE, KEYS * WEIGHT_STRIDE);
        let shared = k.dynamic_shared("tiles", tile + weights + 2 * STAGE);
        let thread = k.special(Special::TidX);
        Block {
            unit: k.mul(part.heads.scale, std::f32::consts::LOG2_E),
            part,
            thread,
            group: k.shr(thread, LANES.trailing_zeros()),
            lane: k.and(thread, LANES - 1),
            tile: shared,
            weights: k.add(shared, tile),
            stages: k.add(shared, tile + weights),
        }
    }

    fn dim(&self) -> u32 {
        self.part.kernel.dim
    }

    /// `rows` rows of `base` from `first` on, transposed: pieces follow each other along the
    /// dimension. Rows beyond `last` repeat it.
    fn columns(
        &self,
        k: &mut Builder,
        base: Reg,
        [plane, of, first]: [Reg; 3],
        rows: u32,
        to: (Reg, u32),
    ) -> Copy {
        let across = DEPTH / 4;
        let (row, col) = (
            k.shr(self.thread, across.trailing_zeros()),
            k.and(self.thread, across - 1),
        );
        let col = k.mul(col, 4);
        let (to, stride) = to;
        let to_row = k.fma(col, stride, to);
        let last = k.sub(of, 1);
        let mut copy = Copy::new(4, DEPTH, (DEPTH * 4).into(), stride / 4);
        for pass in (0..rows).step_by((THREADS / across) as usize) {
            let row = k.offset(row, pass);
            copy.to.push(k.fma(row, 4, to_row));
            let row = k.add(row, first);
            let row = k.min(row, last);
            let from = row_at(k, base, [plane, of, row], self.dim() * 4);
            copy.from.push(k.at(from, col, 4));
        }
        copy.depth.push(k.value(U32, col));
        copy
    }

    /// Returns the copy of rows of `base` from `first` on. Pieces are consecutive rows, in the order of memory.
    fn rows(&self, k: &mut Builder, base: Reg, [plane, of, first]: [Reg; 3]) -> Copy {
        let across = self.dim() / 4;
        let (row, col) = (
            k.shr(self.thread, across.trailing_zeros()),
            k.and(self.thread, across - 1),
        );
        let deeper = PIECE / self.dim();
        let mut copy = Copy::new(4, deeper, i64::from(PIECE * 4).into(), 1);
        let to = k.fma(self.thread, 16, self.stages);
        for pass in 0..PIECE / (4 * THREADS) {
            copy.to.push(k.offset(to, pass * THREADS * 16));
            let row = k.offset(row, pass * THREADS / across);
            let row = k.add(row, first);
            copy.depth.push(row);
            let from = row_at(k, base, [plane, of, row], self.dim() * 4);
            copy.from.push(k.at(from, col, 16));
        }
        copy
    }

    /// Runs `body` on each piece, with its address in shared memory and the number of rows before it.
    fn stream(
        k: &mut Builder,
        stages: Reg,
        copy: &Copy,
        end: Reg,
        [all, each]: [u32; 2],
        body: impl FnOnce(&mut Builder, Reg, Reg),
    ) {
        let buffer = k.value(U32, 0);
        let first = copy.load(k, end);
        copy.store(k, &first, buffer);
        k.barrier();
        k.for_range(0, all, each, |k, before| {
            let next = copy.load(k, end);
            let stage = k.add(stages, buffer);
            body(k, stage, before);
            turn(k, buffer, STAGE);
            copy.store(k, &next, buffer);
            k.barrier();
        });
    }

    fn attend(&self, k: &mut Builder, [q, keys, values]: [Reg; 3], o: Reg) {
        let heads = &self.part.heads;
        self.load_queries(k, q);
        let each = EACH as usize;
        let state = State {
            max: k.filled(F32, each, LOWEST),
            total: k.filled(F32, each, 0.0f32),
            sums: (0..each)
                .map(|_| k.filled(F32, self.dim() as usize / 8, 0.0f32))
                .collect(),
        };
        k.for_range(0, self.part.end, KEYS, |k, key| {
            let place = [heads.kv_plane, heads.seq_k, key];
            let scores = self.scores(k, keys, place);
            self.mask(k, key, &scores);
            self.weigh(k, &state, &scores);
            self.share(k, &scores);
            self.add(k, values, place, &state.sums);
        });
        self.store(k, o, &state);
    }

    fn load_queries(&self, k: &mut Builder, q: Reg) {
        let heads = &self.part.heads;
        let place = [heads.plane, heads.seq_q, self.part.first];
        let copy = self.columns(k, q, place, QUERIES, (self.tile, QUERY_STRIDE));
        let end = k.value(U32, self.dim());
        let at = k.value(U32, 0);
        k.for_range(0, self.dim(), DEPTH, |k, _| {
            let loads = copy.load(k, end);
            copy.store(k, &loads, at);
            k.add_assign(at, DEPTH * QUERY_STRIDE);
        });
    }

    /// Products of the thread's queries with eight keys, four next to each other.
    fn scores(&self, k: &mut Builder, keys: Reg, place: [Reg; 3]) -> Vec<Vec<Reg>> {
        let scores: Vec<_> = (0..EACH).map(|_| k.filled(F32, 8, 0.0f32)).collect();
        let copy = self.columns(k, keys, place, KEYS, (self.stages, KEY_STRIDE * 4));
        let end = k.value(U32, self.dim());
        let first = k.fma(self.group, 16, self.tile);
        let sizes = [self.dim(), DEPTH];
        Self::stream(k, self.stages, &copy, end, sizes, |k, stage, before| {
            let queries = k.fma(before, QUERY_STRIDE, first);
            let keys = k.fma(self.lane, 16, stage);
            for step in 0..DEPTH {
                let at = step * QUERY_STRIDE;
                let column = fours(k, queries, at, EACH as usize, 0);
                let row = fours(k, keys, step * KEY_STRIDE * 4, 8, KEYS / 2 * 4);
                outer(k, &scores, &column, &row);
            }
        });
        scores
    }

    /// The thread's query `i`.
    fn query(&self, k: &mut Builder, i: u32) -> Reg {
        let row = k.fma(self.group, 4, self.part.first);
        k.offset(row, i)
    }

    /// Takes out scores of keys that do not exist or are not to be seen.
    fn mask(&self, k: &mut Builder, key: Reg, scores: &[Vec<Reg>]) {
        let masked = self.part.masked(k, key, KEYS);
        k.when(masked, |k| {
            let first = k.fma(self.lane, 4, key);
            for (i, scores) in (0..).zip(scores) {
                let query = self.query(k, i);
                let end = self.part.seen(k, query, 1);
                let end = k.max(end, first);
                let seen = k.sub(end, first);
                for (j, &score) in (0..).zip(scores) {
                    let hidden = k.le(seen, j % 4 + j / 4 * KEYS / 2);
                    k.guarded(hidden, true, |k| k.assign(score, f32::NEG_INFINITY));
                }
            }
        });
    }

    /// Turns scores into weights, in units of the largest score, and sums into the same units.
    fn weigh(&self, k: &mut Builder, state: &State, scores: &[Vec<Reg>]) {
        for (i, scores) in scores.iter().enumerate() {
            let max = k.value(F32, state.max[i]);
            for &score in scores {
                Combine::Max.apply(k, max, score);
            }
            let max = over_lanes(k, Combine::Max, max, LANES);
            let down = k.sub(state.max[i], max);
            let down = k.mul(down, self.unit);
            let rescale = k.ex2(down);
            k.assign(state.max[i], max);
            for &sum in state.sums[i].iter().chain([&state.total[i]]) {
                k.mul_assign(sum, rescale);
            }
            state::weigh(k, scores, [max, self.unit], state.total[i]);
        }
    }

    /// Stores weights by key. Groups change places by four keys, so that lanes write to different
    /// banks.
    fn share(&self, k: &mut Builder, weights: &[Vec<Reg>]) {
        let place = k.xor(self.group, self.lane);
        let to = k.fma(self.lane, 4 * WEIGHT_STRIDE, self.weights);
        let to = k.fma(place, 16, to);
        for j in 0..8 {
            let four: Vec<Reg> = weights.iter().map(|row| row[j as usize]).collect();
            let key = j % 4 + j / 4 * KEYS / 2;
            k.st_shared(F32, to, (key * WEIGHT_STRIDE) as i32, four.as_slice());
        }
    }

    /// Adds the products of weights with the tile's values.
    fn add(&self, k: &mut Builder, values: Reg, place: [Reg; 3], sums: &[Vec<Reg>]) {
        let copy = self.rows(k, values, place);
        let (end, sizes) = (self.part.end, [KEYS, PIECE / self.dim()]);
        Self::stream(k, self.stages, &copy, end, sizes, |k, stage, before| {
            let values = k.fma(self.lane, 16, stage);
            let weights = k.fma(before, WEIGHT_STRIDE, self.weights);
            let fourth = k.shr(before, 2);
            let turn = k.and(fourth, 7);
            for fourth in 0..sizes[1] / 4 {
                let turn = k.offset(turn, fourth);
                let place = k.xor(self.group, turn);
                let weights = k.fma(place, 16, weights);
                for key in 4 * fourth..4 * fourth + 4 {
                    let at = key * WEIGHT_STRIDE;
                    let column = fours(k, weights, at, EACH as usize, 0);
                    let row = fours(
                        k,
                        values,
                        key * self.dim() * 4,
                        self.dim() as usize / 8,
                        128,
                    );
                    outer(k, sums, &column, &row);
                }
            }
        });
    }

    fn store(&self, k: &mut Builder, o: Reg, state: &State) {
        let heads = &self.part.heads;
        for (i, sums) in (0..).zip(&state.sums) {
            let total = over_lanes(k, Combine::Sum, state.total[i as usize], LANES);
            let scale = k.rcp(total);
            let query = self.query(k, i);
            let exists = k.lt(query, heads.seq_q);
            let row = row_at(k, o, [heads.plane, heads.seq_q, query], self.dim() * 4);
            let at = k.at(row, self.lane, 16);
            let scaled: Vec<Reg> = sums.iter().map(|&sum| k.mul(sum, scale)).collect();
            k.when(exists, |k| {
                for (j, four) in scaled.chunks_exact(4).enumerate() {
                    k.st_global(F32, at, 128 * j as i32, four);
                }
            });
        }
    }
}
