//! Copies of tiles of `x` to shared memory.

use super::{Block, DEPTH, STAGE, STAGE_ROWS, THREADS, TILES, UNITS, swizzled};
use crate::build::Builder;
use crate::inst::{Op, Operand, Reg};
use crate::kernels::quantize::spans::SPAN;
use crate::types::PtxType::U32;

/// The number of rows that the block copies at once.
const PASS: u32 = THREADS / UNITS;

/// One thread's part in copying tiles of `x`: its units of a stage.
pub(super) struct Copies {
    /// Rows of `x` that are [`PASS`] apart.
    from: Vec<Reg>,
    /// The index of the first element along `k`.
    col: Reg,
    to: Reg,
}

impl Block {
    pub(super) fn copies(&self, k: &mut Builder, x: Reg) -> Copies {
        let (row, unit) = (k.shr(self.thread, 3), k.and(self.thread, UNITS - 1));
        let last = k.sub(self.m, 1);
        let (share, in_tile) = (k.div(row, self.shares.rows), k.rem(row, self.shares.rows));
        let col = k.mul(unit, 8);
        let col = k.fma(share, SPAN, col);
        let place = swizzled(k, row, unit);
        let place = k.fma(row, UNITS, place);
        let from = (0..self.shares.rows.div_ceil(PASS)).map(|pass| {
            // Rows beyond the last repeat it; their sums are not stored.
            let row = k.offset(in_tile, pass * PASS);
            let row = k.add(self.first_row, row);
            let row = k.min(row, last);
            k.at_2d(x, row, self.depth, col, 2)
        });
        Copies {
            from: from.collect(),
            col,
            to: k.fma(place, 16, self.stages),
        }
    }

    /// Asks for tile `tile` from the spans at `base` on, zeros beyond `k`.
    pub(super) fn ask(&self, k: &mut Builder, copies: &Copies, base: Reg, tile: u32) {
        let spans = tile / TILES * self.shares.warps[2];
        let first = k.add(copies.col, base);
        for pass in 0..STAGE_ROWS / PASS {
            // Further rows of a stage are of other rows of `x`, or of further spans of the same.
            let (row, share) = (
                pass % copies.from.len() as u32,
                pass * PASS / self.shares.rows,
            );
            let further = (spans + share) * SPAN + tile % TILES * DEPTH;
            let col = k.offset(first, further);
            let inside = k.lt(col, self.depth);
            let none = k.value(U32, 0);
            let bytes = k.select(inside, 16, none);
            let from = k.at(copies.from[row as usize], base, 2);
            let to = tile % TILES * STAGE + pass * PASS * DEPTH * 2;
            let operands = [
                Operand::At(copies.to, to as i32),
                Operand::At(from, (2 * further) as i32),
                16.into(),
                bytes.into(),
            ];
            k.act(Op::CpAsync16, &operands);
        }
        k.act(Op::CpAsyncCommit, &[]);
    }
}
