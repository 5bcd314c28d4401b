// One function an elementwise operation of one input. `params.a` and `params.b` are the
// operation's parameters in the op table's order. All of them keep NaN.
import constants::{ATANH, ERF, GELU_TANH_CUBIC, GELU_TANH_SCALE, NORMAL_TAIL, NORMAL_TAIL_ARGUMENT};
import package::kernel::params;
import package::lib::math::{at_least, at_most, expm1_negative, expm1_reduced, exponential, hyperbolic_tangent};
import package::lib::math::{logarithm, logistic, reduce_argument, scale_by_power, sine_after_quarters};
import package::lib::math::{times_logistic, times_normal_cdf, within};
import package::lib::nan::{is_nan, nan_where};
import package::lib::real::{integer, real, word};

// Zero for the bits of what is negative, −0 and NaN not among it.
fn relu(x: real) -> real {
    return select(x, real(0.0), bitcast<word>(x) - word(0x80000001u) < word(0x7f800000u));
}

fn leaky_relu(x: real) -> real {
    return select(x, x * params.a, x < real(0.0));
}

fn elu(x: real) -> real {
    return select(x, expm1_negative(x) * params.a, x <= real(0.0));
}

fn sigmoid(x: real) -> real {
    return logistic(x);
}

fn tanh_(x: real) -> real {
    return hyperbolic_tangent(x);
}

fn swish(x: real) -> real {
    let bounded = at_least(x, -170.0);
    return times_logistic(bounded, bounded);
}

fn gelu(x: real) -> real {
    return times_normal_cdf(x);
}

fn gelu_tanh(x: real) -> real {
    let bounded = at_least(x, -170.0);
    let cubic = GELU_TANH_CUBIC * bounded * bounded * bounded;
    return times_logistic(bounded, GELU_TANH_SCALE * (bounded + cubic));
}

fn clip(x: real) -> real {
    return within(x, params.a, params.b);
}

fn exp_(x: real) -> real {
    return exponential(x);
}

fn log_(x: real) -> real {
    return logarithm(x);
}

fn sqrt_(x: real) -> real {
    return sqrt(x);
}

fn abs_(x: real) -> real {
    return abs(x);
}

fn neg(x: real) -> real {
    return -x;
}

fn scale(x: real) -> real {
    return x * params.a;
}

fn square(x: real) -> real {
    return x * x;
}

// Scaled for large divisors, as `div`.
fn reciprocal(x: real) -> real {
    let shrink = select(real(1.0), real(5.9604645e-8), abs(x) > real(1.2676506e30));
    return shrink / (x * shrink);
}

fn rsqrt(x: real) -> real {
    let sign = bitcast<word>(x) & word(0x80000000u);
    let infinite = bitcast<real>(sign | word(0x7f800000u));
    let defined = nan_where(x < real(0.0), inverseSqrt(x));
    return select(select(defined, infinite, x == real(0.0)), x, is_nan(x));
}

fn relu6(x: real) -> real {
    return within(x, 0.0, 6.0);
}

fn hardswish(x: real) -> real {
    let bounded = at_least(x, -3.0);
    return bounded * (within(bounded + 3.0, 0.0, 6.0) * 0.16666667);
}

fn sign_(x: real) -> real {
    let one = bitcast<real>((bitcast<word>(x) & word(0x80000000u)) | word(0x3f800000u));
    return select(one, x, (x == real(0.0)) | is_nan(x));
}

fn round_(x: real) -> real {
    return round(x);
}

fn floor_(x: real) -> real {
    return floor(x);
}

fn ceil_(x: real) -> real {
    return ceil(x);
}

// ln(1 + q) = 2 artanh(q / (2 + q)).
fn softplus(x: real) -> real {
    let q = exponential(-abs(x));
    let s = q / (2.0 + q);
    let z = s * s;
    let p = (((ATANH[4] * z + ATANH[3]) * z + ATANH[2]) * z + ATANH[1]) * z + ATANH[0];
    return at_least(x, 0.0) + 2.0 * (s + s * z * p);
}

// With q = e^(−|x|): x (1 + 2q) / (1 + 2q + 2q²) from zero on, x q (q + 2) / (q² + 2q + 2) below.
fn mish(x: real) -> real {
    let bounded = at_least(x, -170.0);
    let reduced = reduce_argument(at_least(-abs(x), -170.0), real(0.0));
    let p = expm1_reduced(reduced.r) + 1.0;
    let q = scale_by_power(p, reduced.n);
    let negative = scale_by_power(bounded * p * (q + 2.0), reduced.n);
    let numerator = select(bounded * (1.0 + 2.0 * q), negative, x < real(0.0));
    return numerator / select(1.0 + 2.0 * q * (1.0 + q), q * (q + 2.0) + 2.0, x < real(0.0));
}

// x · P(x²) up to 1, and 1 − 2 Φ(−|x| √2) beyond; x² = h² + (x − h)(x + h) as in `times_normal_cdf`.
fn erf(x: real) -> real {
    let z = x * x;
    let near = ((((ERF[6] * z + ERF[5]) * z + ERF[4]) * z + ERF[3]) * z + ERF[2]) * z + ERF[1];
    let t = at_most(abs(x), 8.0);
    let h = bitcast<real>(bitcast<word>(t) & word(0xfffff000u));
    let reduced = reduce_argument(-h * h, (h - t) * (t + h));
    let u = 1.0 / (1.0 + NORMAL_TAIL_ARGUMENT * 1.4142135 * t);
    let p0 = NORMAL_TAIL[7] * u + NORMAL_TAIL[6];
    let p1 = ((p0 * u + NORMAL_TAIL[5]) * u + NORMAL_TAIL[4]) * u + NORMAL_TAIL[3];
    let p2 = ((p1 * u + NORMAL_TAIL[2]) * u + NORMAL_TAIL[1]) * u + NORMAL_TAIL[0];
    let tail = scale_by_power((expm1_reduced(reduced.r) + 1.0) * u * p2, reduced.n);
    let far = 1.0 - 2.0 * tail;
    return select(x * (near * z + ERF[0]), select(far, -far, x < real(0.0)), abs(x) > real(1.0));
}

fn sin_(x: real) -> real {
    return sine_after_quarters(x, integer(0));
}

fn cos_(x: real) -> real {
    return sine_after_quarters(x, integer(1));
}
