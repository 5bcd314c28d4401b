//! What kernels share: thread numbers, and reductions over a warp or a block.

use crate::ptx::build::Builder;
use crate::ptx::inst::{Op, Reg, Special};
use crate::ptx::kernel::Extent;
use crate::ptx::types::PtxType::{F32, U32};
use std::cell::Cell;

/// Threads of a warp.
pub(super) const WARP: u32 = 32;

/// A grid of one dimension.
pub(super) fn along_x(extent: Extent) -> [Extent; 3] {
    [extent, Extent::Fixed(1), Extent::Fixed(1)]
}

/// How partial results are put together.
#[derive(Clone, Copy)]
pub(super) enum Combine {
    Sum,
    /// The larger number, and the smaller one, that is not NaN.
    Max,
    Min,
    /// The same, but NaN where any is.
    Maximum,
    Minimum,
}

impl Combine {
    pub(super) fn neutral(self) -> f32 {
        match self {
            Combine::Sum => 0.0,
            Combine::Max | Combine::Maximum => f32::NEG_INFINITY,
            Combine::Min | Combine::Minimum => f32::INFINITY,
        }
    }

    pub(super) fn apply(self, k: &mut Builder, to: Reg, value: Reg) {
        let op = match self {
            Combine::Sum => Op::AddRn,
            Combine::Max => Op::Max,
            Combine::Min => Op::Min,
            Combine::Maximum | Combine::Minimum => {
                let extreme = self.extreme(k, to, value);
                return k.assign(to, extreme);
            }
        };
        k.emit(op, F32, &[to.into()], &[to.into(), value.into()]);
    }

    /// The larger of two numbers, or the smaller one if that is asked for; NaN where either is. Since
    /// Ampere that is one instruction; memory is slower than these on every GPU.
    pub(super) fn extreme(self, k: &mut Builder, a: Reg, b: Reg) -> Reg {
        let number = match self {
            Combine::Min | Combine::Minimum => k.min(a, b),
            _ => k.max(a, b),
        };
        let (a_is, b_is) = (k.eq(a, a), k.eq(b, b));
        let or_b = k.select(b_is, number, b);
        k.select(a_is, or_b, a)
    }
}

/// The combination over `lanes` lanes that differ in their lowest bits, in every one of them.
pub(super) fn over_lanes(k: &mut Builder, combine: Combine, value: Reg, lanes: u32) -> Reg {
    let total = k.value(F32, value);
    let mut mask = lanes / 2;
    while mask > 0 {
        let other = k.shuffle_xor(total, mask);
        combine.apply(k, total, other);
        mask /= 2;
    }
    total
}

/// Two arrays of shared memory that take turns, so that one is read while the other is written.
pub(super) struct Turns {
    arrays: [Reg; 2],
    turn: Cell<usize>,
    /// In a loop, the address whose turn it is, and the sum of both.
    looped: Option<[Reg; 2]>,
}

impl Turns {
    /// Of two addresses, the first one first; whether in a loop.
    pub(super) fn new(k: &mut Builder, arrays: [Reg; 2], looped: bool) -> Self {
        let [first, second] = arrays;
        Turns {
            arrays,
            turn: Cell::new(0),
            looped: looped.then(|| [k.value(U32, first), k.add(first, second)]),
        }
    }

    /// The address whose turn it is.
    pub(super) fn take(&self, k: &mut Builder) -> Reg {
        let Some([turn, both]) = self.looped else {
            return self.arrays[self.turn.replace(1 - self.turn.get())];
        };
        let now = k.value(U32, turn);
        let next = k.sub(both, now);
        k.assign(turn, next);
        now
    }
}

/// Reductions over a whole block, through one word of shared memory a warp.
///
/// Before an array is written again, a barrier of the other one says that it has been read. So there
/// is one barrier to a reduction.
pub(super) struct BlockReduce {
    /// Where this warp writes, and where this lane reads.
    mine: Turns,
    theirs: Turns,
    warps: u32,
    lane: Reg,
}

impl BlockReduce {
    /// For blocks of `threads` in a row, a power of two of at most 1024; whether for a loop.
    pub(super) fn new(k: &mut Builder, threads: u32, looped: bool) -> Self {
        let warps = threads / WARP;
        let scratch = ["reduced", "reduced_next"].map(|name| k.shared(name, F32, warps));
        let thread = k.special(Special::TidX);
        let (lane, warp) = (k.and(thread, WARP - 1), k.shr(thread, 5));
        let index = k.and(lane, warps - 1);
        let mut of = |index| {
            let of = scratch.map(|array| k.fma(index, 4, array));
            Turns::new(k, of, looped)
        };
        BlockReduce {
            mine: of(warp),
            theirs: of(index),
            warps,
            lane,
        }
    }

    /// The combination over the block, in every thread.
    pub(super) fn all(&self, k: &mut Builder, combine: Combine, value: Reg) -> Reg {
        let partial = over_lanes(k, combine, value, WARP);
        let first = k.eq(self.lane, 0);
        let mine = self.mine.take(k);
        k.guarded(first, true, |k| k.st_shared(F32, mine, 0, partial));
        k.barrier();
        // Every warp adds up all partial results, in the same order.
        let theirs = self.theirs.take(k);
        let partial = k.ld_shared(F32, theirs, 0);
        over_lanes(k, combine, partial, self.warps)
    }
}
