//! Reductions over the blocks of a cluster, through distributed shared memory.

use super::common::{AlternatingArrays, Combine, WARP, over_lanes};
use super::rows::RowLayout;
use crate::build::Builder;
use crate::inst::{Op, Operand, Reg, Special};
use crate::types::PtxType::{F32, U32};

/// A reduction over a cluster. Every warp writes its partial result to every block's shared memory,
/// and after a cluster barrier each warp combines all of them. Blocks read only their own memory,
/// so none has to stay alive for another. Two arrays alternate, as in
/// [`super::common::BlockReduce`].
pub(super) struct ClusterReduce {
    /// The addresses that this warp writes, in the block whose rank is the lane's index.
    to: AlternatingArrays,
    from: AlternatingArrays,
    /// Whether the block with that rank exists.
    writes: Reg,
    /// The number of partial results, a power of two.
    count: u32,
    numbers: u32,
}

impl ClusterReduce {
    /// Declares the arrays for the clusters of a layout, and partial results of up to `numbers`
    /// numbers: 1, 2 or 4.
    pub(super) fn new(k: &mut Builder, layout: RowLayout, numbers: u32) -> Self {
        let RowLayout {
            threads,
            blocks,
            ahead,
            ..
        } = layout;
        let count = threads / WARP * blocks;
        let scratch = ["reduced", "reduced_next"].map(|name| k.shared(name, F32, count * numbers));
        let thread = k.special(Special::TidX);
        let (lane, warp) = (k.and(thread, WARP - 1), k.shr(thread, 5));
        let rank = k.special(Special::ClusterCtaRank);
        let index = k.fma(rank, threads / WARP, warp);
        let block = k.and(lane, blocks - 1);
        let to = scratch.map(|array| {
            let mine = k.fma(index, 4 * numbers, array);
            k.op(Op::Mapa, U32, U32, &[mine.into(), block.into()])
        });
        let index = k.and(lane, count.min(WARP) - 1);
        let from = scratch.map(|array| k.fma(index, 4 * numbers, array));
        // Other blocks must have started before their memory is written.
        k.cluster_barrier();
        ClusterReduce {
            to: AlternatingArrays::new(k, to, ahead),
            from: AlternatingArrays::new(k, from, ahead),
            writes: k.lt(lane, blocks),
            count,
            numbers,
        }
    }

    /// Combines a value over the cluster; every thread gets the result.
    pub(super) fn all(&self, k: &mut Builder, combine: Combine, value: Reg) -> Reg {
        let partial = over_lanes(k, combine, value, WARP);
        let partials = self.exchange(k, &[partial]);
        let total = partials[0][0];
        for other in &partials[1..] {
            combine.apply(k, total, other[0]);
        }
        self.over_partials(k, combine, total)
    }

    /// Gives every warp the numbers of all warps, distributed over its lanes.
    pub(super) fn exchange(&self, k: &mut Builder, numbers: &[Reg]) -> Vec<Vec<Reg>> {
        let to = self.to.take(k);
        let operand = match numbers {
            [one] => (*one).into(),
            many => Operand::from(many),
        };
        k.guarded(self.writes, true, |k| {
            k.emit(Op::StCluster, F32, &[], &[Operand::At(to, 0), operand]);
        });
        k.cluster_barrier();
        let from = self.from.take(k);
        let each = 4 * self.numbers * WARP;
        (0..self.count.div_ceil(WARP))
            .map(|part| match numbers.len() {
                1 => vec![k.ld_shared(F32, from, (part * each) as i32)],
                count => k.ld_vector(Op::LdShared, F32, count, from, (part * each) as i32),
            })
            .collect()
    }

    /// Combines values that lanes computed from exchanged numbers; every lane gets the result.
    pub(super) fn over_partials(&self, k: &mut Builder, combine: Combine, value: Reg) -> Reg {
        over_lanes(k, combine, value, self.count.min(WARP))
    }
}
