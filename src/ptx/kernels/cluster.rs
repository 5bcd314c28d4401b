//! Reductions over the blocks of a cluster, through each other's shared memory.

use super::common::{Combine, WARP, over_lanes};
use crate::ptx::build::Builder;
use crate::ptx::inst::{Op, Operand, Reg, Special};
use crate::ptx::types::PtxType::{F32, U32};
use std::cell::Cell;

/// Every warp writes its partial result into every block's shared memory, and after a barrier of the
/// cluster each adds up all of them. Blocks read their own memory only, so none has to stay for
/// another's sake.
///
/// Two arrays take turns, as in [`super::common::BlockReduce`].
pub(super) struct ClusterReduce {
    scratch: [Reg; 2],
    /// Where this warp's partial result goes in the block whose rank is the lane's number.
    to: [Reg; 2],
    /// Whether there is such a block.
    writes: Reg,
    lane: Reg,
    /// Partial results, a power of two.
    count: u32,
    turn: Cell<usize>,
}

impl ClusterReduce {
    /// For `blocks` of `threads` in a row, powers of two of at most 8 and 1024.
    pub(super) fn new(k: &mut Builder, threads: u32, blocks: u32) -> Self {
        // Before others' memory is written, they have to be there.
        k.act(Op::ClusterArrive, &[]);
        let count = threads / WARP * blocks;
        let scratch = ["reduced", "reduced_next"].map(|name| k.shared(name, F32, count));
        let thread = k.special(Special::TidX);
        let (lane, warp) = (k.and(thread, WARP - 1), k.shr(thread, 5));
        let rank = k.special(Special::ClusterCtaRank);
        let index = k.fma(rank, threads / WARP, warp);
        let writes = k.lt(lane, blocks);
        let block = k.and(lane, blocks - 1);
        let to = scratch.map(|array| {
            let mine = k.fma(index, 4, array);
            k.op(Op::Mapa, U32, U32, &[mine.into(), block.into()])
        });
        ClusterReduce {
            scratch,
            to,
            writes,
            lane,
            count,
            turn: Cell::new(0),
        }
    }

    /// The combination over the cluster, in every thread. Not for loops, in which one array would
    /// be its own successor.
    pub(super) fn all(&self, k: &mut Builder, combine: Combine, value: Reg) -> Reg {
        let partial = over_lanes(k, combine, value, WARP);
        let turn = self.turn.get();
        if turn == 0 {
            k.act(Op::ClusterWait, &[]);
        }
        self.turn.set(turn + 1);
        k.guarded(self.writes, true, |k| {
            let to = Operand::At(self.to[turn % 2], 0);
            k.emit(Op::StCluster, F32, &[], &[to, partial.into()]);
        });
        k.cluster_barrier();
        let lanes = self.count.min(WARP);
        let index = k.and(self.lane, lanes - 1);
        let from = k.fma(index, 4, self.scratch[turn % 2]);
        let total = k.ld_shared(F32, from, 0);
        for part in 1..self.count / lanes {
            let other = k.ld_shared(F32, from, (part * WARP * 4) as i32);
            combine.apply(k, total, other);
        }
        over_lanes(k, combine, total, lanes)
    }
}
