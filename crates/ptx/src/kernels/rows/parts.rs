//! Rows that are split among blocks without a cluster. One kernel writes two numbers for each part
//! of a row to global memory, and another one combines them and writes the row. Parts stay in
//! registers, so the input is read twice in total.

use super::super::common::BlockReduce;
use super::{Matrix, Reduce, Row, RowLayout};
use crate::build::Builder;
use crate::inst::{Op, Reg, Special};
use crate::kernel::{Extent, Launch};
use crate::kernels::common::Combine;
use crate::types::PtxType::{F32, U32};

const PART: u32 = RowLayout::PART;
const THREADS: u32 = 256;

/// The role of a kernel that works on rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::kernels) enum Share {
    /// The kernel processes whole rows.
    Whole,
    /// The kernel computes two numbers for each part.
    Statistics,
    /// The kernel computes the result from those numbers.
    Rest,
}

impl Share {
    pub(in crate::kernels) fn suffix(self, layout: RowLayout) -> String {
        match self {
            Share::Whole => layout.suffix(),
            Share::Statistics => format!("parts_v{}_statistics", layout.width),
            Share::Rest => format!("parts_v{}", layout.width),
        }
    }

    /// Returns the launch of kernels that read `arrays` arrays of columns.
    pub(in crate::kernels) fn launch(self, layout: RowLayout, arrays: u32) -> Launch {
        if self == Share::Whole {
            return layout.launch(arrays);
        }
        let grid = [
            Extent::Tiles("cols", PART),
            Extent::Param("rows"),
            Extent::Fixed(1),
        ];
        Launch::new(THREADS, grid)
    }
}

/// A part of a row, treated as a separate row.
pub(in crate::kernels) struct Part {
    pub(in crate::kernels) row: Row,
    /// The index of the part's first element in the row.
    pub(in crate::kernels) first: Reg,
    /// The address of the row's numbers.
    numbers: Reg,
    parts: Reg,
    index: Reg,
    cols: Reg,
}

impl Part {
    /// Returns this block's part, loaded to registers if it is used several times. The second
    /// kernel processes parts in reverse order, since the last ones read are still in the L2 cache.
    pub(in crate::kernels) fn new(
        k: &mut Builder,
        (layout, share): (RowLayout, Share),
        matrix: &Matrix,
        numbers: Reg,
        once: bool,
    ) -> Self {
        let layout = RowLayout {
            group: THREADS,
            threads: THREADS,
            blocks: 1,
            width: layout.width,
            held: (!once).then_some(PART / THREADS / layout.width),
            ahead: false,
        };
        let [mut index, mut row] = [Special::CtaidX, Special::CtaidY].map(|of| k.special(of));
        let parts = k.special(Special::NctaidX);
        if share == Share::Rest {
            for (at, count) in [(&mut index, parts), (&mut row, matrix.rows)] {
                let last = k.sub(count, 1);
                *at = k.sub(last, *at);
            }
        }
        let first = k.mul(index, PART);
        let left = k.sub(matrix.cols, first);
        let zero = k.value(U32, 0);
        let thread = k.special(Special::TidX);
        let mut this = Row {
            layout,
            reduce: Reduce::Block(BlockReduce::new(k, THREADS, false)),
            first: k.mul(thread, layout.width),
            cols: k.min(left, PART),
            input: k.at_2d(matrix.input, row, matrix.cols, first, 4),
            output: match share {
                Share::Rest => k.at_2d(matrix.output, row, matrix.cols, first, 4),
                _ => matrix.output,
            },
            held: Vec::new(),
            kept: None,
            of_warp: None,
        };
        this.hold_row(k);
        Part {
            row: this,
            first,
            numbers: k.at_2d(numbers, row, parts, zero, 8),
            parts,
            index,
            cols: matrix.cols,
        }
    }

    /// Stores the part's numbers.
    pub(in crate::kernels) fn leave(&self, k: &mut Builder, numbers: [Reg; 2]) {
        let thread = k.special(Special::TidX);
        let first = k.eq(thread, 0);
        k.when(first, |k| {
            let to = k.at(self.numbers, self.index, 8);
            k.st_global(F32, to, 0, numbers.as_slice());
        });
    }

    /// Returns the number of elements of the part.
    pub(in crate::kernels) fn count(&self) -> Reg {
        self.row.cols
    }

    /// Returns the number of elements of part `index` of the row.
    pub(in crate::kernels) fn count_of(&self, k: &mut Builder, index: Reg) -> Reg {
        let before = k.mul(index, PART);
        let left = k.sub(self.cols, before);
        let count = k.min(left, PART);
        k.convert(Op::CvtF32U32, F32, &[count.into()])
    }

    /// Sums `f` of the numbers and the index of each part of the row.
    pub(in crate::kernels) fn sum(
        &self,
        k: &mut Builder,
        f: impl FnOnce(&mut Builder, [Reg; 2], Reg) -> Reg,
    ) -> Reg {
        let total = k.value(F32, 0.0f32);
        self.each(k, |k, numbers, index| {
            let value = f(k, numbers, index);
            k.add_assign(total, value);
        });
        self.row.together(k, Combine::Sum, total)
    }

    /// Returns the largest first number of all parts.
    pub(in crate::kernels) fn max(&self, k: &mut Builder) -> Reg {
        let max = k.value(F32, f32::MIN);
        self.each(k, |k, [of_part, _], _| {
            Combine::Max.apply(k, max, of_part);
        });
        self.row.together(k, Combine::Max, max)
    }

    /// Runs `body` on this thread's share of the row's parts.
    fn each(&self, k: &mut Builder, body: impl FnOnce(&mut Builder, [Reg; 2], Reg)) {
        let thread = k.special(Special::TidX);
        k.for_range(thread, self.parts, THREADS, |k, index| {
            let from = k.at(self.numbers, index, 8);
            let numbers = k.ld_vector(Op::LdGlobalNc, F32, 2, from, 0);
            body(k, [numbers[0], numbers[1]], index);
        });
    }
}
