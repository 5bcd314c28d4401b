//! A matrix of quantised weights times a vector on tensor cores (`mma.sync`, since Ampere), for
//! speed: one instruction multiplies 256 weights.
//!
//! A warp takes 16 rows and 256 of `k` at a time, a *span*; the eight warps of a block take spans
//! in turn. Blocks of weights come as they are, 16 bytes a copy, through a ring of the warp's own
//! in shared memory. A weight's bits `q` become the bf16 number `1 + q/2ᵇ` by placing them in a
//! mantissa. `x` is split into the sum of two bf16 numbers, 2⁻¹⁸ of it at most apart.
//!
//! A span has eight *runs* of 32 weights. Column `n` of the right factor is always the part of
//! `x` that run `n` is multiplied with, which is why 32 lanes hold all 256 values of it. Of the
//! products of run `j` only column `j` means something: `C = Σ (1 + q/2ᵇ) · x`. Lane `4g + t`
//! keeps those of runs `2t` and `2t + 1` for rows `g` and `g + 8`, and adds
//! `scale · C + bias · X`, where `X` is the sum of `x`.

use super::spans::{RUN, Row, SPAN, Scale, Window, Words};
use super::{QuantFormat, QuantizeKernel};
use crate::ptx::build::{ALL_LANES, Builder};
use crate::ptx::error::{Error, Result};
use crate::ptx::inst::{Op, Operand, Reg, Special};
use crate::ptx::kernel::{Extent, Launch, PtxKernel};
use crate::ptx::kernels::Kernel;
use crate::ptx::kernels::common::{Combine, WARP, along_x, over_lanes};
use crate::ptx::types::PtxType::{B32, B64, BF16x2, F32, S32, U8, U32, U64};
use crate::ptx::types::Target;

/// Rows to a block, and warps that share out its spans.
const ROWS: u32 = 16;
const WARPS: u32 = 8;
/// Spans of a warp in shared memory.
const STAGES: u32 = 3;

pub(super) fn build(kernel: QuantizeKernel, target: Target) -> Result<PtxKernel> {
    let format = kernel.format;
    if format == QuantFormat::Q8_0 {
        return Err(Error::Invalid {
            what: "format",
            value: format.name().to_owned(),
            requirement: "weights of at most 6 bits, which fit a mantissa of bf16",
        });
    }
    let mut launch = Launch::new(WARPS * WARP, along_x(Extent::Tiles("rows", ROWS)));
    launch.min_blocks = 2;
    let mut k = Builder::new(kernel.name(), target, launch);
    let (w, x, y) = (k.pointer("w", U8), k.pointer("x", F32), k.pointer("y", F32));
    let (rows, cols) = (k.scalar("rows", U32), k.scalar("cols", U32));
    let warp = Warp::new(&mut k, format, [rows, cols]);
    let ring = Ring::new(&mut k, &warp, w);
    let sums = k.filled(F32, 2, 0.0f32);
    for _ in 1..STAGES {
        ring.fill(&mut k, &warp);
    }
    let read = k.value(U32, 0);
    k.for_range(warp.warp, warp.spans, WARPS, |k, span| {
        let x = Input::load(k, &warp, x, span);
        // All but the latest copies have come, and all lanes have read the span before.
        k.act(Op::CpAsyncWait, &[(STAGES - 2).into()]);
        k.act(Op::BarWarpSync, &[ALL_LANES.into()]);
        ring.fill(k, &warp);
        let x = x.split(k, &warp);
        let rows = ring.rows.each_ref().map(|row| row.at(k, read));
        warp.multiply(k, &rows, &x, &sums);
        next_stage(k, read, ring.stage());
    });
    k.act(Op::CpAsyncWait, &[0.into()]);
    warp.finish(&mut k, &sums, y);
    k.finish()
}

fn next_stage(k: &mut Builder, stage: Reg, bytes: u32) {
    k.add_assign(stage, bytes);
    let over = k.eq(stage, STAGES * bytes);
    k.guarded(over, true, |k| k.assign(stage, 0));
}

/// This thread's place.
struct Warp {
    format: QuantFormat,
    thread: Reg,
    warp: Reg,
    /// Of lane `4g + t`.
    g: Reg,
    t: Reg,
    /// Whether `t` is 0, 1, 2, 3.
    is: [Reg; 4],
    first_row: Reg,
    rows: Reg,
    cols: Reg,
    spans: Reg,
}

impl Warp {
    fn new(k: &mut Builder, format: QuantFormat, [rows, cols]: [Reg; 2]) -> Self {
        let (thread, block) = (k.special(Special::TidX), k.special(Special::CtaidX));
        let lane = k.and(thread, WARP - 1);
        let t = k.and(lane, 3);
        let up = k.add(cols, SPAN - 1);
        Warp {
            format,
            thread,
            warp: k.shr(thread, 5),
            g: k.shr(lane, 2),
            t,
            is: [0, 1, 2, 3].map(|i| k.eq(t, i)),
            first_row: k.mul(block, ROWS),
            rows,
            cols,
            spans: k.shr(up, SPAN.trailing_zeros()),
        }
    }

    /// Bytes of a whole row, and where row `row` of the block begins; rows beyond the last repeat
    /// it, and their sums are not stored.
    fn row(&self, k: &mut Builder, w: Reg, row: Reg) -> (Reg, Reg) {
        let (values, bytes) = self.format.block();
        let blocks = k.div(self.cols, values);
        let last = k.sub(self.rows, 1);
        let row = k.add(self.first_row, row);
        let row = k.min(row, last);
        let zero = k.value(U32, 0);
        (k.mul(blocks, bytes), k.at_2d(w, row, blocks, zero, bytes))
    }

    /// Adds the products of a span to the sums of this lane's two rows.
    fn multiply(&self, k: &mut Builder, rows: &[Row; 2], x: &Split, sums: &[Reg]) {
        let products = self.products(k, rows, x);
        for (row, &sum) in sums.iter().enumerate() {
            let scales = self.format.scales(k, &rows[row], self.t);
            for (odd, scales) in scales.iter().enumerate() {
                for (part, Scale { scale, bias }) in scales.iter().enumerate() {
                    k.fma_assign(sum, *scale, products[part][odd][row]);
                    k.fma_assign(sum, *bias, x.totals[part][odd]);
                }
            }
        }
    }

    /// The products that mean something in this lane, by part of a run, odd or even run, and row.
    fn products(&self, k: &mut Builder, rows: &[Row; 2], x: &Split) -> Vec<[[Reg; 2]; 2]> {
        let (parts, bits) = (self.format.parts(), self.format.bits());
        let zeros = k.filled(F32, 4, 0.0f32);
        let kept: Vec<[[Reg; 2]; 2]> = (0..parts)
            .map(|_| [0, 1].map(|_| [k.reg(F32), k.reg(F32)]))
            .collect();
        let mut words = [Words::default(), Words::default()];
        for run in 0..SPAN / RUN {
            let odd = run as usize % 2;
            let mut sums = zeros.clone();
            for half in 0..2 {
                let place = self.format.half(run, half as u32);
                let [a, b] = [0, 1].map(|row| words[row].weights(k, &rows[row], bits, &place));
                for x in [x.high[half], x.low[half]] {
                    sums = mma(k, &[a[0], b[0], a[1], b[1]], &x, &sums);
                }
                if half + 1 == 2 || parts == 2 {
                    for (row, &kept) in kept[half % parts][odd].iter().enumerate() {
                        let new = sums[odd + 2 * row];
                        if run < 2 {
                            k.assign(kept, new);
                        } else {
                            k.guarded(self.is[run as usize / 2], true, |k| k.assign(kept, new));
                        }
                    }
                    sums.clone_from(&zeros);
                }
            }
        }
        kept
    }

    /// Adds up the lanes of each row, then warps; thread `i` stores row `i`.
    fn finish(&self, k: &mut Builder, sums: &[Reg], y: Reg) {
        let partial = k.shared("partial", F32, ROWS * WARPS);
        let to = k.fma(self.g, WARPS, self.warp);
        let to = k.fma(to, 4, partial);
        for (half, &sum) in sums.iter().enumerate() {
            let sum = over_lanes(k, Combine::Sum, sum, 4);
            let offset = (half as u32 * 8 * WARPS * 4) as i32;
            k.guarded(self.is[0], true, |k| k.st_shared(F32, to, offset, sum));
        }
        k.barrier();
        let row = k.add(self.first_row, self.thread);
        let (mine, exists) = (k.lt(self.thread, ROWS), k.lt(row, self.rows));
        let stores = k.and(mine, exists);
        k.when(stores, |k| {
            let from = k.fma(self.thread, WARPS * 4, partial);
            let mut parts = k.ld_vector(Op::LdShared, F32, 4, from, 0);
            parts.extend(k.ld_vector(Op::LdShared, F32, 4, from, 16));
            let sum = parts[0];
            for &part in &parts[1..] {
                k.add_assign(sum, part);
            }
            let y = k.at(y, row, 4);
            k.st_global(F32, y, 0, sum);
        });
    }
}

fn mma(k: &mut Builder, a: &[Reg; 4], b: &[Reg; 2], sums: &[Reg]) -> Vec<Reg> {
    let to = k.regs(F32, 4);
    let from = [
        Operand::from(a.as_slice()),
        b.as_slice().into(),
        sums.into(),
    ];
    k.emit(Op::MmaBf16, B32, &[to.as_slice().into()], &from);
    to
}

/// Blocks of 16 rows on their way through shared memory: for each row a window of whole units of
/// 16 bytes around a span's blocks. Lane `4g + t` copies every fourth unit of rows `g` and `g + 8`.
struct Ring {
    window: Window,
    copies: [Copy; 2],
    /// The next span to be asked for, and the stage that it goes to.
    span: Reg,
    filled: Reg,
    /// The two rows that this lane multiplies.
    rows: [Row; 2],
}

/// One lane's share of a row: where its first unit comes from, how much is left of the row there,
/// and where it goes in a stage.
struct Copy {
    from: Reg,
    left: Reg,
    to: Reg,
}

impl Ring {
    fn new(k: &mut Builder, warp: &Warp, w: Reg) -> Self {
        let window = Window::of(warp.format);
        let stage = ROWS * window.stride;
        let ring = k.dynamic_shared("ring", WARPS * STAGES * stage);
        let own = k.fma(warp.warp, STAGES * stage, ring);
        let share = |k: &mut Builder, further: u32| {
            let row = k.offset(warp.g, further);
            let to = k.fma(row, window.stride, own);
            let (bytes, begin) = warp.row(k, w, row);
            let at = k.at(begin, warp.warp, window.bytes);
            let row = Row::new(k, window.exact, to, at, warp.t);
            (Copy::new(k, warp.t, [at, begin, bytes], to), row)
        };
        let [(first, row), (second, row_8)] = [0, 8].map(|further| share(k, further));
        Ring {
            window,
            copies: [first, second],
            span: k.value(U32, warp.warp),
            filled: k.value(U32, 0),
            rows: [row, row_8],
        }
    }

    fn stage(&self) -> u32 {
        ROWS * self.window.stride
    }

    /// Asks for this warp's next span, if there is one.
    fn fill(&self, k: &mut Builder, warp: &Warp) {
        let some = k.lt(self.span, warp.spans);
        k.when(some, |k| {
            for copy in &self.copies {
                copy.start(k, warp.t, &self.window, self.filled);
            }
        });
        k.act(Op::CpAsyncCommit, &[]);
        k.add_assign(self.span, WARPS);
        next_stage(k, self.filled, self.stage());
    }
}

impl Copy {
    /// Of a row of `bytes` from `begin` on, whose span begins at `at`.
    fn new(k: &mut Builder, t: Reg, [at, begin, bytes]: [Reg; 3], to: Reg) -> Self {
        let unit = [at.into(), (-16i64).into()];
        let unit = k.op(Op::And, B64, U64, &unit);
        let from = k.at(unit, t, 16);
        let passed = k.sub(from, begin);
        let passed = k.convert(Op::CvtU32U64, U32, &[passed.into()]);
        Copy {
            from,
            left: k.op(Op::Sub, S32, S32, &[bytes.into(), passed.into()]),
            to: k.fma(t, 16, to),
        }
    }

    /// Copies this share of a span, and goes on to the warp's next.
    fn start(&self, k: &mut Builder, t: Reg, window: &Window, stage: Reg) {
        let to = k.add(self.to, stage);
        for first in (0..window.units).step_by(4) {
            let offset = 16 * first as i32;
            let mut bytes = k.value(S32, 16);
            if !window.exact {
                // Nothing beyond the row: it may be NaN, which times zero is one, too.
                let left = k.sub(self.left, offset);
                let some = k.max(left, 0);
                bytes = k.min(some, 16);
            }
            let places = [Operand::At(to, offset), Operand::At(self.from, offset)];
            let operands = [&places[..], &[16.into(), bytes.into()]].concat();
            let all = k.lt(t, window.units - first);
            k.guarded(all, true, |k| k.act(Op::CpAsync16, &operands));
        }
        let step = WARPS * window.bytes;
        k.add_assign(self.from, i64::from(step));
        k.add_assign(self.left, -(step as i32));
    }
}

/// This lane's eight values of `x`: four at `4t` of run `g`, and four 16 further.
struct Input {
    halves: [Vec<Reg>; 2],
}

/// The same as sums of two bf16 numbers, each half the first and the third, and the second and
/// the fourth; and the sums of runs `2t` and `2t + 1`, by part and run.
struct Split {
    high: [[Reg; 2]; 2],
    low: [[Reg; 2]; 2],
    totals: Vec<[Reg; 2]>,
}

impl Input {
    fn load(k: &mut Builder, warp: &Warp, x: Reg, span: Reg) -> Self {
        let run = k.fma(span, SPAN / RUN, warp.g);
        let in_run = k.mul(warp.t, 4);
        let col = k.fma(run, RUN, in_run);
        let at = k.at(x, col, 4);
        let inside = k.lt(col, warp.cols);
        let halves = [0, 64].map(|further| {
            let values = k.filled(F32, 4, 0.0f32);
            let to = [values.as_slice().into()];
            k.guarded(inside, true, |k| {
                k.emit(Op::LdGlobalNc, F32, &to, &[Operand::At(at, further)]);
            });
            values
        });
        Input { halves }
    }

    fn split(self, k: &mut Builder, warp: &Warp) -> Split {
        let mut sums = Vec::new();
        let mut pair = |k: &mut Builder, x: [Reg; 2]| {
            let (high, parts) = rounded(k, x);
            let rest = [k.sub(x[0], parts[0]), k.sub(x[1], parts[1])];
            let (low, rest) = rounded(k, rest);
            for (part, rest) in parts.into_iter().zip(rest) {
                sums.push(k.add(part, rest));
            }
            [high, low]
        };
        let halves = self
            .halves
            .map(|x| [pair(k, [x[0], x[2]]), pair(k, [x[1], x[3]])]);
        let of = |i: usize| halves.map(|[first, second]| [first[i], second[i]]);
        // What is multiplied is what is added up.
        let per_part = sums.len() / warp.format.parts();
        let totals = sums.chunks(per_part).map(|values| {
            let total = values[0];
            for &value in &values[1..] {
                k.add_assign(total, value);
            }
            let total = over_lanes(k, Combine::Sum, total, 4);
            [0, 4].map(|further| {
                let lane = k.fma(warp.t, 8, further);
                let from = [total.into(), lane.into(), 31.into(), ALL_LANES.into()];
                k.op(Op::ShflIdx, B32, F32, &from)
            })
        });
        Split {
            totals: totals.collect(),
            high: of(0),
            low: of(1),
        }
    }
}

/// Two numbers rounded to bf16, the first in the lower half, and what they are then.
fn rounded(k: &mut Builder, [a, b]: [Reg; 2]) -> (Reg, [Reg; 2]) {
    let both = k.convert(Op::CvtBf16x2F32, BF16x2, &[b.into(), a.into()]);
    let low = k.op(Op::Shl, B32, F32, &[both.into(), 16.into()]);
    let high = k.op(Op::And, B32, F32, &[both.into(), 0xffff_0000u32.into()]);
    (both, [low, high])
}
