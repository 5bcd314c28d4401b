//! The next row on its way to shared memory: each thread copies what it will read itself, so that
//! nobody has to wait for others.

use super::{Matrix, RowLayout};
use crate::ptx::build::Builder;
use crate::ptx::inst::{Op, Operand, Reg, Special};
use crate::ptx::types::PtxType::{F32, U32};

/// Bytes of a copy: four values.
const UNIT: u32 = 16;

/// This thread's place in shared memory.
pub(super) struct Ahead {
    layout: RowLayout,
    slots: Reg,
}

impl Ahead {
    pub(super) fn new(k: &mut Builder, layout: RowLayout) -> Self {
        let loads = layout.held.unwrap_or(0);
        let slots = k.dynamic_shared("next_row", loads * layout.threads * UNIT);
        let thread = k.special(Special::TidX);
        Ahead {
            layout,
            slots: k.fma(thread, UNIT, slots),
        }
    }

    fn slot(&self, load: u32) -> i32 {
        (load * self.layout.threads * UNIT) as i32
    }

    /// Asks for a row, if there is one of that number; zeros beyond its end.
    pub(super) fn ask(&self, k: &mut Builder, matrix: &Matrix, row: Reg, first: Reg) {
        let from = k.at_2d(matrix.input, row, matrix.cols, first, 4);
        let exists = k.lt(row, matrix.rows);
        let end = k.value(U32, 0);
        let end = k.select(exists, matrix.cols, end);
        for i in 0..self.layout.held.unwrap_or(0) {
            let further = i * self.layout.step();
            let col = k.offset(first, further);
            let inside = k.lt(col, end);
            let none = k.value(U32, 0);
            let bytes = k.select(inside, UNIT, none);
            let operands = [
                Operand::At(self.slots, self.slot(i)),
                Operand::At(from, (4 * further) as i32),
                UNIT.into(),
                bytes.into(),
            ];
            k.act(Op::CpAsync16, &operands);
        }
        k.act(Op::CpAsyncCommit, &[]);
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
