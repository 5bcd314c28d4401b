//! Digits of the vector, kept by each warp for its next tiles.

use super::digits::{Digits, Made};
use super::mma::{WARPS, Warp};
use super::ring::Ring;
use super::spans::{RUN, SPAN};
use super::window::Window;
use crate::ptx::build::Builder;
use crate::ptx::inst::{Op, Reg};
use crate::ptx::kernels::common::WARP;
use crate::ptx::types::PtxType::{B32, F32, U32};

/// Spans of a warp whose digits are kept: rows of 8,192 columns.
const SPANS: u32 = 4;
/// Where units and sums of a span's runs are, behind 16 bytes of digits for each lane.
const RUNS: u32 = WARP * 16;
const SPAN_BYTES: u32 = RUNS + SPAN / RUN * 8;

/// What a block may take with them, so that two find room beside each other on an A100, which has
/// 164 KB: that of `Q8_0` leaves none.
const BLOCK_BYTES: u32 = 80 << 10;

/// A warp's memory of digits, behind its ring.
pub(super) struct Kept {
    /// How far behind the beginning of the warp's memory it is.
    begin: i32,
    /// How far behind that the span at hand is.
    place: Reg,
    /// Whether a row has more spans than can be kept.
    long: Reg,
}

impl Kept {
    /// How many bytes of a warp's memory it takes, if there is room.
    pub(super) fn bytes(window: Window) -> Option<u32> {
        let bytes = SPANS * SPAN_BYTES;
        (WARPS * (Ring::bytes(window) + bytes) < BLOCK_BYTES).then_some(bytes)
    }

    pub(super) fn new(k: &mut Builder, warp: &Warp) -> Option<Self> {
        let window = Window::of(warp.format);
        Self::bytes(window).map(|_| Kept {
            begin: Ring::bytes(window) as i32,
            place: k.value(U32, 0),
            long: k.gt(warp.spans, WARPS * SPANS),
        })
    }

    /// Back to the first span: whether the digits for this tile are here, as they are for all but the
    /// block's first.
    pub(super) fn begin(&self, k: &mut Builder, warp: &Warp, tile: Reg) -> Reg {
        k.assign(self.place, 0);
        let later = k.ne(tile, warp.block);
        let short = k.not(self.long);
        k.and(later, short)
    }

    /// Keeps what was made of the span at hand.
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

    /// The digits of the span at hand.
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

    /// On to the next span: that of a long row takes the first one's place, and none is read.
    fn advance(&self, k: &mut Builder) {
        k.add_assign(self.place, SPAN_BYTES);
        let over = k.eq(self.place, SPANS * SPAN_BYTES);
        k.guarded(over, true, |k| k.assign(self.place, 0));
    }
}
