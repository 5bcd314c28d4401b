//! The index of the largest element.

use crate::build::Builder;
use crate::error::Result;
use crate::inst::{Op, Reg, Special};
use crate::kernel::{Extent, Launch, PtxKernel};
use crate::kernels::Kernel;
use crate::kernels::common::WARP;
use crate::types::PtxType::{F32, S32, U32};
use crate::types::{PtxType, Target};

const WARPS: u32 = 32;
const THREADS: u32 = WARPS * WARP;
/// The number of elements that a thread loads at the same time.
const AT_ONCE: u32 = 16;

/// Writes the index of the first largest element as an f32, or that of the first NaN if there is one.
///
/// Parameters: `x` (f32), `index` (f32, one element), `n` (u32, from 1 to 2²⁴, so that an f32 holds every index).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ArgmaxKernel;

impl Kernel for ArgmaxKernel {
    fn name(&self) -> String {
        "argmax".to_owned()
    }

    fn generate(&self, target: Target) -> Result<PtxKernel> {
        let launch = Launch::new(THREADS, [Extent::Fixed(1); 3]).overlapping(target);
        let mut k = Builder::new(self.name(), target, launch);
        let [x, index] = ["x", "index"].map(|name| k.pointer(name, F32));
        let n = k.scalar("n", U32);
        let thread = k.special(Special::TidX);
        let [ranks, indices] = ["ranks", "indices"].map(|name| k.shared(name, U32, WARPS));
        let best = Best::new(&mut k);
        k.wait_for_grid();
        let last = k.sub(n, 1);
        k.for_range(thread, n, AT_ONCE * THREADS, |k, first| {
            let load = |i| {
                let i = k.offset(first, i * THREADS);
                // Beyond the last one it is loaded again.
                let i = k.min(i, last);
                let at = k.at(x, i, 4);
                (k.ld(Op::LdGlobal, F32, at, 0), i)
            };
            let loaded: Vec<(Reg, Reg)> = (0..AT_ONCE).map(load).collect();
            for (value, i) in loaded {
                let rank = rank_of(k, value);
                best.offer(k, [rank, i]);
            }
        });
        best.over_lanes(&mut k);
        let (warp, lane) = (k.shr(thread, 5), k.and(thread, WARP - 1));
        let first = k.eq(lane, 0);
        let own = [ranks, indices].map(|array| k.fma(warp, 4, array));
        k.when(first, |k| {
            k.st_shared(U32, own[0], 0, best.rank);
            k.st_shared(U32, own[1], 0, best.index);
        });
        k.barrier();
        // Each lane has a warp's best.
        let theirs = [ranks, indices].map(|array| k.fma(lane, 4, array));
        let [rank, at] = theirs.map(|address| k.ld_shared(U32, address, 0));
        best.offer(&mut k, [rank, at]);
        best.over_lanes(&mut k);
        let first = k.eq(thread, 0);
        k.when(first, |k| {
            let best = k.convert(Op::CvtF32U32, F32, &[best.index.into()]);
            k.st_global(F32, index, 0, best);
        });
        k.finish()
    }
}

/// Returns an integer that is larger for a larger number, equal for both zeros, and the largest for NaN.
pub(super) fn rank_of(k: &mut Builder, value: Reg) -> Reg {
    // Adding 0 turns -0 into 0.
    let value = k.add(value, 0.0f32);
    let bits = k.value(U32, value);
    let signed = k.value(S32, value);
    let sign = k.shr(signed, 31);
    // Negative numbers are in the opposite order of their bits; the sign bit of the others becomes 1.
    let flipped = k.or(sign, 0x8000_0000u32);
    let ordered = k.op(Op::Xor, PtxType::B32, U32, &[bits.into(), flipped.into()]);
    let is_number = k.eq(value, value);
    k.select(is_number, ordered, u32::MAX)
}

/// The largest rank so far, and the least of the indices that have it.
pub(super) struct Best {
    pub(super) rank: Reg,
    pub(super) index: Reg,
}

impl Best {
    /// Begins with a rank that is below all numbers.
    pub(super) fn new(k: &mut Builder) -> Self {
        Self {
            rank: k.value(U32, 0),
            index: k.value(U32, u32::MAX),
        }
    }

    pub(super) fn offer(&self, k: &mut Builder, [rank, index]: [Reg; 2]) {
        let higher = k.lt(self.rank, rank);
        let same = k.eq(self.rank, rank);
        let before = k.lt(index, self.index);
        let same = k.and(same, before);
        let better = k.or(higher, same);
        let best = [
            k.select(better, rank, self.rank),
            k.select(better, index, self.index),
        ];
        k.assign(self.rank, best[0]);
        k.assign(self.index, best[1]);
    }

    pub(super) fn over_lanes(&self, k: &mut Builder) {
        let mut mask = WARP / 2;
        while mask > 0 {
            let theirs = [self.rank, self.index].map(|own| k.shuffle_xor(own, mask));
            self.offer(k, theirs);
            mask /= 2;
        }
    }
}
