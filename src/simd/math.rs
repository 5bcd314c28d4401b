//! Elementary functions on vectors, each of them a few lines that read the same in the shaders.
//!
//! NaN gives NaN everywhere. Results below `f32::MIN_POSITIVE` may be flushed to zero, except
//! by [`exp`].

use std::f32::consts::LN_2;

use super::isa::{Isa, ROUNDING, constant, constant_bits};
use relampago_coefficients::{
    EXP, EXP_SHORT, GELU_TANH_CUBIC, GELU_TANH_SCALE, LN2_HI, LN2_LO, LOG, LOG2_E, NORMAL_TAIL,
    NORMAL_TAIL_ARGUMENT,
};

/// eʳ for |r| ≤ ½ ln 2, and the same by [`EXP_SHORT`].
const WHOLE_EXP: [f32; 7] = [1.0, 1.0, EXP[0], EXP[1], EXP[2], EXP[3], EXP[4]];
const WHOLE_EXP_SHORT: [f32; 6] = [
    1.0,
    1.0,
    EXP_SHORT[0],
    EXP_SHORT[1],
    EXP_SHORT[2],
    EXP_SHORT[3],
];

/// What separates [⅔, 4/3) from its multiples by powers of two.
const TWO_THIRDS_BITS: i32 = (2.0_f32 / 3.0).to_bits() as i32;

/// `Σ coefficients[k] · xᵏ` by Horner's rule.
#[inline(always)]
pub(super) fn polynomial<I: Isa, const N: usize>(
    isa: I,
    x: I::F32,
    coefficients: &'static [f32; N],
) -> I::F32 {
    let mut value = isa.constant(&coefficients[N - 1]);
    let mut k = N - 1;
    while k > 0 {
        k -= 1;
        value = isa.mul_add(value, x, isa.constant(&coefficients[k]));
    }
    value
}

/// `x − n · ln 2`, exact but for a last rounding where `n` is near x / ln 2.
#[inline(always)]
pub(super) fn reduce<I: Isa>(isa: I, x: I::F32, n: I::F32) -> I::F32 {
    let n = isa.rounded(n);
    let r = isa.neg_mul_add(n, constant!(isa, LN2_HI), x);
    isa.neg_mul_add(n, constant!(isa, LN2_LO), r)
}

/// The integer nearest to x / ln 2, as [`Isa::round_product`] gives it: all integers below are.
#[inline(always)]
pub(super) fn exponent<I: Isa>(isa: I, x: I::F32) -> I::F32 {
    isa.round_product(x, constant!(isa, LOG2_E))
}

/// `eʳ − 1` for |r| ≤ ½ ln 2.
#[inline(always)]
fn expm1_reduced<I: Isa>(isa: I, r: I::F32) -> I::F32 {
    isa.mul_add(isa.mul(r, r), polynomial(isa, r, &EXP), r)
}

/// `eʳ` for |r| ≤ ½ ln 2.
#[inline(always)]
fn exp_reduced<I: Isa>(isa: I, r: I::F32) -> I::F32 {
    polynomial(isa, r, &WHOLE_EXP)
}

/// `n` and `p` with eˣ = p · 2ⁿ and p in [0.7, 1.42].
#[inline(always)]
pub(super) fn exp_parts<I: Isa>(isa: I, x: I::F32) -> (I::F32, I::F32) {
    let n = exponent(isa, x);
    (n, exp_reduced(isa, reduce(isa, x, n)))
}

/// `eˣ`, denormals and overflow to infinity included.
#[inline(always)]
pub(super) fn exp<I: Isa>(isa: I, x: I::F32) -> I::F32 {
    // Beyond these bounds the result is 0 and ∞.
    let x = isa.at_most(
        isa.at_least(x, constant!(isa, -104.0)),
        constant!(isa, 89.0),
    );
    let (n, p) = exp_parts(isa, x);
    isa.scale_exp2(p, n)
}

/// `eˣ` for sums with numbers near one, x ≤ 0: within 1.5 ULP and one more for every 40 that `x` is below
/// zero, where a rounding of `x` counts for twenty. 0 stands for results below 2⁻¹²⁶.
#[inline(always)]
pub(super) fn exp_difference<I: Isa>(isa: I, x: I::F32) -> I::F32 {
    // A bound that rounds to n = −127.
    let x = isa.at_least(x, constant!(isa, -87.8));
    let n = exponent(isa, x);
    let r = if I::FUSED {
        isa.neg_mul_add(isa.rounded(n), constant!(isa, LN_2), x)
    } else {
        reduce(isa, x, n)
    };
    isa.scale_exp2_normal(polynomial(isa, r, &WHOLE_EXP_SHORT), n)
}

/// `eˣ` for sums with numbers near one: 0 may stand for results below 2⁻¹²⁶, infinity for
/// results above 2¹²⁷.
#[inline(always)]
pub(super) fn exp_normal<I: Isa>(isa: I, x: I::F32) -> I::F32 {
    // Bounds that round to n = −127 and 128.
    let x = isa.at_least(x, constant!(isa, -87.8));
    let (n, p) = exp_parts(isa, isa.at_most(x, constant!(isa, 88.8)));
    isa.scale_exp2_normal(p, n)
}

/// `eˣ − 1` for x ≤ 0, accurate relative to the result.
#[inline(always)]
pub(super) fn expm1_negative<I: Isa>(isa: I, x: I::F32) -> I::F32 {
    // e⁻²⁵ is lost beside 1.
    let x = isa.at_least(x, constant!(isa, -25.0));
    let n = exponent(isa, x);
    let r = reduce(isa, x, n);
    let scale = isa.scale_exp2_normal(constant!(isa, 1.0), n);
    isa.mul_add(
        scale,
        expm1_reduced(isa, r),
        isa.sub(scale, constant!(isa, 1.0)),
    )
}

/// Natural logarithm: NaN below zero, −∞ at zero.
#[inline(always)]
pub(super) fn log<I: Isa>(isa: I, x: I::F32) -> I::F32 {
    let denormal = isa.lt(x, constant!(isa, f32::MIN_POSITIVE));
    let normal = isa.select(denormal, isa.mul(x, constant!(isa, ((1 << 25) as f32))), x);
    // normal = m · 2ᵏ with ⅔ ≤ m < 4/3.
    let bits = isa.to_bits(normal);
    let k = isa.sub_bits(bits, constant_bits!(isa, TWO_THIRDS_BITS));
    let k = isa.shr_exponent(k);
    let m = isa.reinterpret(isa.sub_bits(bits, isa.shl_exponent(k)));
    let k = isa.bits_to_float(k);
    let k = isa.select(denormal, isa.sub(k, constant!(isa, 25.0)), k);

    let f = isa.sub(m, constant!(isa, 1.0));
    let square = isa.mul(f, f);
    let tail = isa.mul(isa.mul(f, square), polynomial(isa, f, &LOG));
    let tail = isa.mul_add(k, constant!(isa, LN2_LO), tail);
    let tail = isa.neg_mul_add(square, constant!(isa, 0.5), tail);
    let value = isa.mul_add(k, constant!(isa, LN2_HI), isa.add(f, tail));

    let value = isa.select(isa.lt(x, constant!(isa, f32::INFINITY)), value, x);
    let value = isa.select(isa.lt(x, isa.splat(0.0)), constant!(isa, f32::NAN), value);
    isa.select(
        isa.eq(x, isa.splat(0.0)),
        constant!(isa, f32::NEG_INFINITY),
        value,
    )
}

/// Hyperbolic tangent as −e / (2 + e), e = exp(−2|x|) − 1, with the sign of `x`.
#[inline(always)]
pub(super) fn tanh<I: Isa>(isa: I, x: I::F32) -> I::F32 {
    let e = expm1_negative(isa, isa.mul(isa.abs(x), constant!(isa, -2.0)));
    let magnitude = isa.div(isa.abs(e), isa.add(e, constant!(isa, 2.0)));
    isa.with_sign(magnitude, x)
}

/// Logistic function `1 / (1 + e⁻ˣ)`.
#[inline(always)]
pub(super) fn sigmoid<I: Isa>(isa: I, x: I::F32) -> I::F32 {
    let one = constant!(isa, 1.0);
    isa.div(one, isa.add(one, exp_normal(isa, isa.neg(x))))
}

/// `x / (1 + e⁻ᵗ)`, accurate relative to the result also where the exponential alone would
/// overflow or underflow. Where t < 0, `x` must be at least −170.
#[inline(always)]
pub(super) fn times_sigmoid<I: Isa>(isa: I, x: I::F32, t: I::F32) -> I::F32 {
    let one = constant!(isa, 1.0);
    let (n, p) = exp_parts(
        isa,
        isa.at_least(isa.neg(isa.abs(t)), constant!(isa, -170.0)),
    );
    // For t < 0 the quotient is extended by eᵗ, so that only small exponentials occur.
    let small = isa.scale_exp2_normal(p, isa.at_least(n, constant!(isa, (ROUNDING - 127.0))));
    let negative = isa.scale_exp2_down(isa.mul(x, p), n);
    let numerator = isa.select(isa.ge(t, isa.splat(0.0)), x, negative);
    isa.div(numerator, isa.add(one, small))
}

/// Swish, `x / (1 + e⁻ˣ)`.
#[inline(always)]
pub(super) fn swish<I: Isa>(isa: I, x: I::F32) -> I::F32 {
    let x = isa.at_least(x, constant!(isa, -170.0));
    times_sigmoid(isa, x, x)
}

/// GELU by the tanh formula: ½ (1 + tanh u) = 1 / (1 + e^(−2u)) spares the cancellation.
#[inline(always)]
pub(super) fn gelu_tanh<I: Isa>(isa: I, x: I::F32) -> I::F32 {
    let x = isa.at_least(x, constant!(isa, -170.0));
    let cubic = isa.mul(isa.mul(x, x), constant!(isa, GELU_TANH_CUBIC));
    let twice_u = isa.mul(isa.mul_add(cubic, x, x), constant!(isa, GELU_TANH_SCALE));
    times_sigmoid(isa, x, twice_u)
}

/// `n` and `p` with e^(−t²/2) = p · 2ⁿ and p in [0.7, 1.42], for |t| ≤ 15: a rounding of the square
/// would be 113 times as large in the exponential.
#[inline(always)]
pub(super) fn exp_half_square_parts<I: Isa>(isa: I, t: I::F32) -> (I::F32, I::F32) {
    let half = isa.mul(t, constant!(isa, 0.5));
    let (n, r) = if I::FUSED {
        let n = isa.round_product(isa.mul(half, t), constant!(isa, -LOG2_E));
        let integer = isa.rounded(n);
        // Products with the high part are exact, and the square is one within the sum.
        let r = isa.neg_mul_add(half, t, isa.mul(integer, constant!(isa, -LN2_HI)));
        (n, isa.neg_mul_add(integer, constant!(isa, LN2_LO), r))
    } else {
        // t² = h² + (t − h)(t + h), where h has 12 bits and its square is exact.
        let h = isa.reinterpret(isa.and_bits(isa.to_bits(t), constant_bits!(isa, !0xFFF)));
        let high = isa.mul(isa.mul(h, h), constant!(isa, -0.5));
        let low = isa.mul(isa.mul(isa.sub(h, t), constant!(isa, 0.5)), isa.add(t, h));
        let n = exponent(isa, isa.add(high, low));
        (n, isa.add(reduce(isa, high, n), low))
    };
    (n, exp_reduced(isa, r))
}

/// GELU, `x · Φ(x)`: the lower tail Φ(−|x|) is accurate relative to itself, and the upper is
/// its complement, so that x · Φ(x) = max(x, 0) − |x| · Φ(−|x|).
#[inline(always)]
pub(super) fn gelu<I: Isa>(isa: I, x: I::F32) -> I::F32 {
    let one = constant!(isa, 1.0);
    let t = isa.at_most(isa.abs(x), constant!(isa, 15.0));
    let (n, p) = exp_half_square_parts(isa, t);
    let u = isa.div(
        one,
        isa.mul_add(constant!(isa, NORMAL_TAIL_ARGUMENT), t, one),
    );
    let p = isa.mul(p, isa.mul(u, polynomial(isa, u, &NORMAL_TAIL)));
    let tail = isa.scale_exp2_down(isa.mul(t, p), n);
    isa.sub(isa.at_least(x, isa.splat(0.0)), tail)
}
