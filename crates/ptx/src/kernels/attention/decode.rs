//! Attention of one query for each sequence over a cache of keys and values, as in text generation.
//! It is limited by memory bandwidth.
//!
//! With few queries most of a GPU is idle unless the keys are split (flash decoding; Dao et al.,
//! 2023): a block processes a part of the keys, for a group of heads that share them. A lane loads
//! 16 bytes of a row, and the lanes of a row form a *team*, which processes its keys with a running
//! maximum and sum. Teams and warps are combined at the end, and parts by a second kernel.

use super::state::{LANE, State, numbers, together};
use crate::build::Builder;
use crate::error::{Error, Result};
use crate::inst::{Op, Operand, Reg, Special};
use crate::kernel::{Extent, Launch, PtxKernel};
use crate::kernels::Kernel;
use crate::kernels::common::{Combine, WARP, over_lanes};
use crate::types::PtxType::{self, B32, BF16, F16, F32, U32, U64};
use crate::types::Target;

const WARPS: u32 = 4;
/// The number of keys that a team loads at the same time.
const KEYS: u32 = 4;

/// Attention of one query for each sequence over a part of the keys.
/// [`DecodeSumKernel`](super::DecodeSumKernel) combines the parts.
///
/// Parameters: `q` (`batch × heads × dim`), `k`, `v` (`batch × kv_heads × capacity × dim`), all of the
/// kernel's type and aligned to 16 bytes; `sums` (f32, `batch × heads × splits × dim`), `stats` (f32,
/// `batch × heads × splits × 2`: the largest score, in units of ln 2, and the sum of weights relative to
/// it); `lengths` (u32, for each sequence how many keys count, at least 1); `batch`, `heads`, `kv_heads`,
/// `capacity`, `splits` (u32), `scale` (f32). `heads / kv_heads` is a multiple of the group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DecodeAttentionKernel {
    ty: PtxType,
    dim: u32,
    group: u32,
}

impl DecodeAttentionKernel {
    /// Creates a kernel for bf16 or f16 and `dim` 64, 128 or 256. A block processes `group` query
    /// heads (1, 2 or 4) that share keys.
    pub fn new(ty: PtxType, dim: u32, group: u32) -> Self {
        DecodeAttentionKernel { ty, dim, group }
    }

    fn check(self) -> Result<()> {
        let wrong = |what, value: String, requirement: &'static str| {
            Err(Error::invalid(what, value, requirement))
        };
        if !matches!(self.ty, F16 | BF16) {
            return wrong("type", self.ty.to_string(), "f16 or bf16");
        }
        if !matches!(self.dim, 64 | 128 | 256) {
            return wrong("dim", self.dim.to_string(), "64, 128 or 256");
        }
        if !matches!(self.group, 1 | 2 | 4) {
            return wrong("group", self.group.to_string(), "1, 2 or 4");
        }
        Ok(())
    }

    /// Lanes of a team.
    fn team(self) -> u32 {
        self.dim / LANE
    }
}

impl Kernel for DecodeAttentionKernel {
    fn name(&self) -> String {
        format!("attention_decode_{}_{}_{}", self.ty, self.dim, self.group)
    }

    fn generate(&self, target: Target) -> Result<PtxKernel> {
        self.check()?;
        let grid = [
            Extent::Param("splits"),
            Extent::Tiles("heads", self.group),
            Extent::Param("batch"),
        ];
        let mut launch = Launch::new(WARPS * WARP, grid).overlapping(target);
        launch.min_blocks = 4;
        let mut k = Builder::new(self.name(), target, launch);
        let [q, keys, values] = ["q", "k", "v"].map(|name| k.pointer(name, self.ty));
        let [sums, stats] = ["sums", "stats"].map(|name| k.pointer(name, F32));
        let lengths = k.pointer("lengths", U32);
        let _ = k.scalar("batch", U32);
        let place = Place::declare(&mut k, *self);
        let scale = k.scalar("scale", F32);
        k.wait_for_grid();
        let range = place.range(&mut k, lengths);
        let queries = place.queries(&mut k, q, scale);
        let states: Vec<State> = (0..self.group).map(|_| State::new(&mut k)).collect();
        let [keys, values] = [keys, values].map(|base| place.rows(&mut k, base));
        let step = WARPS * KEYS * WARP / self.team();
        // Keys are asked for a round ahead, values while their keys are multiplied.
        let next: Vec<Vec<Reg>> = (0..KEYS).map(|_| k.regs(B32, 4)).collect();
        place.load(&mut k, &next, keys, range.first, range.last);
        k.for_range(range.first, range.end, step, |k, first| {
            let of_values: Vec<Vec<Reg>> = (0..KEYS).map(|_| k.regs(B32, 4)).collect();
            place.load(k, &of_values, values, first, range.last);
            let own: Vec<Vec<Reg>> = next.iter().map(|key| numbers(k, self.ty, key)).collect();
            let scores: Vec<Vec<Reg>> = queries
                .iter()
                .map(|query| place.scores(k, query, &own, first, range.end))
                .collect();
            let following = k.add(first, step);
            place.load(k, &next, keys, following, range.last);
            let values = of_values.iter().map(|value| numbers(k, self.ty, value));
            let values: Vec<Vec<Reg>> = values.collect();
            for (state, scores) in states.iter().zip(&scores) {
                state.add(k, scores, &values);
            }
        });
        place.finish(&mut k, &states, [sums, stats]);
        k.finish()
    }
}

/// The position of this thread and its block.
struct Place {
    kernel: DecodeAttentionKernel,
    thread: Reg,
    warp: Reg,
    /// The team's number in the warp, and the lane's in the team.
    team: Reg,
    lane: Reg,
    split: Reg,
    splits: Reg,
    batch: Reg,
    /// The index of the block's first query head.
    head: Reg,
    kv_head: Reg,
    capacity: Reg,
}

/// The keys of a warp: its first key, the end of the block's keys, and the last key of all.
struct Range {
    first: Reg,
    end: Reg,
    last: Reg,
}

impl Place {
    fn declare(k: &mut Builder, kernel: DecodeAttentionKernel) -> Self {
        let (heads, kv_heads) = (k.scalar("heads", U32), k.scalar("kv_heads", U32));
        let (capacity, splits) = (k.scalar("capacity", U32), k.scalar("splits", U32));
        let thread = k.special(Special::TidX);
        let in_warp = k.and(thread, WARP - 1);
        let (group, batch) = (k.special(Special::CtaidY), k.special(Special::CtaidZ));
        let head = k.mul(group, kernel.group);
        let sharing = k.div(heads, kv_heads);
        let kv_head = k.div(head, sharing);
        Place {
            kernel,
            thread,
            warp: k.shr(thread, 5),
            team: k.shr(in_warp, kernel.team().trailing_zeros()),
            lane: k.and(in_warp, kernel.team() - 1),
            split: k.special(Special::CtaidX),
            splits,
            batch,
            head: k.fma(batch, heads, head),
            kv_head: k.fma(batch, kv_heads, kv_head),
            capacity,
        }
    }

    fn range(&self, k: &mut Builder, lengths: Reg) -> Range {
        let at = k.at(lengths, self.batch, 4);
        let length = k.ld_global(U32, at, 0);
        let up = k.add(length, self.splits);
        let up = k.sub(up, 1);
        let part = k.div(up, self.splits);
        let first = k.mul(self.split, part);
        let end = k.add(first, part);
        let own = k.fma(self.warp, KEYS * WARP / self.kernel.team(), first);
        Range {
            first: own,
            end: k.min(end, length),
            last: k.sub(length, 1),
        }
    }

    /// The lane's values of the block's queries, times `scale` and log₂ e.
    fn queries(&self, k: &mut Builder, q: Reg, scale: Reg) -> Vec<Vec<Reg>> {
        let scale = k.mul(scale, std::f32::consts::LOG2_E);
        let query = |i| {
            let head = k.offset(self.head, i);
            let row = k.at(q, head, self.kernel.dim * 2);
            let at = k.at(row, self.lane, LANE * 2);
            let words = k.ld_vector(Op::LdGlobalNc, B32, 4, at, 0);
            let values = numbers(k, self.kernel.ty, &words);
            values.into_iter().map(|x| k.mul(x, scale)).collect()
        };
        (0..self.kernel.group).map(query).collect()
    }

    /// The lane's place in the first of the cache's rows.
    fn rows(&self, k: &mut Builder, base: Reg) -> Reg {
        let from = [self.kv_head.into(), self.capacity.into()];
        let rows = k.op(Op::MulWide, U32, U64, &from);
        let at = k.fma(rows, i64::from(self.kernel.dim * 2), base);
        k.at(at, self.lane, LANE * 2)
    }

    /// Loads the team's share of the keys, or values, from `first` on. Rows after the last one repeat the last one.
    fn load(&self, k: &mut Builder, to: &[Vec<Reg>], rows: Reg, first: Reg, last: Reg) {
        let first = k.add(first, self.team);
        for (i, to) in to.iter().enumerate() {
            let row = k.offset(first, i as u32 * WARP / self.kernel.team());
            let row = k.min(row, last);
            let at = k.at(rows, row, self.kernel.dim * 2);
            let to = [to.as_slice().into()];
            k.emit(Op::LdGlobalNc, B32, &to, &[Operand::At(at, 0)]);
        }
    }

    /// The scores of a query, −∞ from `end` on.
    fn scores(
        &self,
        k: &mut Builder,
        query: &[Reg],
        keys: &[Vec<Reg>],
        first: Reg,
        end: Reg,
    ) -> Vec<Reg> {
        let team = self.kernel.team();
        let first = k.add(first, self.team);
        let score = |(i, key): (usize, &Vec<Reg>)| {
            let sum = k.value(F32, 0.0f32);
            for (&q, &key) in query.iter().zip(key) {
                k.fma_assign(sum, q, key);
            }
            let sum = over_lanes(k, Combine::Sum, sum, team);
            let row = k.offset(first, i as u32 * WARP / team);
            let exists = k.lt(row, end);
            k.select(exists, sum, f32::NEG_INFINITY)
        };
        keys.iter().enumerate().map(score).collect()
    }

    /// Combines the results of teams, then those of warps, and stores the result.
    fn finish(&self, k: &mut Builder, states: &[State], [sums, stats]: [Reg; 2]) {
        let (dim, group) = (self.kernel.dim, self.kernel.group);
        let shared_sums = k.shared("sums_of_warps", F32, group * WARPS * dim);
        let shared_stats = k.shared("stats_of_warps", F32, group * WARPS * 2);
        let first_team = k.eq(self.team, 0);
        let first = k.eq(self.lane, 0);
        let first = k.and(first, first_team);
        for (i, state) in states.iter().enumerate() {
            let whole = state.over_teams(k, self.kernel.team());
            let index = k.offset(self.warp, i as u32 * WARPS);
            let row = k.fma(index, dim * 4, shared_sums);
            let row = k.fma(self.lane, LANE * 4, row);
            let stat = k.fma(index, 8, shared_stats);
            k.guarded(first_team, true, |k| {
                for (half, sums) in whole.sums.chunks(4).enumerate() {
                    k.st_shared(F32, row, 16 * half as i32, sums);
                }
            });
            k.guarded(first, true, |k| {
                k.st_shared(F32, stat, 0, [whole.max, whole.sum].as_slice());
            });
        }
        k.barrier();
        for i in 0..group {
            let stat = k.add(shared_stats, i * WARPS * 8);
            let row = k.add(shared_sums, i * WARPS * dim * 4);
            self.store(k, i, [row, stat], [sums, stats]);
        }
    }

    /// Adds up a head's warps; each thread has every 128th value.
    fn store(&self, k: &mut Builder, i: u32, [row, stat]: [Reg; 2], [sums, stats]: [Reg; 2]) {
        let parts: Vec<[Reg; 2]> = (0..WARPS as i32)
            .map(|warp| {
                let pair = k.ld_vector(Op::LdShared, F32, 2, stat, 8 * warp);
                [pair[0], pair[1]]
            })
            .collect();
        let (max, sum, weights) = together(k, &parts);
        let head = k.offset(self.head, i);
        let part = k.fma(head, self.splits, self.split);
        let dim = self.kernel.dim;
        let col = k.value(U32, self.thread);
        k.for_range(col, dim, WARPS * WARP, |k, col| {
            let from = k.fma(col, 4, row);
            let total = k.value(F32, 0.0f32);
            for (warp, &weight) in weights.iter().enumerate() {
                let value = k.ld_shared(F32, from, (warp as u32 * dim * 4) as i32);
                k.fma_assign(total, weight, value);
            }
            let to = k.at(sums, part, dim * 4);
            let to = k.at(to, col, 4);
            k.st_global(F32, to, 0, total);
        });
        let first = k.eq(self.thread, 0);
        k.when(first, |k| {
            let to = k.at(stats, part, 8);
            k.st_global(F32, to, 0, [max, sum].as_slice());
        });
    }
}
