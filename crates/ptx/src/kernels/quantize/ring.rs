//! The ring of shared memory through which blocks of weights stream.

use super::QuantizeKernel;
use super::mma::{ROWS, WARPS, Warp};
use super::window::{Row, Window};
use crate::build::{ALL_LANES, Builder};
use crate::inst::{Op, Operand, Reg};
use crate::kernels::common::WARP;
use crate::types::PtxType::{B32, S32, U32, U64};

/// The number of a warp's spans in shared memory; one of them is being multiplied. With more spans in flight the first
/// ones arrive later: 3, 4 and 6 were slower.
const STAGES: u32 = 2;
/// An offset beyond every window of a tile with the largest number of columns. Nothing is copied from there.
const BEYOND: i32 = 1 << 30;
// `Q8_0` has the longest rows.
const _: () = assert!(ROWS * (QuantizeKernel::GEMV_MMA_COLS / 32 * 34) < BEYOND as u32);

/// A warp's own ring of spans: for each row a window of units of 16 bytes. Consecutive lanes copy consecutive units, so
/// copies have the full width of shared memory.
pub(super) struct Ring {
    window: Window,
    w: Reg,
    row_bytes: Reg,
    /// The address of this warp's next span in the tile's first row.
    base: Reg,
    /// The number of bytes of the matrix from `base` on, or a large number.
    left: Reg,
    whole: Reg,
    /// The offset of each of this lane's units.
    units: Vec<Reg>,
    /// The next span to load, its tile, and the stage that it is loaded into.
    span: Reg,
    tile: Reg,
    filled: Reg,
    /// The address of the stage that is being read: the last stage before the first span.
    read: Reg,
    /// The first of the two rows that this lane multiplies; the second is eight rows further.
    row: Row,
}

impl Ring {
    /// Returns the size of the ring in bytes, at the start of the warp's memory.
    pub(super) fn bytes(window: Window) -> u32 {
        STAGES * ROWS * window.bytes()
    }

    pub(super) fn new(k: &mut Builder, warp: &Warp, w: Reg) -> Self {
        let window = Window::of(warp.format);
        let stage = ROWS * window.bytes();
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
        let ring = Ring {
            w,
            row_bytes,
            units,
            base: k.reg(U64),
            left: k.reg(U32),
            whole: {
                let last = k.value(U32, ROWS - 1);
                let begin = rows.begin(k, last);
                let end = k.add(begin, window.span + 15);
                k.and(end, !15u32)
            },
            row: {
                let at = k.fma(warp.row, window.bytes(), warp.own);
                let from = rows.begin(k, warp.row);
                Row::new(k, window, [at, from, warp.t])
            },
            window,
            span: k.value(U32, warp.number),
            tile: k.value(U32, warp.block),
            filled: k.value(U32, 0),
            read: k.value(U32, (STAGES - 1) * stage),
        };
        ring.begin(k, warp);
        ring
    }

    /// On to the beginning of a tile.
    fn begin(&self, k: &mut Builder, warp: &Warp) {
        let (zero, first_row) = (k.value(U32, 0), k.mul(self.tile, ROWS));
        let base = k.at_2d(self.w, first_row, self.row_bytes, zero, 1);
        k.assign(self.base, base);
        let rows = k.sub(warp.rows, first_row);
        let bytes = k.op(Op::MulWide, U32, U64, &[rows.into(), self.row_bytes.into()]);
        let bytes = k.min(bytes, BEYOND);
        let left = k.convert(Op::CvtU32U64, U32, &[bytes.into()]);
        k.assign(self.left, left);
    }

    /// The two rows that this lane multiplies, of the span that has come.
    pub(super) fn rows(&self, k: &mut Builder) -> [Row; 2] {
        let row = self.row.at(k, self.read);
        [row, row.eighth(self.window)]
    }

    /// On to the next span: waits until its copies have come, and asks for the one behind it.
    pub(super) fn advance(&self, k: &mut Builder, warp: &Warp) {
        k.act(Op::CpAsyncWait, &[0.into()]);
        // All lanes have read the span before.
        k.act(Op::BarWarpSync, &[ALL_LANES.into()]);
        self.next_stage(k, self.read);
        self.fill(k, warp);
    }

    fn next_stage(&self, k: &mut Builder, stage: Reg) {
        let bytes = ROWS * self.window.bytes();
        k.add_assign(stage, bytes);
        let over = k.eq(stage, STAGES * bytes);
        k.guarded(over, true, |k| k.assign(stage, 0));
    }

    /// Asks for this warp's next span, if there is one.
    pub(super) fn fill(&self, k: &mut Builder, warp: &Warp) {
        let (in_row, exists) = (k.lt(self.span, warp.spans), k.lt(self.tile, warp.tiles));
        let some = k.and(in_row, exists);
        k.when(some, |k| {
            let to = k.add(warp.own_lane, self.filled);
            if self.window.exact {
                self.copy(k, warp, to, How::Clamped);
                return;
            }
            let whole = k.ge(self.left, self.whole);
            k.when_else(
                whole,
                |k| self.copy(k, warp, to, How::Whole),
                |k| self.copy(k, warp, to, How::Part),
            );
        });
        k.act(Op::CpAsyncCommit, &[]);
        let step = WARPS * self.window.span;
        k.add_assign(self.base, i64::from(step));
        k.add_assign(self.left, -(step as i32));
        k.add_assign(self.span, WARPS);
        self.next_stage(k, self.filled);
        let over = k.ge(self.span, warp.spans);
        k.when(over, |k| {
            k.add_assign(self.tile, warp.blocks);
            k.assign(self.span, warp.number);
            self.begin(k, warp);
        });
    }

    /// Copies this lane's units of a span.
    fn copy(&self, k: &mut Builder, warp: &Warp, to: Reg, how: How) {
        for (i, &unit) in self.units.iter().enumerate() {
            let (offset, bytes) = match how {
                How::Clamped => {
                    let last = k.sub(self.left, 16);
                    (k.min(unit, last), Operand::Int(16))
                }
                How::Whole => (unit, Operand::Int(16)),
                How::Part => {
                    let left = k.op(Op::Sub, S32, S32, &[self.left.into(), unit.into()]);
                    let some = k.max(left, 0);
                    (unit, k.min(some, 16).into())
                }
            };
            let from = Operand::At(k.at(self.base, offset, 1), 0);
            let place = Operand::At(to, (i as u32 * WARP * 16) as i32);
            let operands = [place, from, 16.into(), bytes];
            let exists = match how {
                How::Whole => Some(k.lt(unit, BEYOND)),
                _ => self.in_stage(k, warp, i),
            };
            match exists {
                None => k.act(Op::CpAsync16Near, &operands),
                Some(exists) => {
                    k.guarded(exists, true, |k| k.act(Op::CpAsync16Near, &operands));
                }
            }
        }
    }

    /// Whether this lane has an `i`th unit, if not all have.
    fn in_stage(&self, k: &mut Builder, warp: &Warp, i: usize) -> Option<Reg> {
        let left = ROWS * self.window.units - i as u32 * WARP;
        (left < WARP).then(|| k.lt(warp.lane, left))
    }

    /// Zeros where nothing is copied to: words that reach beyond a span are read from there.
    pub(super) fn clear(&self, k: &mut Builder, warp: &Warp) {
        if self.window.exact {
            return;
        }
        let zeros = k.filled(B32, 4, 0);
        for (i, &unit) in self.units.iter().enumerate() {
            let mut beyond = k.ge(unit, BEYOND);
            if let Some(exists) = self.in_stage(k, warp, i) {
                beyond = k.and(beyond, exists);
            }
            for stage in 0..STAGES {
                let at = stage * ROWS * self.window.bytes() + i as u32 * WARP * 16;
                k.guarded(beyond, true, |k| {
                    k.st_shared(B32, warp.own_lane, at as i32, zeros.as_slice());
                });
            }
        }
    }
}

/// The way in which a span's units are copied.
#[derive(Clone, Copy)]
enum How {
    /// All that there are, as they are.
    Whole,
    /// As much of each as the matrix has. A size that is not known costs seven instructions a unit.
    Part,
    /// Units beyond the matrix repeat its end: in an exact window a unit belongs to one row, and
    /// results of rows beyond the matrix are not stored.
    Clamped,
}

/// The byte offsets of a tile's rows.
struct Rows {
    window: Window,
    row_bytes: Reg,
    /// The warp's first span in a row.
    first: Reg,
}

impl Rows {
    fn new(k: &mut Builder, warp: &Warp, window: Window, row_bytes: Reg) -> Self {
        Rows {
            window,
            row_bytes,
            first: k.mul(warp.number, window.span),
        }
    }

    /// Computes the offset of the warp's first span of a row.
    fn begin(&self, k: &mut Builder, row: Reg) -> Reg {
        k.fma(row, self.row_bytes, self.first)
    }

    /// Computes the offset of a unit of these rows' windows. Windows include padding for unaligned
    /// spans and to avoid bank conflicts; units beyond a span are not copied.
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
        let (in_span, in_tile) = (k.lt(at, end), k.lt(row, ROWS));
        let some = k.and(in_span, in_tile);
        k.select(some, at, BEYOND)
    }
}
