//! Reductions over the blocks of a cluster, through each other's shared memory.

use super::common::{Combine, Turns, WARP, over_lanes};
use super::rows::RowLayout;
use crate::ptx::build::Builder;
use crate::ptx::inst::{Op, Operand, Reg, Special};
use crate::ptx::types::PtxType::{F32, U32};

/// Every warp writes its partial result into every block's shared memory, and after a barrier of the
/// cluster each adds up all of them. Blocks read their own memory only, so none has to stay for
/// another's sake. As in [`super::common::BlockReduce`] two arrays take turns.
pub(super) struct ClusterReduce {
    /// Where this warp writes in the block whose rank is the lane's number, and where this lane reads.
    to: Turns,
    from: Turns,
    /// Whether there is such a block.
    writes: Reg,
    /// Partial results, a power of two.
    count: u32,
}

impl ClusterReduce {
    /// For the clusters of a layout.
    pub(super) fn new(k: &mut Builder, layout: RowLayout) -> Self {
        let RowLayout {
            threads,
            blocks,
            ahead,
            ..
        } = layout;
        let count = threads / WARP * blocks;
        let scratch = ["reduced", "reduced_next"].map(|name| k.shared(name, F32, count));
        let thread = k.special(Special::TidX);
        let (lane, warp) = (k.and(thread, WARP - 1), k.shr(thread, 5));
        let rank = k.special(Special::ClusterCtaRank);
        let index = k.fma(rank, threads / WARP, warp);
        let block = k.and(lane, blocks - 1);
        let to = scratch.map(|array| {
            let mine = k.fma(index, 4, array);
            k.op(Op::Mapa, U32, U32, &[mine.into(), block.into()])
        });
        let index = k.and(lane, count.min(WARP) - 1);
        let from = scratch.map(|array| k.fma(index, 4, array));
        // Before others' memory is written, they have to be there.
        k.cluster_barrier();
        ClusterReduce {
            to: Turns::new(k, to, ahead),
            from: Turns::new(k, from, ahead),
            writes: k.lt(lane, blocks),
            count,
        }
    }

    /// The combination over the cluster, in every thread.
    pub(super) fn all(&self, k: &mut Builder, combine: Combine, value: Reg) -> Reg {
        let partial = over_lanes(k, combine, value, WARP);
        let to = self.to.take(k);
        k.guarded(self.writes, true, |k| {
            let to = Operand::At(to, 0);
            k.emit(Op::StCluster, F32, &[], &[to, partial.into()]);
        });
        k.cluster_barrier();
        let from = self.from.take(k);
        let lanes = self.count.min(WARP);
        let total = k.ld_shared(F32, from, 0);
        for part in 1..self.count / lanes {
            let other = k.ld_shared(F32, from, (part * WARP * 4) as i32);
            combine.apply(k, total, other);
        }
        over_lanes(k, combine, total, lanes)
    }
}
