//! Blocks of weights on their way through shared memory, as they are.

use super::mma::{ROWS, WARPS, Warp};
use super::window::{Row, Window};
use crate::ptx::build::Builder;
use crate::ptx::inst::{Op, Operand, Reg};
use crate::ptx::kernels::common::WARP;
use crate::ptx::types::PtxType::{S32, U32, U64};

/// Spans of a warp in shared memory, one of which is being multiplied. With more of them under way
/// the first ones come later: of 3, 4 and 6 each was slower.
const STAGES: u32 = 2;
/// Farther than any window reaches: nothing is copied from there.
const BEYOND: i32 = 1 << 30;

/// A warp's own ring of spans: of each row a window of units of 16 bytes. Units follow each other
/// in memory as lanes do, which copies them at the full width of shared memory.
pub(super) struct Ring {
    window: Window,
    /// Where the block's first row has this warp's next span.
    base: Reg,
    /// How many bytes the matrix has from there on, or very many: for windows that may end beyond it.
    left: Option<Reg>,
    /// How far from there each of this lane's units is.
    units: Vec<Reg>,
    /// Where the first of them goes.
    to: Reg,
    /// The next span to be asked for, and the stage that it goes to.
    span: Reg,
    filled: Reg,
    /// The two rows that this lane multiplies.
    pub(super) rows: [Row; 2],
}

impl Ring {
    pub(super) fn new(k: &mut Builder, warp: &Warp, w: Reg) -> Self {
        let window = Window::of(warp.format);
        let stage = ROWS * window.bytes();
        let ring = k.dynamic_shared("ring", WARPS * STAGES * stage);
        let own = k.fma(warp.number, STAGES * stage, ring);
        let (values, bytes) = warp.format.block();
        let blocks = k.div(warp.cols, values);
        let row_bytes = k.mul(blocks, bytes);
        let rows = Rows::new(k, warp, window, row_bytes);
        let units = 0..(ROWS * window.units).div_ceil(WARP);
        let units = units.map(|i| {
            let unit = k.offset(warp.lane, i * WARP);
            rows.unit(k, unit)
        });
        let units = units.collect();
        let zero = k.value(U32, 0);
        let base = k.at_2d(w, warp.first_row, row_bytes, zero, 1);
        let left = (!window.exact).then(|| {
            let rows_left = k.add(rows.last, 1);
            let bytes_left = k.op(Op::MulWide, U32, U64, &[rows_left.into(), row_bytes.into()]);
            let bytes_left = k.min(bytes_left, BEYOND);
            k.convert(Op::CvtU32U64, U32, &[bytes_left.into()])
        });
        Ring {
            units,
            base,
            left,
            to: k.fma(warp.lane, 16, own),
            rows: [0, 8].map(|further| {
                let row = k.offset(warp.g, further);
                let begin = k.fma(row, window.bytes(), own);
                let from = rows.begin(k, row);
                Row::new(k, window.exact, begin, from, warp.t)
            }),
            window,
            span: k.value(U32, warp.number),
            filled: k.value(U32, 0),
        }
    }

    /// On to the next stage.
    pub(super) fn advance(&self, k: &mut Builder, stage: Reg) {
        let bytes = ROWS * self.window.bytes();
        k.add_assign(stage, bytes);
        let over = k.eq(stage, STAGES * bytes);
        k.guarded(over, true, |k| k.assign(stage, 0));
    }

    /// Asks for this warp's next span, if there is one.
    pub(super) fn fill(&self, k: &mut Builder, warp: &Warp) {
        let some = k.lt(self.span, warp.spans);
        k.when(some, |k| {
            let to = k.add(self.to, self.filled);
            for (i, &unit) in self.units.iter().enumerate() {
                let place = i as u32 * WARP;
                let left = ROWS * self.window.units - place;
                let exists = (left < WARP).then(|| k.lt(warp.lane, left));
                let operands = self.copy(k, unit, to, place);
                match exists {
                    None => k.act(Op::CpAsync16Near, &operands),
                    Some(exists) => {
                        k.guarded(exists, true, |k| k.act(Op::CpAsync16Near, &operands));
                    }
                }
            }
        });
        k.act(Op::CpAsyncCommit, &[]);
        let step = WARPS * self.window.span;
        k.add_assign(self.base, i64::from(step));
        if let Some(left) = self.left {
            k.add_assign(left, -(step as i32));
        }
        k.add_assign(self.span, WARPS);
        self.advance(k, self.filled);
    }

    /// From where to where one unit is copied, and how much of it.
    fn copy(&self, k: &mut Builder, offset: Reg, to: Reg, place: u32) -> [Operand<'static>; 4] {
        let bytes = match self.left {
            None => Operand::Int(16),
            Some(left) => {
                let left = k.op(Op::Sub, S32, S32, &[left.into(), offset.into()]);
                let some = k.max(left, 0);
                k.min(some, 16).into()
            }
        };
        let from = k.at(self.base, offset, 1);
        let to = Operand::At(to, 16 * place as i32);
        [to, Operand::At(from, 0), 16.into(), bytes]
    }
}

/// Where the block's rows are, counted in bytes from the first.
struct Rows {
    window: Window,
    row_bytes: Reg,
    /// The last row that exists; those beyond repeat it, and their sums are not stored.
    last: Reg,
    /// The warp's first span in a row.
    first: Reg,
}

impl Rows {
    fn new(k: &mut Builder, warp: &Warp, window: Window, row_bytes: Reg) -> Self {
        let last = k.sub(warp.rows, 1);
        Rows {
            window,
            row_bytes,
            last: k.sub(last, warp.first_row),
            first: k.mul(warp.number, window.span),
        }
    }

    /// Where the warp's first span of a row begins.
    fn begin(&self, k: &mut Builder, row: Reg) -> Reg {
        let row = k.min(row, self.last);
        k.fma(row, self.row_bytes, self.first)
    }

    /// Where a unit of all rows' windows begins. Windows have as many units as the latest beginnings
    /// and other banks ask for: what lies beyond a span is not copied.
    fn unit(&self, k: &mut Builder, unit: Reg) -> Reg {
        let units = self.window.units;
        let (row, in_row) = (k.div(unit, units), k.rem(unit, units));
        let begin = self.begin(k, row);
        let window = k.and(begin, !15u32);
        let at = k.fma(in_row, 16, window);
        if self.window.exact {
            return at;
        }
        let end = k.add(begin, self.window.span);
        let some = k.lt(at, end);
        k.select(some, at, BEYOND)
    }
}
