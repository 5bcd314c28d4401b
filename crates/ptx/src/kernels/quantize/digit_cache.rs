//! A cache of the vector's digits, which each warp reuses for its next tiles.

use super::digits::{Digits, Made};
use super::mma::{WARPS, Warp};
use super::ring::Ring;
use super::spans::{RUN, SPAN};
use super::window::Window;
use crate::build::Builder;
use crate::inst::{Op, Reg};
use crate::kernels::common::WARP;
use crate::types::PtxType::{B32, F32, U32};

/// The number of cached spans of a warp: rows of 8,192 columns.
const SPANS: u32 = 4;
/// The offset of the units and sums of a span's runs, after 16 bytes of digits for each lane.
const RUNS: u32 = WARP * 16;
const SPAN_BYTES: u32 = RUNS + SPAN / RUN * 8;

/// The maximum shared memory of a block with the cache, so that two blocks fit on an A100, which
/// has 164 KB. `Q8_0` leaves no room for the cache.
const BLOCK_BYTES: u32 = 80 << 10;

/// A warp's cache of digits, after its ring.
pub(super) struct DigitCache {
    /// The offset of the cache in the warp's memory.
    begin: i32,
    /// The offset of the current span in the cache.
    place: Reg,
    /// Whether a row has more spans than fit into the cache.
    long: Reg,
}

impl DigitCache {
    /// Returns the size of the cache in bytes for each warp, or `None` if it does not fit.
    pub(super) fn bytes(window: Window) -> Option<u32> {
        let bytes = SPANS * SPAN_BYTES;
        (WARPS * (Ring::bytes(window) + bytes) < BLOCK_BYTES).then_some(bytes)
    }

    pub(super) fn new(k: &mut Builder, warp: &Warp) -> Option<Self> {
        let window = Window::of(warp.format);
        Self::bytes(window).map(|_| DigitCache {
            begin: Ring::bytes(window) as i32,
            place: k.value(U32, 0),
            long: k.gt(warp.spans, WARPS * SPANS),
        })
    }

    /// Returns to the first span. Returns whether the digits for this tile are cached, as they are
    /// for all tiles but the block's first.
    pub(super) fn begin(&self, k: &mut Builder, warp: &Warp, tile: Reg) -> Reg {
        k.assign(self.place, 0);
        let later = k.ne(tile, warp.block);
        let short = k.not(self.long);
        k.and(later, short)
    }

    /// Caches the digits of the current span.
    pub(super) fn put(&self, k: &mut Builder, warp: &Warp, made: &Made) {
        let lane = k.add(warp.own_lane, self.place);
        let words = [made.high, made.low].concat();
        k.st_shared(B32, lane, self.begin, words.as_slice());
        let own = k.add(warp.own, self.place);
        let run = k.fma(warp.g, 8, own);
        let of_run = [made.unit, made.total];
        k.guarded(warp.is[0], true, |k| {
            k.st_shared(F32, run, self.begin + RUNS as i32, of_run.as_slice());
        });
        self.advance(k);
    }

    /// Loads the digits of the current span.
    pub(super) fn get(&self, k: &mut Builder, warp: &Warp) -> Digits {
        let lane = k.add(warp.own_lane, self.place);
        let words = k.ld_vector(Op::LdShared, B32, 4, lane, self.begin);
        let own = k.add(warp.own, self.place);
        let of_runs = k.fma(warp.t, 16, own);
        let runs = k.ld_vector(Op::LdShared, F32, 4, of_runs, self.begin + RUNS as i32);
        self.advance(k);
        Digits {
            high: [words[0], words[1]],
            low: [words[2], words[3]],
            unit: [runs[0], runs[2]],
            total: [runs[1], runs[3]],
        }
    }

    /// Advances to the next span. Spans of a long row overwrite the first one, and the cache is not
    /// read.
    fn advance(&self, k: &mut Builder) {
        k.add_assign(self.place, SPAN_BYTES);
        let over = k.eq(self.place, SPANS * SPAN_BYTES);
        k.guarded(over, true, |k| k.assign(self.place, 0));
    }
}
