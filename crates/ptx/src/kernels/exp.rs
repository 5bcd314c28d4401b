//! The exponential function with f32 accuracy. The hardware's `ex2` is an approximation, and
//! rounding its argument adds a larger error.

use crate::build::Builder;
use crate::inst::{Op, Reg};
use crate::types::PtxType::{B32, F32, S32};
use relampago_coefficients::{EXP, LN2_HI, LN2_LO, LOG2_E};

/// `1.5 · 2²³`: adding it rounds to an integer in the lowest bits.
const WHOLE: f32 = 12_582_912.0;

/// Computes `eˣ` of an f32 with a relative error below 2⁻²³, including denormal results and
/// infinity.
///
/// `x = n · ln 2 + r` with `|r| ≤ ½ ln 2`, by the reduction and the polynomial of
/// [`relampago_coefficients`].
pub(super) fn exp(k: &mut Builder, x: Reg) -> Reg {
    // Outside these bounds the result is 0 or ∞.
    let bounded = k.max(x, -104.0f32);
    let bounded = k.min(bounded, 89.0f32);
    let shifted = k.fma(bounded, LOG2_E, WHOLE);
    let n = k.sub(shifted, WHOLE);
    let r = k.fma(n, -LN2_HI, bounded);
    let r = k.fma(n, -LN2_LO, r);
    let [constant, rest @ ..] = EXP;
    let mut polynomial = k.value(F32, rest[3]);
    for coefficient in [rest[2], rest[1], rest[0], constant] {
        polynomial = k.fma(polynomial, r, coefficient);
    }
    let square = k.mul(r, r);
    let less_one = k.fma(square, polynomial, r);
    let power = k.add(less_one, 1.0f32);
    let power = times_power_of_two(k, power, shifted);
    // Clamping replaced NaN by a number; restore it.
    let number = k.eq(x, x);
    k.select(number, power, x)
}

/// Computes `power · 2ⁿ`, where `shifted` is `n +` [`WHOLE`]. It multiplies by two factors, since
/// 2ⁿ may not be a normal number.
fn times_power_of_two(k: &mut Builder, power: Reg, shifted: Reg) -> Reg {
    let bits = k.op(Op::Mov, B32, S32, &[shifted.into()]);
    let n = k.sub(bits, WHOLE.to_bits());
    let half = k.shr(n, 1);
    let rest = k.sub(n, half);
    let mut scaled = power;
    for exponent in [half, rest] {
        let biased = k.add(exponent, 127);
        let bits = k.shl(biased, 23);
        let factor = k.op(Op::Mov, B32, F32, &[bits.into()]);
        scaled = k.mul(scaled, factor);
    }
    scaled
}
