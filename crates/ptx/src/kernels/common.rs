//! Helpers for kernels: thread indices, and reductions over a warp or a block.

use crate::build::Builder;
use crate::inst::{Op, Reg, Special};
use crate::kernel::Extent;
use crate::types::PtxType::{F32, U32};
use std::cell::Cell;

/// The number of threads of a warp.
pub(super) const WARP: u32 = 32;

/// Returns a one-dimensional grid.
pub(super) fn along_x(extent: Extent) -> [Extent; 3] {
    [extent, Extent::Fixed(1), Extent::Fixed(1)]
}

/// A way to combine partial results.
#[derive(Clone, Copy)]
pub(super) enum Combine {
    Sum,
    /// The larger number, ignoring NaN.
    Max,
    Min,
    /// The larger number, or NaN if any is NaN.
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

    /// Returns the larger or the smaller of two numbers, and NaN if either is NaN. Ampere has one
    /// instruction for it; the longer sequence here is still faster than memory on every GPU.
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

/// Combines a value over `lanes` consecutive lanes; each of them gets the result.
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

/// Two arrays of shared memory that alternate, so that one is read while the other is written.
pub(super) struct AlternatingArrays {
    arrays: [Reg; 2],
    turn: Cell<usize>,
    /// The current address and the sum of both, if used in a loop.
    looped: Option<[Reg; 2]>,
}

impl AlternatingArrays {
    /// Alternates between two addresses, beginning with the first; `looped` states whether in a
    /// loop.
    pub(super) fn new(k: &mut Builder, arrays: [Reg; 2], looped: bool) -> Self {
        let [first, second] = arrays;
        AlternatingArrays {
            arrays,
            turn: Cell::new(0),
            looped: looped.then(|| [k.value(U32, first), k.add(first, second)]),
        }
    }

    /// Returns the current address and switches to the other one.
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

/// A reduction over a block, through one word of shared memory for each warp.
///
/// The barrier of one array also ensures that the other one has been read before it is written
/// again. So a reduction needs one barrier.
pub(super) struct BlockReduce {
    /// The addresses that this warp writes.
    mine: AlternatingArrays,
    theirs: AlternatingArrays,
    warps: u32,
    lane: Reg,
}

impl BlockReduce {
    /// Declares the arrays for one-dimensional blocks of `threads` threads, a power of two up to
    /// 1024; `looped` states whether it is used in a loop.
    pub(super) fn new(k: &mut Builder, threads: u32, looped: bool) -> Self {
        let warps = threads / WARP;
        let scratch = ["reduced", "reduced_next"].map(|name| k.shared(name, F32, warps));
        let thread = k.special(Special::TidX);
        let (lane, warp) = (k.and(thread, WARP - 1), k.shr(thread, 5));
        let index = k.and(lane, warps - 1);
        let mut of = |index| {
            let of = scratch.map(|array| k.fma(index, 4, array));
            AlternatingArrays::new(k, of, looped)
        };
        BlockReduce {
            mine: of(warp),
            theirs: of(index),
            warps,
            lane,
        }
    }

    /// Combines a value over the block; every thread gets the result.
    pub(super) fn all(&self, k: &mut Builder, combine: Combine, value: Reg) -> Reg {
        let partial = over_lanes(k, combine, value, WARP);
        let first = k.eq(self.lane, 0);
        let mine = self.mine.take(k);
        k.guarded(first, true, |k| k.st_shared(F32, mine, 0, partial));
        k.barrier();
        // Every warp combines all partial results, in the same order.
        let theirs = self.theirs.take(k);
        let partial = k.ld_shared(F32, theirs, 0);
        over_lanes(k, combine, partial, self.warps)
    }
}

/// Returns `row`, or `row − rows` if that is not negative: a row of a ring, at most one round further.
pub(crate) fn wrapped(k: &mut Builder, row: Reg, rows: Reg) -> Reg {
    let before = k.sub(row, rows);
    let beyond = k.ge(row, rows);
    k.select(beyond, before, row)
}
