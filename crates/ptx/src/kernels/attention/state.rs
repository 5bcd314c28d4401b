//! A running maximum, and sums relative to it (Milakov and Gimelshein, 2018), of eight values a lane.

use crate::build::Builder;
use crate::inst::{Op, Reg};
use crate::kernels::common::{Combine, WARP};
use crate::types::PtxType::{self, B32, BF16, F16, F32};

/// The number of elements of a head that a lane has.
pub(super) const LANE: u32 = 8;
/// No more than any score but −∞, and still a number.
pub(super) const LOWEST: f32 = f32::MIN;

/// Turns scores into weights relative to `max`, `2^(score · unit − max · unit)`, and adds these to a total.
pub(super) fn weigh(k: &mut Builder, scores: &[Reg], [max, unit]: [Reg; 2], total: Reg) {
    let base = k.mul(max, unit);
    let base = k.neg(base);
    // The lowest maximum times the unit may be −∞, from which −∞ must be apart.
    let base = k.min(base, f32::MAX);
    for &score in scores {
        let power = k.fma(score, unit, base);
        k.emit(Op::Ex2, F32, &[score.into()], &[power.into()]);
        k.add_assign(total, score);
    }
}

/// The largest of the parts' maxima, the sum relative to it, and each part's weight.
pub(super) fn together(k: &mut Builder, parts: &[[Reg; 2]]) -> (Reg, Reg, Vec<Reg>) {
    let max = k.value(F32, parts[0][0]);
    for [other, _] in &parts[1..] {
        Combine::Max.apply(k, max, *other);
    }
    let sum = k.value(F32, 0.0f32);
    let weights = parts.iter().map(|[of_part, part]| {
        let down = k.sub(*of_part, max);
        let weight = k.ex2(down);
        k.fma_assign(sum, weight, *part);
        weight
    });
    let weights = weights.collect();
    (max, sum, weights)
}

/// Pairs of 16-bit numbers as f32.
pub(super) fn numbers(k: &mut Builder, ty: PtxType, words: &[Reg]) -> Vec<Reg> {
    let mut values = Vec::new();
    for &word in words {
        if ty == BF16 {
            values.push(k.op(Op::Shl, B32, F32, &[word.into(), 16.into()]));
            values.push(k.op(Op::And, B32, F32, &[word.into(), 0xffff_0000u32.into()]));
        } else {
            let halves = k.regs(F16, 2);
            k.emit(Op::Unpack, B32, &[halves.as_slice().into()], &[word.into()]);
            for half in halves {
                values.push(k.convert(Op::CvtF32F16, F32, &[half.into()]));
            }
        }
    }
    values
}

/// The running sums over a team's keys so far, relative to the largest score.
pub(super) struct State {
    pub(super) max: Reg,
    pub(super) sum: Reg,
    pub(super) sums: Vec<Reg>,
}

impl State {
    pub(super) fn new(k: &mut Builder) -> Self {
        State {
            max: k.value(F32, LOWEST),
            sum: k.value(F32, 0.0f32),
            sums: k.filled(F32, LANE as usize, 0.0f32),
        }
    }

    pub(super) fn add(&self, k: &mut Builder, scores: &[Reg], values: &[Vec<Reg>]) {
        let max = k.value(F32, self.max);
        for &score in scores {
            Combine::Max.apply(k, max, score);
        }
        let down = k.sub(self.max, max);
        let rescale = k.ex2(down);
        k.assign(self.max, max);
        for &sum in self.sums.iter().chain([&self.sum]) {
            k.mul_assign(sum, rescale);
        }
        for (&score, values) in scores.iter().zip(values) {
            let down = k.sub(score, max);
            let weight = k.ex2(down);
            k.add_assign(self.sum, weight);
            for (&sum, &value) in self.sums.iter().zip(values) {
                k.fma_assign(sum, weight, value);
            }
        }
    }

    /// Combines the teams of the warp. Every team gets the result.
    pub(super) fn over_teams(&self, k: &mut Builder, team: u32) -> State {
        let max = k.value(F32, self.max);
        let mut mask = team;
        while mask < WARP {
            let other = k.shuffle_xor(max, mask);
            Combine::Max.apply(k, max, other);
            mask *= 2;
        }
        let down = k.sub(self.max, max);
        let rescale = k.ex2(down);
        let mut total = |value: Reg| {
            let total = k.mul(value, rescale);
            let mut mask = team;
            while mask < WARP {
                let other = k.shuffle_xor(total, mask);
                k.add_assign(total, other);
                mask *= 2;
            }
            total
        };
        State {
            max,
            sum: total(self.sum),
            sums: self.sums.iter().map(|&sum| total(sum)).collect(),
        }
    }
}
