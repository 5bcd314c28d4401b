//! Attention to the positions that a cache of keys and values holds.

mod cache;
mod mma;

use super::heads::{CachedRows, MOST_HEAD};
use super::soft_cap::soft_cap;
use crate::build::Builder;
use crate::error::Result;
use crate::inst::{Op, Reg, Special};
use crate::kernel::{Extent, Launch, PtxKernel};
use crate::kernels::Kernel;
use crate::kernels::common::{BlockReduce, Combine};
use crate::types::PtxType::{F32, U32};
use crate::types::Target;
use cache::Cache;
use std::f32::consts::LOG2_E;

/// The number of threads of a block, and of positions of a round.
const THREADS: u32 = 256;

/// The number of vectors of four words that a thread loads before it computes with them.
const AT_ONCE: u32 = 4;

/// Below every score, but not infinite, so that differences are numbers.
const LOWEST: f32 = -3e38;

/// Causal attention of tokens to the keys and values that a cache holds, those of the tokens among them. A block
/// computes a head of a token with a running maximum and sum (Milakov and Gimelshein, 2018).
///
/// Parameters: `queries` (f32, `tokens × heads × head_len`), `cached` (the keys and then the values, each `kv_heads ×
/// capacity × head_len`), `mixed` (f32, like `queries`), `tokens` (at most 65,535), `heads`, `kv_heads`, `head_len` (a
/// multiple of 4 up to 256), `position` (of the first token), `capacity` (the positions that there is room for, at least as
/// many as any token sees and there are tokens; the row of a position is its remainder), `window` (the positions that a
/// token sees, or 0 for all) (u32), `scale` (of the scores), `soft_cap` (the bound `c` of scores that become `c · tanh(score /
/// c)`, or 0 for none) (f32). All are aligned to 16 bytes. Kernels for
/// [splits](CachedAttentionKernel::split) have further ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct CachedAttentionKernel {
    cached: CachedRows,
    /// The length of a head, of kernels for tensor cores.
    mma: Option<u32>,
    split: bool,
}

impl CachedAttentionKernel {
    /// The lengths of heads that [`CachedAttentionKernel::mma`] takes.
    pub const MMA_HEADS: [u32; 6] = [32, 64, 96, 128, 192, 256];

    /// Creates a kernel for a cache of f32.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a kernel for many tokens and a cache of f32, on the tensor cores of Ampere and later GPUs (`sm_80`), with 64
    /// tokens to a block. `head_len` is one of [`CachedAttentionKernel::MMA_HEADS`], and the parameter of this name must
    /// be equal to it. Tensor cores multiply numbers as sums of two bf16, so the relative error of a product is at most
    /// 2⁻¹⁶. A token that sees a key that is not finite gives NaN; one that sees a value with an element
    /// that is not finite gives NaN there, and maybe elsewhere in the head.
    pub fn mma(head_len: u32) -> Self {
        Self {
            mma: Some(head_len),
            ..Self::default()
        }
    }

    /// Creates a kernel for few tokens of many positions and a cache of f32, whose blocks share the positions of a head.
    /// [`DecodeSumKernel`](crate::kernels::DecodeSumKernel) computes the results from its output.
    ///
    /// In place of `mixed` it has `sums` (f32, `tokens × heads × splits × head_len`) and `stats` (f32, `tokens × heads ×
    /// splits × 2`: the largest score, in units of ln 2, and the sum of weights relative to it), and at the end `splits`
    /// (u32, at most 65,535).
    pub fn split() -> Self {
        Self {
            split: true,
            ..Self::default()
        }
    }

    /// Reads words of two f16, as [`PlaceHeadsKernel::packed`](super::PlaceHeadsKernel::packed) writes them. The length
    /// of a head must be a multiple of 8.
    #[must_use]
    pub fn packed(self) -> Self {
        let cached = CachedRows::F16;
        Self { cached, ..self }
    }

    /// Reads integers and scales, as [`PlaceHeadsKernel::quantized`](super::PlaceHeadsKernel::quantized) writes them. The
    /// length of a head must be a multiple of 16.
    #[must_use]
    pub fn quantized(self) -> Self {
        let cached = CachedRows::Q8;
        Self { cached, ..self }
    }
}

impl Kernel for CachedAttentionKernel {
    fn first_target(&self) -> Target {
        match self.mma {
            None => Target::Sm70,
            Some(_) => Target::Sm80,
        }
    }

    fn name(&self) -> String {
        let split = if self.split { "_split" } else { "" };
        let name = format!("attend{split}{}", self.cached.suffix());
        match self.mma {
            None => name,
            Some(len) => format!("{name}_mma_{len}"),
        }
    }

    fn generate(&self, target: Target) -> Result<PtxKernel> {
        if let Some(len) = self.mma {
            return mma::build(*self, len, target);
        }
        let grid = [
            Extent::Param("heads"),
            Extent::Param("tokens"),
            if self.split {
                Extent::Param("splits")
            } else {
                Extent::Fixed(1)
            },
        ];
        let launch = Launch::new(THREADS, grid).overlapping(target);
        let mut k = Builder::new(self.name(), target, launch);
        let block = Block::declare(&mut k, *self);
        k.wait_for_grid();
        block.load_query(&mut k);
        let [start, end] = block.range(&mut k);
        let running = Running::new(&mut k);
        k.for_range(start, end, THREADS, |k, first| {
            block.round(k, &running, [first, end]);
        });
        block.store(&mut k, &running);
        k.finish()
    }
}

/// The parameters of all kernels.
struct Params {
    rows: CachedRows,
    queries: Reg,
    cached: Reg,
    /// Means of values, or their sums for each split.
    mixed: Reg,
    split: Option<Split>,
    tokens: Reg,
    heads: Reg,
    kv_heads: Reg,
    head_len: Reg,
    position: Reg,
    capacity: Reg,
    window: Reg,
    scale: Reg,
    soft_cap: Reg,
}

/// A block's part of the positions of a head.
struct Split {
    stats: Reg,
    /// The splits of a head, and the number of this one.
    count: Reg,
    number: Reg,
}

impl Params {
    fn declare(k: &mut Builder, kernel: CachedAttentionKernel) -> Self {
        let mixed = if kernel.split { "sums" } else { "mixed" };
        let [queries, cached, mixed] =
            ["queries", "cached", mixed].map(|name| k.pointer(name, F32));
        let stats = kernel.split.then(|| k.pointer("stats", F32));
        let mut scalar = |name| k.scalar(name, U32);
        Self {
            rows: kernel.cached,
            queries,
            cached,
            mixed,
            tokens: scalar("tokens"),
            heads: scalar("heads"),
            kv_heads: scalar("kv_heads"),
            head_len: scalar("head_len"),
            position: scalar("position"),
            capacity: scalar("capacity"),
            window: scalar("window"),
            scale: k.scalar("scale", F32),
            soft_cap: k.scalar("soft_cap", F32),
            split: stats.map(|stats| Split {
                stats,
                count: k.scalar("splits", U32),
                number: k.special(Special::CtaidZ),
            }),
        }
    }

    /// The first position that the token at a position sees.
    fn first_seen(&self, k: &mut Builder, position: Reg) -> Reg {
        let end = k.add(position, 1);
        let before = k.sub(end, self.window);
        let has_window = k.ne(self.window, 0);
        let beyond = k.gt(end, self.window);
        let cut = k.and(has_window, beyond);
        k.select(cut, before, 0u32)
    }
}

impl Split {
    fn store_stats(&self, k: &mut Builder, row: Reg, running: &Running) {
        let to = k.at(self.stats, row, 8);
        let highest = k.mul(running.highest, LOG2_E);
        // That of no positions stays finite.
        let highest = k.max(highest, f32::MIN);
        k.st_global(F32, to, 0, [highest, running.total].as_slice());
    }
}

/// A head of a token.
struct Block {
    params: Params,
    /// The index of the head in queries and results.
    index: Reg,
    /// The position of the token.
    position: Reg,
    cache: Cache,
    thread: Reg,
    /// In the sum of values a thread adds vector `vector` of the head, four elements, of every `sharing`-th position
    /// from `share` on, if its share is one.
    vectors: Reg,
    vector: Reg,
    share: Reg,
    sharing: Reg,
    /// The query, a round's weights and the threads' sums, in shared memory.
    query: Reg,
    weights: Reg,
    parts: Reg,
    reduce: BlockReduce,
}

/// The largest score so far, and the sums of weights and of values relative to it.
struct Running {
    highest: Reg,
    total: Reg,
    sums: Vec<Reg>,
}

impl Running {
    fn new(k: &mut Builder) -> Self {
        Self {
            highest: k.value(F32, LOWEST),
            total: k.value(F32, 0.0f32),
            sums: k.filled(F32, 4, 0.0f32),
        }
    }
}

impl Block {
    fn declare(k: &mut Builder, kernel: CachedAttentionKernel) -> Self {
        let params = Params::declare(k, kernel);
        let (head, token) = (k.special(Special::CtaidX), k.special(Special::CtaidY));
        let thread = k.special(Special::TidX);
        let vectors = k.shr(params.head_len, 2);
        let threads = k.value(U32, THREADS);
        Self {
            index: k.fma(token, params.heads, head),
            position: k.add(params.position, token),
            cache: Cache::new(k, &params, head),
            params,
            thread,
            vectors,
            vector: k.rem(thread, vectors),
            share: k.div(thread, vectors),
            sharing: k.div(threads, vectors),
            query: k.shared("query", F32, MOST_HEAD),
            weights: k.shared("weights", F32, THREADS),
            parts: k.shared("parts", F32, 4 * THREADS),
            reduce: BlockReduce::new(k, THREADS, true),
        }
    }

    fn load_query(&self, k: &mut Builder) {
        let zero = k.value(U32, 0);
        let len = self.params.head_len;
        let own = k.at_2d(self.params.queries, self.index, len, zero, 4);
        k.for_range(self.thread, len, THREADS, |k, i| {
            let at = k.at(own, i, 4);
            let value = k.ld(Op::LdGlobal, F32, at, 0);
            let value = k.mul(value, self.params.scale);
            let at = k.fma(i, 4, self.query);
            k.st_shared(F32, at, 0, value);
        });
        k.barrier();
    }

    /// The positions that the block goes through, from the first one to the end, counted from the first row of the ring on.
    fn range(&self, k: &mut Builder) -> [Reg; 2] {
        let start = self.params.first_seen(k, self.position);
        let end = k.add(self.position, 1);
        let count = k.sub(end, start);
        let start = k.rem(start, self.params.capacity);
        let Some(split) = &self.params.split else {
            return [start, k.add(start, count)];
        };
        // Splits have whole rounds, but for the last one with any.
        let up = k.add(count, THREADS - 1);
        let rounds = k.shr(up, THREADS.trailing_zeros());
        let up = k.add(rounds, split.count);
        let up = k.sub(up, 1);
        let each = k.div(up, split.count);
        let each = k.mul(each, THREADS);
        let before = k.mul(split.number, each);
        let before = k.min(before, count);
        let rest = k.sub(count, before);
        let count = k.min(rest, each);
        let start = k.add(start, before);
        [start, k.add(start, count)]
    }

    /// Adds the positions from `first` on, a thread's score each.
    fn round(&self, k: &mut Builder, running: &Running, [first, end]: [Reg; 2]) {
        let row = k.add(first, self.thread);
        let exists = k.lt(row, end);
        let score = k.value(F32, LOWEST);
        let has_cap = k.gt(self.params.soft_cap, 0.0f32);
        k.when(exists, |k| {
            self.cache.score(k, row, self.query, score);
            k.when(has_cap, |k| soft_cap(k, score, self.params.soft_cap));
        });
        let most = self.reduce.all(k, Combine::Max, score);
        let above = k.max(running.highest, most);
        let down = k.sub(score, above);
        let weight = k.exp(down);
        let weight = k.select(exists, weight, 0.0f32);
        let down = k.sub(running.highest, above);
        let correction = k.exp(down);
        k.assign(running.highest, above);
        let own = k.fma(self.thread, 4, self.weights);
        k.st_shared(F32, own, 0, weight);
        let more = self.reduce.all(k, Combine::Sum, weight);
        k.mul_assign(running.total, correction);
        k.add_assign(running.total, more);
        for &sum in &running.sums {
            k.mul_assign(sum, correction);
        }
        let rest = k.sub(end, first);
        let count = k.min(rest, THREADS);
        let adds = k.lt(self.share, self.sharing);
        k.when(adds, |k| self.add_values(k, running, first, count));
        // All have read the weights.
        k.barrier();
    }

    /// Adds the thread's share of a round's `count` values.
    fn add_values(&self, k: &mut Builder, running: &Running, first: Reg, count: Reg) {
        let i = k.value(U32, self.share);
        for at_once in [AT_ONCE, 1] {
            // The first position from which on there are not as many.
            let beyond = k.mul(self.sharing, at_once - 1);
            let end = k.sub(count, beyond);
            let enough = k.ge(count, beyond);
            let end = k.select(enough, end, 0u32);
            let step = k.mul(self.sharing, at_once);
            k.count_up(i, end, step, |k| {
                let at = k.value(U32, i);
                let pair = |_| {
                    let weight = k.fma(at, 4, self.weights);
                    let weight = k.ld_shared(F32, weight, 0);
                    let row = k.add(first, at);
                    k.add_assign(at, self.sharing);
                    (weight, self.cache.value(k, row, self.vector))
                };
                let pairs: Vec<(Reg, Vec<Reg>)> = (0..at_once).map(pair).collect();
                for (weight, values) in pairs {
                    for (&sum, value) in running.sums.iter().zip(values) {
                        k.fma_assign(sum, weight, value);
                    }
                }
            });
        }
    }

    /// Adds up the threads' sums, and stores the mean of values or the partial result of a split.
    fn store(&self, k: &mut Builder, running: &Running) {
        let sums = &running.sums;
        let at = k.fma(self.thread, 16, self.parts);
        k.st_shared(F32, at, 0, sums.as_slice());
        k.barrier();
        let writes = k.lt(self.thread, self.vectors);
        k.when(writes, |k| {
            k.for_range(1, self.sharing, 1, |k, share| {
                let part = k.fma(share, self.vectors, self.thread);
                let part = k.fma(part, 16, self.parts);
                let part = k.ld_vector(Op::LdShared, F32, 4, part, 0);
                for (&sum, more) in sums.iter().zip(part) {
                    k.add_assign(sum, more);
                }
            });
            let column = k.mul(self.thread, 4);
            let params = &self.params;
            if let Some(split) = &params.split {
                let row = k.fma(self.index, split.count, split.number);
                let to = k.at_2d(params.mixed, row, params.head_len, column, 4);
                k.st_global(F32, to, 0, sums.as_slice());
                let first = k.eq(self.thread, 0);
                k.when(first, |k| split.store_stats(k, row, running));
            } else {
                let means: Vec<Reg> = sums.iter().map(|&sum| k.div(sum, running.total)).collect();
                let to = k.at_2d(params.mixed, self.index, params.head_len, column, 4);
                k.st_global(F32, to, 0, means.as_slice());
            }
        });
    }
}
