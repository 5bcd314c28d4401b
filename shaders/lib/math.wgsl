// Elementary functions, the twins of `src/simd/math.rs`, on `real`: f32 or vec4f, as the
// kernel's aliases say. NaN gives NaN; results below the smallest normal number may be zero.
import constants::{ATANH, COSINE, EXP, LN2_HI, LN2_LO, LOG, LOG2_E, NORMAL_TAIL, NORMAL_TAIL_ARGUMENT};
import constants::{QUARTER_TURN, SINE};
import package::lib::nan::{is_nan, nan_where};
import package::lib::real::{integer, real, word};

// NaN by its bits: drivers make min and max of comparison and choice, which lose it.
fn at_least(x: real, bound: f32) -> real {
    return select(select(x, real(bound), x < real(bound)), x, is_nan(x));
}

fn at_most(x: real, bound: f32) -> real {
    return select(select(x, real(bound), x > real(bound)), x, is_nan(x));
}

fn within(x: real, low: f32, high: f32) -> real {
    let raised = select(x, real(low), x < real(low));
    return select(select(raised, real(high), raised > real(high)), x, is_nan(x));
}

// 2ⁿ for −126 ≤ n ≤ 127.
fn power_of_two(n: integer) -> real {
    return bitcast<real>((n + integer(127)) << word(23u));
}

// p · 2ⁿ for −252 ≤ n ≤ 254, in two steps, since 2ⁿ itself may not be a normal number.
fn scale_by_power(p: real, n: integer) -> real {
    let half = n >> word(1u);
    return p * power_of_two(half) * power_of_two(n - half);
}

struct Reduced {
    n: integer,
    r: real,
}

// high + low = n · ln 2 + r with |r| ≤ ½ ln 2.
fn reduce_argument(high: real, low: real) -> Reduced {
    let rounded = round((high + low) * LOG2_E);
    let n = integer(rounded);
    // The two products must stay apart, or the reduction loses what it is for. Drivers that
    // factor out a common `rounded` do not see that real(n) is the same.
    let r = fma(real(n), real(-LN2_LO), fma(rounded, real(-LN2_HI), high));
    return Reduced(n, r + low);
}

// eʳ − 1 for |r| ≤ ½ ln 2.
fn expm1_reduced(r: real) -> real {
    let p = (((EXP[4] * r + EXP[3]) * r + EXP[2]) * r + EXP[1]) * r + EXP[0];
    return fma(r * r, p, r);
}

fn exponential(x: real) -> real {
    let reduced = reduce_argument(within(x, -104.0, 89.0), real(0.0));
    return scale_by_power(expm1_reduced(reduced.r) + 1.0, reduced.n);
}

// eˣ − 1 for x ≤ 0.
fn expm1_negative(x: real) -> real {
    let reduced = reduce_argument(at_least(x, -25.0), real(0.0));
    let scale = power_of_two(reduced.n);
    return fma(scale, expm1_reduced(reduced.r), scale - 1.0);
}

fn logarithm(x: real) -> real {
    let denormal = x < real(1.17549435e-38);
    let bits = bitcast<integer>(select(x, x * 33554432.0, denormal));
    // The bits of ⅔, so that the mantissa lies between ⅔ and 4/3.
    let exponent = (bits - integer(0x3f2aaaab)) >> word(23u);
    let f = bitcast<real>(bits - (exponent << word(23u))) - 1.0;
    let k = real(exponent) - select(real(0.0), real(25.0), denormal);
    let low = LOG[4] + f * (LOG[5] + f * (LOG[6] + f * LOG[7]));
    let p = LOG[0] + f * (LOG[1] + f * (LOG[2] + f * (LOG[3] + f * low)));
    let tail = fma(k, real(LN2_LO), f * f * f * p) - 0.5 * f * f;
    let value = fma(k, real(LN2_HI), f + tail);
    let finite = select(x, value, x <= real(3.4028234663852886e38));
    // WGSL refuses constants that are NaN or infinite, so these depend on `x` in appearance.
    let zero = bitcast<word>(x) & word(0u);
    let positive = select(finite, bitcast<real>(zero | word(0x7fc00000u)), x < real(0.0));
    return select(positive, bitcast<real>(zero | word(0xff800000u)), x == real(0.0));
}

// −e / (2 + e), e = exp(−2|x|) − 1, with the sign of x.
fn hyperbolic_tangent(x: real) -> real {
    let e = expm1_negative(-2.0 * abs(x));
    let magnitude = -e / (e + 2.0);
    return select(magnitude, -magnitude, x < real(0.0));
}

fn logistic(x: real) -> real {
    return 1.0 / (1.0 + exponential(-x));
}

// x / (1 + e⁻ᵗ): for t < 0 extended by eᵗ, so that only small exponentials occur.
fn times_logistic(x: real, t: real) -> real {
    let reduced = reduce_argument(at_least(-abs(t), -170.0), real(0.0));
    let p = expm1_reduced(reduced.r) + 1.0;
    let denominator = 1.0 + scale_by_power(p, reduced.n);
    let numerator = select(x, scale_by_power(x * p, reduced.n), t < real(0.0));
    return numerator / denominator;
}

// x · Φ(x): the lower tail Φ(−|x|) is accurate relative to itself, the upper its complement.
fn times_normal_cdf(unbounded: real) -> real {
    let x = at_least(unbounded, -15.0);
    let t = at_most(abs(x), 15.0);
    // t² = h² + (t − h)(t + h), where h has 12 bits and its square is exact.
    let h = bitcast<real>(bitcast<word>(t) & word(0xfffff000u));
    let reduced = reduce_argument(-0.5 * h * h, -0.5 * (t - h) * (t + h));
    let u = 1.0 / (1.0 + NORMAL_TAIL_ARGUMENT * t);
    let p0 = NORMAL_TAIL[7] * u + NORMAL_TAIL[6];
    let p1 = ((p0 * u + NORMAL_TAIL[5]) * u + NORMAL_TAIL[4]) * u + NORMAL_TAIL[3];
    let p2 = ((p1 * u + NORMAL_TAIL[2]) * u + NORMAL_TAIL[1]) * u + NORMAL_TAIL[0];
    let p = (expm1_reduced(reduced.r) + 1.0) * u * p2;
    let positive = x * (1.0 - scale_by_power(p, reduced.n));
    let negative = scale_by_power(x * p, reduced.n);
    return select(positive, negative, x < real(0.0));
}

// The sine of x plus some quarters of a turn; NaN for |x| above 2²². Which products are of n and which
// of the same number rounded is as in `reduce_argument`.
fn sine_after_quarters(x: real, quarters: integer) -> real {
    let rounded = round(x * 0.63661975);
    let n = integer(rounded);
    let high = fma(rounded, real(-QUARTER_TURN[0]), x);
    let r = fma(rounded, real(-QUARTER_TURN[2]), fma(real(n), real(-QUARTER_TURN[1]), high));
    let z = r * r;
    let sine = fma(r * z, (SINE[2] * z + SINE[1]) * z + SINE[0], r);
    let cosine = fma(z * z, (COSINE[2] * z + COSINE[1]) * z + COSINE[0], 1.0 - 0.5 * z);
    let quarter = n + quarters;
    let either = select(sine, cosine, (quarter & integer(1)) != integer(0));
    let value = select(either, -either, (quarter & integer(2)) != integer(0));
    return nan_where(abs(x) > real(4194304.0), value);
}

struct Parts {
    high: real,
    low: real,
}

fn top_bits(x: real) -> real {
    return bitcast<real>(bitcast<word>(x) & word(0xfffff000u));
}

// ln x as a number of 12 bits and a smaller one, for positive finite x = m · 2ᵏ with √½ ≤ m < √2:
// ln m = 2 artanh s, s = (m − 1) / (m + 1) in two parts as well.
fn logarithm_parts(x: real) -> Parts {
    let denormal = x < real(1.17549435e-38);
    let bits = bitcast<integer>(select(x, x * 33554432.0, denormal));
    let exponent = (bits - integer(0x3f3504f3)) >> word(23u);
    let f = bitcast<real>(bits - (exponent << word(23u))) - 1.0;
    let k = real(exponent) - select(real(0.0), real(25.0), denormal);
    let w = f + 2.0;
    let s = f / w;
    let s_high = top_bits(s);
    let w_high = top_bits(w);
    let s_low = ((f - s_high * w_high) - s_high * (f - (w_high - 2.0))) / w;
    let z = s * s;
    let p = (((ATANH[4] * z + ATANH[3]) * z + ATANH[2]) * z + ATANH[1]) * z + ATANH[0];
    let rest = fma(k, real(LN2_LO), 2.0 * (s_low + s * z * p));
    let whole = k * LN2_HI;
    let high = top_bits(whole + 2.0 * s_high + rest);
    return Parts(high, ((whole - high) + 2.0 * s_high) + rest);
}
