//! Elementary functions on vectors, each of them a few lines that read the same in the shaders.
//!
//! NaN gives NaN everywhere. Results below `f32::MIN_POSITIVE` may be flushed to zero, except
//! by [`exp`].

use super::isa::{Isa, ROUNDING};
use crate::coefficients::{
    EXP, GELU_TANH_CUBIC, GELU_TANH_SCALE, LN2_HI, LN2_LO, LOG, LOG2_E, NORMAL_TAIL,
    NORMAL_TAIL_ARGUMENT,
};

/// What separates [⅔, 4/3) from its multiples by powers of two.
const TWO_THIRDS_BITS: i32 = (2.0_f32 / 3.0).to_bits() as i32;

/// `Σ coefficients[k] · xᵏ` by Horner's rule.
#[inline(always)]
fn polynomial<I: Isa, const N: usize>(
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
fn reduce<I: Isa>(isa: I, x: I::F32, n: I::F32) -> I::F32 {
    let n = isa.rounded(n);
    let r = isa.neg_mul_add(n, isa.constant(&LN2_HI), x);
    isa.neg_mul_add(n, isa.constant(&LN2_LO), r)
}

/// The integer nearest to x / ln 2, as [`Isa::round_product`] gives it: all integers below are.
#[inline(always)]
fn exponent<I: Isa>(isa: I, x: I::F32) -> I::F32 {
    isa.round_product(x, isa.constant(&LOG2_E))
}

/// `eʳ − 1` for |r| ≤ ½ ln 2.
#[inline(always)]
fn expm1_reduced<I: Isa>(isa: I, r: I::F32) -> I::F32 {
    isa.mul_add(isa.mul(r, r), polynomial(isa, r, &EXP), r)
}

/// `n` and `p` with eˣ = p · 2ⁿ and p in [0.7, 1.42].
#[inline(always)]
fn exp_parts<I: Isa>(isa: I, x: I::F32) -> (I::F32, I::F32) {
    let n = exponent(isa, x);
    let e = expm1_reduced(isa, reduce(isa, x, n));
    (n, isa.add(e, isa.constant(&1.0)))
}

/// `eˣ`, denormals and overflow to infinity included.
#[inline(always)]
pub(super) fn exp<I: Isa>(isa: I, x: I::F32) -> I::F32 {
    // Beyond these bounds the result is 0 and ∞.
    let x = isa.at_most(isa.at_least(x, isa.constant(&-104.0)), isa.constant(&89.0));
    let (n, p) = exp_parts(isa, x);
    isa.scale_exp2(p, n)
}

/// `eˣ` for sums with numbers near one, x ≤ 0: 0 stands for results below 2⁻¹²⁶.
#[inline(always)]
pub(super) fn exp_negative<I: Isa>(isa: I, x: I::F32) -> I::F32 {
    // A bound that rounds to n = −127.
    let (n, p) = exp_parts(isa, isa.at_least(x, isa.constant(&-87.8)));
    isa.scale_exp2_normal(p, n)
}

/// `eˣ` for sums with numbers near one: 0 may stand for results below 2⁻¹²⁶, infinity for
/// results above 2¹²⁷.
#[inline(always)]
fn exp_normal<I: Isa>(isa: I, x: I::F32) -> I::F32 {
    // A bound that rounds to n = 128.
    exp_negative(isa, isa.at_most(x, isa.constant(&88.8)))
}

/// `eˣ − 1` for x ≤ 0, accurate relative to the result.
#[inline(always)]
pub(super) fn expm1_negative<I: Isa>(isa: I, x: I::F32) -> I::F32 {
    // e⁻²⁵ is lost beside 1.
    let x = isa.at_least(x, isa.constant(&-25.0));
    let n = exponent(isa, x);
    let r = reduce(isa, x, n);
    let scale = isa.scale_exp2_normal(isa.constant(&1.0), n);
    isa.mul_add(
        scale,
        expm1_reduced(isa, r),
        isa.sub(scale, isa.constant(&1.0)),
    )
}

/// Natural logarithm: NaN below zero, −∞ at zero.
#[inline(always)]
pub(super) fn log<I: Isa>(isa: I, x: I::F32) -> I::F32 {
    let denormal = isa.lt(x, isa.constant(&f32::MIN_POSITIVE));
    let normal = isa.select(denormal, isa.mul(x, isa.constant(&((1 << 25) as f32))), x);
    // normal = m · 2ᵏ with ⅔ ≤ m < 4/3.
    let bits = isa.to_bits(normal);
    let k = isa.sub_bits(bits, isa.constant_bits(&TWO_THIRDS_BITS));
    let k = isa.shr_exponent(k);
    let m = isa.reinterpret(isa.sub_bits(bits, isa.shl_exponent(k)));
    let k = isa.bits_to_float(k);
    let k = isa.select(denormal, isa.sub(k, isa.constant(&25.0)), k);

    let f = isa.sub(m, isa.constant(&1.0));
    let square = isa.mul(f, f);
    let tail = isa.mul(isa.mul(f, square), polynomial(isa, f, &LOG));
    let tail = isa.mul_add(k, isa.constant(&LN2_LO), tail);
    let tail = isa.neg_mul_add(square, isa.constant(&0.5), tail);
    let value = isa.mul_add(k, isa.constant(&LN2_HI), isa.add(f, tail));

    let value = isa.select(isa.lt(x, isa.constant(&f32::INFINITY)), value, x);
    let value = isa.select(isa.lt(x, isa.splat(0.0)), isa.constant(&f32::NAN), value);
    isa.select(
        isa.eq(x, isa.splat(0.0)),
        isa.constant(&f32::NEG_INFINITY),
        value,
    )
}

/// Hyperbolic tangent as −e / (2 + e), e = exp(−2|x|) − 1, with the sign of `x`.
#[inline(always)]
pub(super) fn tanh<I: Isa>(isa: I, x: I::F32) -> I::F32 {
    let e = expm1_negative(isa, isa.mul(isa.abs(x), isa.constant(&-2.0)));
    let magnitude = isa.div(isa.abs(e), isa.add(e, isa.constant(&2.0)));
    isa.with_sign(magnitude, x)
}

/// Logistic function `1 / (1 + e⁻ˣ)`.
#[inline(always)]
pub(super) fn sigmoid<I: Isa>(isa: I, x: I::F32) -> I::F32 {
    let one = isa.constant(&1.0);
    isa.div(one, isa.add(one, exp_normal(isa, isa.neg(x))))
}

/// `x / (1 + e⁻ᵗ)`, accurate relative to the result also where the exponential alone would
/// overflow or underflow. Where t < 0, `x` must be at least −170.
#[inline(always)]
fn times_sigmoid<I: Isa>(isa: I, x: I::F32, t: I::F32) -> I::F32 {
    let one = isa.constant(&1.0);
    let (n, p) = exp_parts(
        isa,
        isa.at_least(isa.neg(isa.abs(t)), isa.constant(&-170.0)),
    );
    // For t < 0 the quotient is extended by eᵗ, so that only small exponentials occur.
    let small = isa.scale_exp2_normal(p, isa.at_least(n, isa.constant(&(ROUNDING - 127.0))));
    let negative = isa.scale_exp2(isa.mul(x, p), n);
    let numerator = isa.select(isa.ge(t, isa.splat(0.0)), x, negative);
    isa.div(numerator, isa.add(one, small))
}

/// Swish, `x / (1 + e⁻ˣ)`.
#[inline(always)]
pub(super) fn swish<I: Isa>(isa: I, x: I::F32) -> I::F32 {
    let x = isa.at_least(x, isa.constant(&-170.0));
    times_sigmoid(isa, x, x)
}

/// GELU by the tanh formula: ½ (1 + tanh u) = 1 / (1 + e^(−2u)) spares the cancellation.
#[inline(always)]
pub(super) fn gelu_tanh<I: Isa>(isa: I, x: I::F32) -> I::F32 {
    let x = isa.at_least(x, isa.constant(&-170.0));
    let cubic = isa.mul(isa.mul(x, x), isa.constant(&GELU_TANH_CUBIC));
    let twice_u = isa.mul(isa.mul_add(cubic, x, x), isa.constant(&GELU_TANH_SCALE));
    times_sigmoid(isa, x, twice_u)
}

/// −t²/2 as a rounded number and what the rounding took away.
#[inline(always)]
fn half_square<I: Isa>(isa: I, t: I::F32) -> (I::F32, I::F32) {
    let minus_half = isa.constant(&-0.5);
    if I::FUSED {
        let s = isa.mul(t, minus_half);
        let high = isa.mul(s, t);
        return (high, isa.mul_add(s, t, isa.neg(high)));
    }
    // t² = h² + (t − h)(t + h), where h has 12 bits and its square is exact.
    let h = isa.reinterpret(isa.and_bits(isa.to_bits(t), isa.constant_bits(&!0xFFF)));
    let high = isa.mul(isa.mul(h, h), minus_half);
    let low = isa.mul(isa.mul(isa.sub(t, h), minus_half), isa.add(t, h));
    (high, low)
}

/// GELU, `x · Φ(x)`: the lower tail Φ(−|x|) is accurate relative to itself, and the upper is
/// its complement.
#[inline(always)]
pub(super) fn gelu<I: Isa>(isa: I, x: I::F32) -> I::F32 {
    let one = isa.constant(&1.0);
    let bounded = isa.at_most(isa.at_least(x, isa.constant(&-15.0)), isa.constant(&15.0));
    let t = isa.abs(bounded);
    let (high, low) = half_square(isa, t);
    let n = exponent(isa, isa.add(high, low));
    let r = isa.add(reduce(isa, high, n), low);
    let p = isa.add(expm1_reduced(isa, r), one);

    let argument = isa.constant(&NORMAL_TAIL_ARGUMENT);
    let u = isa.div(one, isa.mul_add(argument, t, one));
    let p = isa.mul(p, isa.mul(u, polynomial(isa, u, &NORMAL_TAIL)));
    let tail = isa.scale_exp2(isa.mul(bounded, p), n);
    isa.select(isa.ge(x, isa.splat(0.0)), isa.sub(x, tail), tail)
}
