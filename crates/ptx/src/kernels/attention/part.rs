//! Helpers for kernels with a tile of queries for each block: the visible keys, and scores in
//! tensor core fragments.

use super::state::{self, LOWEST};
use super::{AttentionKernel, Heads, row_at};
use crate::build::Builder;
use crate::inst::{Reg, Special};
use crate::kernel::{Extent, Launch};
use crate::kernels::Kernel;
use crate::kernels::common::{Combine, over_lanes};
use crate::kernels::fragments::rounded_pairs;
use crate::types::PtxType::{B32, F32};
use crate::types::Target;

/// A block's part of attention: some queries of one head.
pub(super) struct Part {
    pub(super) kernel: AttentionKernel,
    pub(super) heads: Heads,
    /// The first query, and the first key that none of the block's sees.
    pub(super) first: Reg,
    pub(super) end: Reg,
}

/// Begins a kernel whose blocks have `threads` threads and compute `queries` queries of one head. Returns the builder,
/// the pointers to the matrices, and the block's part.
pub(super) fn begin(
    kernel: AttentionKernel,
    target: Target,
    [threads, queries]: [u32; 2],
) -> (Builder, [Reg; 4], Part) {
    let mut launch = Launch::new(threads, grid(queries));
    launch.min_blocks = 2;
    let mut k = Builder::new(kernel.name(), target, launch);
    let matrices = ["q", "k", "v", "o"].map(|name| k.pointer(name, kernel.ty));
    let heads = Heads::declare(&mut k);
    let part = Part::new(&mut k, kernel, heads, queries);
    (k, matrices, part)
}

/// Returns the grid: for every head, blocks of `queries` queries.
pub(super) fn grid(queries: u32) -> [Extent; 3] {
    [
        Extent::Tiles("seq_q", queries),
        Extent::Param("heads"),
        Extent::Param("batch"),
    ]
}

impl Part {
    /// Returns the part of a block of `queries` queries; the blocks of a head are along x.
    pub(super) fn new(
        k: &mut Builder,
        kernel: AttentionKernel,
        heads: Heads,
        queries: u32,
    ) -> Self {
        // The last queries of a causal mask see the most keys: they come first.
        let (block, blocks) = (k.special(Special::CtaidX), k.special(Special::NctaidX));
        let last = k.sub(blocks, 1);
        let tile = k.sub(last, block);
        let first = k.mul(tile, queries);
        let mut part = Part {
            kernel,
            end: heads.seq_k,
            heads,
            first,
        };
        part.end = part.seen(k, first, queries);
        part
    }

    /// The first key that neither `query` nor `further − 1` ones after it see.
    pub(super) fn seen(&self, k: &mut Builder, query: Reg, further: u32) -> Reg {
        if !self.kernel.causal {
            return self.heads.seq_k;
        }
        let behind = k.sub(self.heads.seq_k, self.heads.seq_q);
        let last = k.add(query, behind);
        let end = k.add(last, further);
        k.min(end, self.heads.seq_k)
    }

    /// Returns whether some query of the block does not see all of the `keys` keys from `key` on.
    pub(super) fn masked(&self, k: &mut Builder, key: Reg, keys: u32) -> Reg {
        let after = k.add(key, keys);
        // The first query sees the fewest keys.
        let sees = self.seen(k, self.first, 1);
        k.gt(after, sees)
    }

    /// Returns the values rounded to the inputs' type, in pairs, as the left operand of a matmul.
    pub(super) fn rounded(&self, k: &mut Builder, values: &[Reg]) -> Vec<Reg> {
        rounded_pairs(k, self.kernel.ty, values)
    }
}

/// The state of a lane's two queries in a fragment of 16; they are eight apart. Of every eight scores of a query the
/// lane has columns `2t` and `2t + 1`: first those of the one query, then those of the other.
pub(super) struct Rows {
    /// The first query's number, and the first of the lane's columns in eight.
    row: Reg,
    col: Reg,
    /// log₂ e times the scale, by which scores become powers of 2.
    unit: Reg,
    /// The largest score so far, and this lane's part of the sum of weights.
    max: [Reg; 2],
    total: [Reg; 2],
}

impl Rows {
    /// Creates the state for the fragment that begins `first` queries after the block's first.
    pub(super) fn new(k: &mut Builder, part: &Part, lane: Reg, first: Reg) -> Self {
        let in_fragment = k.shr(lane, 2);
        let row = k.add(first, in_fragment);
        let row = k.add(row, part.first);
        let pair = k.and(lane, 3);
        Rows {
            row,
            col: k.mul(pair, 2),
            unit: k.mul(part.heads.scale, std::f32::consts::LOG2_E),
            max: [LOWEST; 2].map(|x| k.value(F32, x)),
            total: [0.0f32; 2].map(|x| k.value(F32, x)),
        }
    }

    /// Takes out scores of keys from `key` on that do not exist or are not to be seen.
    pub(super) fn mask(&self, k: &mut Builder, part: &Part, key: Reg, scores: &[Reg]) {
        let first = k.add(key, self.col);
        // How many columns each query sees, from the lane's first one on.
        let seen = [0, 8].map(|further| {
            let end = part.seen(k, self.row, further + 1);
            let end = k.max(end, first);
            k.sub(end, first)
        });
        for (i, &score) in scores.iter().enumerate() {
            let (block, half, odd) = (i / 4, i / 2 % 2, i % 2);
            let hidden = k.le(seen[half], 8 * block as u32 + odd as u32);
            k.guarded(hidden, true, |k| k.assign(score, f32::NEG_INFINITY));
        }
    }

    /// Turns scores into weights relative to the largest score. Returns the factors by which earlier sums must be
    /// multiplied.
    pub(super) fn weigh(&self, k: &mut Builder, scores: &[Reg]) -> [Reg; 2] {
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
            state::weigh(k, &mine, [max, self.unit], self.total[half]);
            rescale
        })
    }

    /// Multiplies sums by the factors that [`Rows::weigh`] returns.
    pub(super) fn rescale(k: &mut Builder, sums: &[Reg], by: [Reg; 2]) {
        for (i, &sum) in sums.iter().enumerate() {
            k.mul_assign(sum, by[i / 2 % 2]);
        }
    }

    /// Writes both queries' results.
    pub(super) fn store(&self, k: &mut Builder, part: &Part, o: Reg, sums: &[Reg]) {
        let (heads, bytes) = (&part.heads, part.kernel.dim * part.kernel.ty.bytes());
        for half in 0..2 {
            let total = over_lanes(k, Combine::Sum, self.total[half], 4);
            let scale = k.rcp(total);
            let row = k.offset(self.row, 8 * half as u32);
            let exists = k.lt(row, heads.seq_q);
            let row = row_at(k, o, [heads.plane, heads.seq_q, row], bytes);
            let at = k.at(row, self.col, part.kernel.ty.bytes());
            let mut scaled = Vec::new();
            for pair in sums.chunks_exact(4) {
                for &sum in &pair[2 * half..2 * half + 2] {
                    scaled.push(k.mul(sum, scale));
                }
            }
            let words = part.rounded(k, &scaled);
            k.when(exists, |k| {
                for (i, &word) in words.iter().enumerate() {
                    k.st_global(B32, at, 16 * i as i32, word);
                }
            });
        }
    }
}
