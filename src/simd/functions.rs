//! The functions of the elementwise operations. A function has the name of its [`Op`] variant and
//! the names of that variant's parameters.

use super::elementwise::{Binary, Unary, Visitor, binary, unary};
use super::isa::{Isa, ROUNDING, constant, constant_bits};
use super::math;
use crate::ops::Op;
use relampago_coefficients::{
    ATANH, COSINE, ERF, EXP, LN2_HI, LN2_LO, NORMAL_TAIL, NORMAL_TAIL_ARGUMENT, QUARTER_TURN, SINE,
};

/// Defines the functions and finds that of an operation. Light functions take less time than a load
/// and a store, so fused loops apply several of them to elements in registers.
macro_rules! functions {
    (
        light unary { $($light:ident $({ $($of_light:ident),+ })? |$light_isa:ident, $light_x:ident| $light_y:expr;)* }
        light binary { $($pair:ident |$pair_isa:ident, $pair_a:ident, $pair_b:ident| $pair_y:expr;)* }
        unary { $($name:ident $({ $($parameter:ident),+ })? |$isa:ident, $x:ident| $y:expr;)* }
        binary { $($two:ident |$two_isa:ident, $two_a:ident, $two_b:ident| $two_y:expr;)* }
    ) => {
        unary! { $($light $({ $($of_light),+ })? |$light_isa, $light_x| $light_y;)* }
        binary! { $($pair |$pair_isa, $pair_a, $pair_b| $pair_y;)* }
        unary! { $($name $({ $($parameter),+ })? |$isa, $x| $y;)* }
        binary! { $($two |$two_isa, $two_a, $two_b| $two_y;)* }

        /// The pattern of the operations that have a function here.
        macro_rules! has_function {
            () => {
                $(Op::$light { .. })|* $(| Op::$pair)* $(| Op::$name { .. })* $(| Op::$two)*
            };
        }
        pub(super) use has_function;

        /// Passes the function of an elementwise operation to the visitor. Returns `None` if the
        /// operation has none here.
        pub(super) fn with_function<V: Visitor>(op: &Op, visitor: V) -> Option<V::Output> {
            Some(match *op {
                $(Op::$name $({ $($parameter),+ })? => visitor.unary($name { $($($parameter),+)? }),)*
                $(Op::$two => visitor.binary($two),)*
                _ => return with_light_function(op, visitor),
            })
        }

        /// Passes a light function to the visitor. Returns `None` if the operation's function is not a light one.
        #[inline(always)]
        pub(super) fn with_light_function<V: Visitor>(op: &Op, visitor: V) -> Option<V::Output> {
            Some(match *op {
                $(Op::$light $({ $($of_light),+ })? => visitor.unary($light { $($($of_light),+)? }),)*
                $(Op::$pair => visitor.binary($pair),)*
                _ => return None,
            })
        }

        /// Returns whether an operation's function is light.
        pub(super) fn is_light(op: &Op) -> bool {
            matches!(op, $(Op::$light { .. })|* $(| Op::$pair)*)
        }
    };
}

functions! {
    light unary {
        Relu |isa, x| isa.at_least(x, isa.splat(0.0));
        LeakyRelu { negative_slope } |isa, x|
            isa.select(isa.ge(x, isa.splat(0.0)), x, isa.mul(x, negative_slope));
        Clip { min, max } |isa, x| isa.at_most(isa.at_least(x, min), max);
        Abs |isa, x| isa.abs(x);
        Neg |isa, x| isa.neg(x);
        Scale { factor } |isa, x| isa.mul(x, factor);
        Square |isa, x| isa.mul(x, x);
        Reciprocal |isa, x| isa.div(constant!(isa, 1.0), x);
        Relu6 |isa, x| isa.at_most(isa.at_least(x, isa.splat(0.0)), constant!(isa, 6.0));
    }
    light binary {
        VecAdd |isa, a, b| isa.add(a, b);
        Sub |isa, a, b| isa.sub(a, b);
        Mul |isa, a, b| isa.mul(a, b);
        Div |isa, a, b| isa.div(a, b);
        Minimum |isa, a, b| isa.min(a, b);
        Maximum |isa, a, b| isa.max(a, b);
        Equal |isa, a, b| one_where(isa, isa.eq(a, b));
        Less |isa, a, b| one_where(isa, isa.lt(a, b));
        LessEqual |isa, a, b| one_where(isa, isa.ge(b, a));
        KeepWhere |isa, a, condition|
            isa.select(isa.eq(condition, isa.splat(0.0)), isa.splat(-0.0), a);
        KeepUnless |isa, a, condition|
            isa.select(isa.eq(condition, isa.splat(0.0)), a, isa.splat(-0.0));
    }
    unary {
        Sqrt |isa, x| isa.sqrt(x);
        Elu { alpha } |isa, x|
            isa.select(isa.lt(isa.splat(0.0), x), x, isa.mul(alpha, math::expm1_negative(isa, x)));
        Sigmoid |isa, x| math::sigmoid(isa, x);
        Tanh |isa, x| math::tanh(isa, x);
        Swish |isa, x| math::swish(isa, x);
        Gelu |isa, x| math::gelu(isa, x);
        GeluTanh |isa, x| math::gelu_tanh(isa, x);
        Exp |isa, x| math::exp(isa, x);
        Log |isa, x| math::log(isa, x);
        Rsqrt |isa, x| isa.div(constant!(isa, 1.0), isa.sqrt(x));
        Hardswish |isa, x| hardswish(isa, x);
        Sign |isa, x| sign(isa, x);
        Round |isa, x| round(isa, x);
        Floor |isa, x| floor(isa, x);
        Ceil |isa, x| ceil(isa, x);
        Softplus |isa, x| softplus(isa, x);
        Mish |isa, x| mish(isa, x);
        Erf |isa, x| erf(isa, x);
        Sin |isa, x| sine_after_quarters(isa, x, 0);
        Cos |isa, x| sine_after_quarters(isa, x, 1);
    }
    binary {
        Pow |isa, a, b| pow(isa, a, b);
        SiluMul |isa, a, b| gated(isa, math::swish(isa, a), b);
        GeluMul |isa, a, b| gated(isa, math::gelu_tanh(isa, a), b);
    }
}

/// 1 where a comparison holds, 0 elsewhere.
#[inline(always)]
fn one_where<I: Isa>(isa: I, holds: I::Mask) -> I::F32 {
    isa.select(holds, constant!(isa, 1.0), isa.splat(0.0))
}

/// `gate · x`. GPUs may read a gate below the smallest normal number as 0, and 0 times an infinite `x` is NaN.
#[inline(always)]
fn gated<I: Isa>(isa: I, gate: I::F32, x: I::F32) -> I::F32 {
    let tiny = isa.lt(isa.abs(gate), constant!(isa, f32::MIN_POSITIVE));
    isa.mul(isa.select(tiny, isa.splat(0.0), gate), x)
}

/// `x · min(max(x + 3, 0), 6) / 6`, where x counts as −3 below that.
#[inline(always)]
fn hardswish<I: Isa>(isa: I, x: I::F32) -> I::F32 {
    let three = constant!(isa, 3.0);
    let x = isa.at_least(x, isa.neg(three));
    let slope = isa.at_most(isa.add(x, three), constant!(isa, 6.0));
    isa.mul(x, isa.mul(slope, constant!(isa, 1.0 / 6.0)))
}

#[inline(always)]
fn sign<I: Isa>(isa: I, x: I::F32) -> I::F32 {
    let one = isa.with_sign(constant!(isa, 1.0), x);
    let number = isa.select(isa.eq(x, isa.splat(0.0)), x, one);
    isa.select(isa.eq(x, x), number, x)
}

/// The nearest integer, halves to even: 2²³ plus a smaller number has no digits after the point.
#[inline(always)]
fn round<I: Isa>(isa: I, x: I::F32) -> I::F32 {
    let magnitude = isa.abs(x);
    let shift = constant!(isa, ((1 << 23) as f32));
    let rounded = isa.sub(isa.add(magnitude, shift), shift);
    isa.select(isa.lt(magnitude, shift), isa.with_sign(rounded, x), x)
}

#[inline(always)]
fn floor<I: Isa>(isa: I, x: I::F32) -> I::F32 {
    let nearest = round(isa, x);
    let below = isa.sub(nearest, constant!(isa, 1.0));
    let floor = isa.select(isa.lt(x, nearest), below, nearest);
    isa.with_sign(isa.abs(floor), x)
}

#[inline(always)]
fn ceil<I: Isa>(isa: I, x: I::F32) -> I::F32 {
    let nearest = round(isa, x);
    let above = isa.add(nearest, constant!(isa, 1.0));
    let ceil = isa.select(isa.lt(nearest, x), above, nearest);
    isa.with_sign(isa.abs(ceil), x)
}

/// `max(x, 0) + ln(1 + q)` with q = e^(−|x|): ln(1 + q) = 2 artanh(q / (2 + q)).
#[inline(always)]
fn softplus<I: Isa>(isa: I, x: I::F32) -> I::F32 {
    let q = math::exp_normal(isa, isa.neg(isa.abs(x)));
    let s = isa.div(q, isa.add(q, constant!(isa, 2.0)));
    let square = isa.mul(s, s);
    let tail = isa.mul(isa.mul(s, square), math::polynomial(isa, square, &ATANH));
    let half = isa.add(s, tail);
    isa.add(isa.at_least(x, isa.splat(0.0)), isa.add(half, half))
}

/// With q = e^(−|x|): x (1 + 2q) / (1 + 2q + 2q²) from zero on, x q (q + 2) / (q² + 2q + 2) below.
#[inline(always)]
fn mish<I: Isa>(isa: I, x: I::F32) -> I::F32 {
    let (one, two) = (constant!(isa, 1.0), constant!(isa, 2.0));
    let x = isa.at_least(x, constant!(isa, -170.0));
    let bounded = isa.at_least(isa.neg(isa.abs(x)), constant!(isa, -170.0));
    let (n, p) = math::exp_parts(isa, bounded);
    let q = isa.scale_exp2_normal(p, isa.at_least(n, constant!(isa, (ROUNDING - 127.0))));
    let from_zero = isa.ge(x, isa.splat(0.0));
    let positive = isa.mul(x, isa.mul_add(q, two, one));
    let negative = isa.mul(isa.mul(x, p), isa.add(q, two));
    let negative = isa.scale_exp2_down(negative, n);
    let twice = isa.mul(q, two);
    let above = isa.mul_add(twice, isa.add(q, one), one);
    let below = isa.mul_add(q, isa.add(q, two), two);
    isa.div(
        isa.select(from_zero, positive, negative),
        isa.select(from_zero, above, below),
    )
}

/// x · P(x²) for |x| ≤ 1, and 1 − 2 Φ(−|x| √2) with the sign of x beyond.
#[inline(always)]
fn erf<I: Isa>(isa: I, x: I::F32) -> I::F32 {
    let one = constant!(isa, 1.0);
    let magnitude = isa.abs(x);
    let near = isa.mul(x, math::polynomial(isa, isa.mul(x, x), &ERF));
    let t = isa.mul(magnitude, constant!(isa, std::f32::consts::SQRT_2));
    let t = isa.at_most(t, constant!(isa, 12.0));
    let (n, p) = math::exp_half_square_parts(isa, t);
    let u = isa.mul_add(constant!(isa, NORMAL_TAIL_ARGUMENT), t, one);
    let u = isa.div(one, u);
    let tail = isa.mul(p, isa.mul(u, math::polynomial(isa, u, &NORMAL_TAIL)));
    let tail = isa.scale_exp2_normal(isa.add(tail, tail), n);
    let far = isa.with_sign(isa.sub(one, tail), x);
    isa.select(isa.lt(one, magnitude), far, near)
}

/// The sine of x plus some quarters of a turn; NaN for |x| above 2²².
#[inline(always)]
fn sine_after_quarters<I: Isa>(isa: I, x: I::F32, quarters: i32) -> I::F32 {
    let shifted = isa.round_product(x, constant!(isa, std::f32::consts::FRAC_2_PI));
    let n = isa.rounded(shifted);
    let r = isa.neg_mul_add(n, constant!(isa, QUARTER_TURN[0]), x);
    let r = isa.neg_mul_add(n, constant!(isa, QUARTER_TURN[1]), r);
    let r = isa.neg_mul_add(n, constant!(isa, QUARTER_TURN[2]), r);
    let z = isa.mul(r, r);
    let sine = isa.mul_add(isa.mul(r, z), math::polynomial(isa, z, &SINE), r);
    let near_one = isa.neg_mul_add(z, constant!(isa, 0.5), constant!(isa, 1.0));
    let cosine = isa.mul_add(isa.mul(z, z), math::polynomial(isa, z, &COSINE), near_one);
    // The low bits of the shifted integer: the first chooses the function, the second its sign.
    let quarter = isa.add_bits(isa.to_bits(shifted), isa.splat_bits(quarters));
    let first = isa.bits_to_float(isa.and_bits(quarter, isa.splat_bits(1)));
    let either = isa.select(isa.eq(first, isa.splat(0.0)), sine, cosine);
    let sign = isa.shl_bits(isa.and_bits(quarter, isa.splat_bits(2)), 30);
    let value = isa.reinterpret(isa.xor_bits(isa.to_bits(either), sign));
    let inside = isa.ge(constant!(isa, 4_194_304.0), isa.abs(x));
    isa.select(inside, value, constant!(isa, f32::NAN))
}

/// A number of the upper 12 bits of each mantissa.
#[inline(always)]
fn top_bits<I: Isa>(isa: I, x: I::F32) -> I::F32 {
    isa.reinterpret(isa.and_bits(isa.to_bits(x), constant_bits!(isa, !0xFFF)))
}

/// What separates [√½, √2) from its multiples by powers of two.
const SQRT_HALF_BITS: i32 = std::f32::consts::FRAC_1_SQRT_2.to_bits() as i32;

/// ln x as a number of 12 bits and a smaller one, for positive finite x = m · 2ᵏ with √½ ≤ m < √2:
/// ln m = 2 artanh s, s = (m − 1) / (m + 1) in two parts as well.
#[inline(always)]
fn log_parts<I: Isa>(isa: I, x: I::F32) -> (I::F32, I::F32) {
    let two = constant!(isa, 2.0);
    let denormal = isa.lt(x, constant!(isa, f32::MIN_POSITIVE));
    let normal = isa.select(denormal, isa.mul(x, constant!(isa, ((1 << 25) as f32))), x);
    let bits = isa.to_bits(normal);
    let k = isa.shr_exponent(isa.sub_bits(bits, constant_bits!(isa, SQRT_HALF_BITS)));
    let m = isa.reinterpret(isa.sub_bits(bits, isa.shl_exponent(k)));
    let k = isa.bits_to_float(k);
    let k = isa.select(denormal, isa.sub(k, constant!(isa, 25.0)), k);

    let f = isa.sub(m, constant!(isa, 1.0));
    let w = isa.add(f, two);
    let s = isa.div(f, w);
    let (s_high, w_high) = (top_bits(isa, s), top_bits(isa, w));
    let w_low = isa.sub(f, isa.sub(w_high, two));
    let remainder = isa.neg_mul_add(s_high, w_low, isa.neg_mul_add(s_high, w_high, f));
    let s_low = isa.div(remainder, w);
    let square = isa.mul(s, s);
    let tail = isa.mul(isa.mul(s, square), math::polynomial(isa, square, &ATANH));
    let rest = isa.mul(isa.add(s_low, tail), two);
    let rest = isa.mul_add(k, constant!(isa, LN2_LO), rest);
    let whole = isa.mul(k, constant!(isa, LN2_HI));
    let twice = isa.add(s_high, s_high);
    let high = top_bits(isa, isa.add(isa.add(whole, twice), rest));
    let low = isa.add(isa.add(isa.sub(whole, high), twice), rest);
    (high, low)
}

/// `eˣ` of the sum of two numbers, from 0 to ∞.
#[inline(always)]
fn exp_sum<I: Isa>(isa: I, high: I::F32, low: I::F32) -> I::F32 {
    let (least, most) = (constant!(isa, -104.0), constant!(isa, 89.0));
    let sum = isa.add(high, low);
    let bounded = isa.at_most(isa.at_least(sum, least), most);
    let inside = isa.eq(sum, bounded);
    let high = isa.select(inside, high, bounded);
    let low = isa.select(inside, low, isa.splat(0.0));
    let n = math::exponent(isa, bounded);
    let r = isa.add(math::reduce(isa, high, n), low);
    let p = isa.mul_add(isa.mul(r, r), math::polynomial(isa, r, &EXP), r);
    isa.scale_exp2(isa.add(p, constant!(isa, 1.0)), n)
}

/// `|a|ᵇ` for a number `b`.
#[inline(always)]
fn pow_magnitude<I: Isa>(isa: I, a: I::F32, b: I::F32) -> I::F32 {
    let (zero, infinity) = (isa.splat(0.0), constant!(isa, f32::INFINITY));
    let bound = constant!(isa, 4_294_967_296.0);
    let negative = isa.lt(b, zero);
    let base = isa.abs(a);
    let (high, low) = log_parts(isa, base);
    // The logarithm of a number other than 1 is at least 2⁻²⁴.
    let b = isa.at_most(isa.at_least(b, isa.neg(bound)), bound);
    let b_high = top_bits(isa, b);
    let rest = isa.mul_add(isa.sub(b, b_high), high, isa.mul(b, low));
    let value = exp_sum(isa, isa.mul(b_high, high), rest);
    let of_zero = isa.select(negative, infinity, zero);
    let of_infinity = isa.select(negative, zero, infinity);
    let value = isa.select(isa.eq(base, zero), of_zero, value);
    isa.select(isa.eq(base, infinity), of_infinity, value)
}

/// `aᵇ`, with C's special cases.
#[inline(always)]
fn pow<I: Isa>(isa: I, a: I::F32, b: I::F32) -> I::F32 {
    let (zero, one) = (isa.splat(0.0), constant!(isa, 1.0));
    let nan = constant!(isa, f32::NAN);
    let magnitude = pow_magnitude(isa, a, b);
    let half = isa.mul(b, constant!(isa, 0.5));
    let is_integer = isa.eq(round(isa, b), b);
    let is_even = isa.eq(round(isa, half), half);
    let odd_sign = isa.select(is_integer, isa.with_sign(one, a), one);
    let value = isa.mul(magnitude, isa.select(is_even, one, odd_sign));
    let finite = isa.lt(isa.abs(a), constant!(isa, f32::INFINITY));
    let broken = isa.select(is_integer, value, isa.select(finite, nan, value));
    let value = isa.select(isa.lt(a, zero), broken, value);
    let value = isa.select(isa.eq(a, a), isa.select(isa.eq(b, b), value, b), a);
    isa.select(isa.eq(b, zero), one, isa.select(isa.eq(a, one), one, value))
}
