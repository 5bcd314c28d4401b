//! The next row on its way to shared memory: each thread copies what it will read itself, so that
//! nobody has to wait for others. What a thread reads of arrays of columns is the same for each of its
//! rows: that may stay there.

use super::{Matrix, RowLayout};
use crate::ptx::build::Builder;
use crate::ptx::inst::{Op, Operand, Reg, Special};
use crate::ptx::types::PtxType::{F32, U32};

/// Bytes of a copy: four values.
const UNIT: u32 = 16;

/// This thread's place in shared memory: for the next row, then for each array that is kept.
#[derive(Clone, Copy)]
pub(super) struct Ahead {
    layout: RowLayout,
    slots: Reg,
}

impl Ahead {
    /// With room for so many arrays.
    pub(super) fn new(k: &mut Builder, layout: RowLayout, arrays: u32) -> Self {
        let slots = k.dynamic_shared("next_row", layout.ahead_bytes() * (1 + arrays));
        let thread = k.special(Special::TidX);
        Ahead {
            layout,
            slots: k.fma(thread, UNIT, slots),
        }
    }

    fn slot(&self, load: u32) -> i32 {
        (load * self.layout.threads * UNIT) as i32
    }

    /// Asks for this thread's part of arrays of columns, zeros beyond their end, together with the row
    /// that is asked for next.
    pub(super) fn keep(&self, k: &mut Builder, arrays: &[Reg], first: Reg, cols: Reg) {
        for (array, &from) in (0..).zip(arrays) {
            let from = k.at(from, first, 4);
            self.copy(
                k,
                from,
                (1 + array) * self.layout.ahead_bytes(),
                [first, cols],
            );
        }
    }

    /// What was kept of so many arrays for one of this thread's loads.
    pub(super) fn columns(&self, k: &mut Builder, arrays: u32, load: u32) -> Vec<Vec<Reg>> {
        let of = |array| {
            let at = (1 + array) * self.layout.ahead_bytes();
            k.ld_vector(
                Op::LdShared,
                F32,
                4,
                self.slots,
                at as i32 + self.slot(load),
            )
        };
        (0..arrays).map(of).collect()
    }

    /// Asks for a row, if there is one of that number; zeros beyond its end.
    pub(super) fn ask(&self, k: &mut Builder, matrix: &Matrix, row: Reg, first: Reg) {
        let from = k.at_2d(matrix.input, row, matrix.cols, first, 4);
        let exists = k.lt(row, matrix.rows);
        let end = k.value(U32, 0);
        let end = k.select(exists, matrix.cols, end);
        self.copy(k, from, 0, [first, end]);
        k.act(Op::CpAsyncCommit, &[]);
    }

    /// Copies what this thread loads from `from` on to its slots from `to` on.
    fn copy(&self, k: &mut Builder, from: Reg, to: u32, [first, end]: [Reg; 2]) {
        for i in 0..self.layout.held.unwrap_or(0) {
            let further = i * self.layout.step();
            let col = k.offset(first, further);
            let inside = k.lt(col, end);
            let none = k.value(U32, 0);
            let bytes = k.select(inside, UNIT, none);
            let operands = [
                Operand::At(self.slots, to as i32 + self.slot(i)),
                Operand::At(from, (4 * further) as i32),
                UNIT.into(),
                bytes.into(),
            ];
            k.act(Op::CpAsync16, &operands);
        }
    }

    /// Waits for the row asked for.
    pub(super) fn wait(k: &mut Builder) {
        k.act(Op::CpAsyncWait, &[0.into()]);
    }

    /// What one of this thread's copies brought.
    pub(super) fn load(&self, k: &mut Builder, load: u32) -> Vec<Reg> {
        k.ld_vector(Op::LdShared, F32, 4, self.slots, self.slot(load))
    }
}
