//! The vector of a gemv with quantised weights, as digits that tensor cores multiply exactly.

use super::mma::{WARPS, Warp};
use super::spans::{RUN, SPAN, Scale};
use super::window::Window;
use crate::build::{ALL_LANES, Builder};
use crate::inst::{Op, Operand, Reg};
use crate::kernels::common::{Combine, over_lanes};
use crate::types::PtxType::{self, B32, F32, U32};

/// This lane's eight values of `x`, of the span at hand: four of run `g`, and four
/// [`Window::apart`] from them.
pub(super) struct Input {
    values: [Vec<Reg>; 2],
    /// The elements of the next span, being loaded.
    later: [Vec<Reg>; 2],
    x: Reg,
    /// The distance in bytes from the first four elements to the second four.
    apart: i32,
    /// The first value of the warp's first span, and of the next to be asked for.
    first: Reg,
    col: Reg,
}

/// The two digits of these values; the unit of the lower and the sum of `x`, of runs `2t` and
/// `2t + 1`.
pub(super) struct Digits {
    pub(super) high: [Reg; 2],
    pub(super) low: [Reg; 2],
    pub(super) unit: [Reg; 2],
    pub(super) total: [Reg; 2],
}

impl Input {
    pub(super) fn new(k: &mut Builder, warp: &Warp, x: Reg) -> Self {
        let [lanes, halves] = Window::of(warp.format).apart();
        let run = k.fma(warp.number, SPAN / RUN, warp.g);
        let in_run = k.mul(warp.t, lanes);
        let first = k.fma(run, RUN, in_run);
        Input {
            values: [0, 1].map(|_| k.filled(F32, 4, 0.0f32)),
            later: [0, 1].map(|_| k.filled(F32, 4, 0.0f32)),
            x,
            apart: 4 * halves as i32,
            first,
            col: k.value(U32, first),
        }
    }

    /// Back to the first span.
    pub(super) fn begin(&self, k: &mut Builder, warp: &Warp) {
        k.assign(self.col, self.first);
        self.ask(k, warp);
    }

    /// On to the next span.
    pub(super) fn advance(&self, k: &mut Builder, warp: &Warp) {
        let later = self.later.iter().flatten();
        for (&to, &from) in self.values.iter().flatten().zip(later) {
            k.assign(to, from);
        }
        self.ask(k, warp);
    }

    /// Asks for the span to come. Beyond the last the values of another one stay, whose scales are 0.
    fn ask(&self, k: &mut Builder, warp: &Warp) {
        let inside = k.lt(self.col, warp.cols);
        let x = k.at(self.x, self.col, 4);
        for (half, values) in self.later.iter().enumerate() {
            let to = [values.as_slice().into()];
            k.guarded(inside, true, |k| {
                let from = Operand::At(x, self.apart * half as i32);
                k.emit(Op::LdGlobalNc, F32, &to, &[from]);
            });
        }
        k.add_assign(self.col, WARPS * SPAN);
    }

    /// Makes the digits of the span at hand.
    pub(super) fn make(&self, k: &mut Builder) -> Made {
        Made::new(k, &self.values)
    }
}

/// The digits that a lane computes from its own values, and the unit and the sum of its run.
pub(super) struct Made {
    pub(super) high: [Reg; 2],
    pub(super) low: [Reg; 2],
    pub(super) unit: Reg,
    pub(super) total: Reg,
}

impl Made {
    fn new(k: &mut Builder, values: &[Vec<Reg>; 2]) -> Self {
        let all = values.concat();
        // The largest magnitude; a little more, so that the upper digit does not overflow, and
        // not so little that the factor does.
        let largest = k.value(F32, 1e-30f32);
        for &value in &all {
            let size = k.abs(value);
            Combine::Max.apply(k, largest, size);
        }
        let largest = over_lanes(k, Combine::Max, largest, 4);
        let largest = k.mul(largest, 1.0 + 1.0 / 64.0);
        let total = k.value(F32, all[0]);
        for &value in &all[1..] {
            k.add_assign(total, value);
        }
        let total = over_lanes(k, Combine::Sum, total, 4);
        let (factor, unit) = scaled(k, largest);
        // What is not finite is so in no digit, but in the unit.
        let unit = k.fma(total, 0.0f32, unit);
        let [first, second] = values.each_ref().map(|values| digits(k, values, factor));
        Made {
            high: [first.0, second.0],
            low: [first.1, second.1],
            unit,
            total,
        }
    }

    /// Exchanges the units and sums, so that the lane has those of runs `2t` and `2t + 1`.
    pub(super) fn share(&self, k: &mut Builder, warp: &Warp) -> Digits {
        let mut of_runs = |value: Reg| {
            [0, 4].map(|further| {
                let lane = k.fma(warp.t, 8, further);
                let from = [value.into(), lane.into(), 31.into(), ALL_LANES.into()];
                k.op(Op::ShflIdx, B32, F32, &from)
            })
        };
        Digits {
            unit: of_runs(self.unit),
            total: of_runs(self.total),
            high: self.high,
            low: self.low,
        }
    }
}

/// The power of two that brings numbers of up to `largest` below 2¹⁵, and its inverse.
fn scaled(k: &mut Builder, largest: Reg) -> (Reg, Reg) {
    let exponent = [largest.into(), 0x7f80_0000.into()];
    let exponent = k.op(Op::And, B32, U32, &exponent);
    let inverse = k.sub(exponent, 14 << 23);
    let twice = k.value(U32, (127 + 127 + 14) << 23);
    let factor = k.sub(twice, exponent);
    (bits_as(k, F32, factor), bits_as(k, F32, inverse))
}

fn bits_as(k: &mut Builder, ty: PtxType, bits: Reg) -> Reg {
    k.op(Op::Mov, B32, ty, &[bits.into()])
}

/// The upper and the lower digits of four numbers times `factor`, rounded.
fn digits(k: &mut Builder, values: &[Reg], factor: Reg) -> (Reg, Reg) {
    // 1.5 · 2²³ + a whole number has that as its lowest bits.
    let whole: Vec<Reg> = values
        .iter()
        .map(|&x| k.fma(x, factor, 12_582_912.0f32))
        .collect();
    // The lower digit is signed: half of its range belongs to the next upper one.
    let up = whole.iter().map(|&whole| {
        let bits = bits_as(k, U32, whole);
        k.add(bits, 128)
    });
    let up: Vec<Reg> = up.collect();
    let mut bytes = |of: &[Reg], select: u32| {
        let mut pair = |a: Reg, b: Reg, select: u32| {
            k.op(Op::Prmt, B32, B32, &[a.into(), b.into(), select.into()])
        };
        let (first, second) = (pair(of[0], of[1], select), pair(of[2], of[3], select));
        pair(first, second, 0x5410)
    };
    (bytes(&up, 0x0051), bytes(&whole, 0x0040))
}

impl Digits {
    /// Adds a run's share to a row's sum.
    pub(super) fn add(&self, k: &mut Builder, sum: Reg, scale: &Scale, product: Reg, odd: usize) {
        let product = k.convert(Op::CvtF32S32, F32, &[product.into()]);
        let factor = k.mul(scale.scale, self.unit[odd]);
        k.fma_assign(sum, factor, product);
        if let Some(minimum) = scale.minimum {
            let minus = k.neg(minimum);
            k.fma_assign(sum, minus, self.total[odd]);
        }
    }
}
