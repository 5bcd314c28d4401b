//! Prefetching of the next row to shared memory. Each thread copies the elements that it will read
//! itself, so no barrier is needed. Each thread reads the same elements of arrays of columns for
//! all of its rows, so these can be cached there.

use super::{Matrix, RowLayout};
use crate::build::Builder;
use crate::inst::{Op, Operand, Reg, Special};
use crate::types::PtxType::{F32, U32};

/// The size of a copy in bytes: four elements.
const UNIT: u32 = 16;

/// This thread's slots in shared memory: for the next row, then for each cached array.
#[derive(Clone, Copy)]
pub(super) struct Ahead {
    layout: RowLayout,
    slots: Reg,
}

impl Ahead {
    /// Allocates slots for the next row and `arrays` arrays.
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

    /// Starts copying this thread's part of arrays of columns, with zeros beyond their end,
    /// together with the next row.
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

    /// Loads the cached elements of `arrays` arrays for one of this thread's loads.
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

    /// Starts copying a row if it exists, with zeros beyond its end.
    pub(super) fn ask(&self, k: &mut Builder, matrix: &Matrix, row: Reg, first: Reg) {
        let from = k.at_2d(matrix.input, row, matrix.cols, first, 4);
        let exists = k.lt(row, matrix.rows);
        let end = k.value(U32, 0);
        let end = k.select(exists, matrix.cols, end);
        self.copy(k, from, 0, [first, end]);
        k.act(Op::CpAsyncCommit, &[]);
    }

    /// Copies this thread's elements at `from` to its slots at `to`.
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

    /// Waits for the row that is being copied.
    pub(super) fn wait(k: &mut Builder) {
        k.act(Op::CpAsyncWait, &[0.into()]);
    }

    /// Loads the elements of one of this thread's copies.
    pub(super) fn load(&self, k: &mut Builder, load: u32) -> Vec<Reg> {
        k.ld_vector(Op::LdShared, F32, 4, self.slots, self.slot(load))
    }
}
