//! The vector of a gemv with quantised weights, as digits that tensor cores multiply exactly.

use super::mma::{WARPS, Warp};
use super::spans::{RUN, SPAN, Scale};
use super::window::Window;
use crate::build::{ALL_LANES, Builder};
use crate::inst::{Op, Operand, Reg};
use crate::kernels::integers::{RunScale, four_bytes};
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
        let RunScale {
            factor,
            unit,
            total,
        } = RunScale::new(k, &values.concat(), 4, 14);
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
    let mut bytes = |of: &[Reg], index| four_bytes(k, [of[0], of[1], of[2], of[3]], index);
    (bytes(&up, 1), bytes(&whole, 0))
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
