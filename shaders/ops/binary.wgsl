// One function an elementwise operation of two inputs.
import constants::{GELU_TANH_CUBIC, GELU_TANH_SCALE};
import package::lib::math::{at_least, expm1_reduced, logarithm_parts, reduce_argument, scale_by_power};
import package::lib::math::{times_logistic, top_bits, within};
import package::lib::nan::{is_nan, maximum, minimum, nan_where};
import package::lib::real::{real, word};

fn vec_add(a: real, b: real) -> real {
    return a + b;
}

fn sub(a: real, b: real) -> real {
    return a - b;
}

fn mul(a: real, b: real) -> real {
    return a * b;
}

fn div(a: real, b: real) -> real {
    // WGSL promises nothing for divisors above 2¹²⁶, whose reciprocals are not normal numbers.
    let shrink = select(real(1.0), real(5.9604645e-8), abs(b) > real(1.2676506e30));
    return (a * shrink) / (b * shrink);
}

fn minimum_(a: real, b: real) -> real {
    return minimum(a, b);
}

fn maximum_(a: real, b: real) -> real {
    return maximum(a, b);
}

// Bits decide about NaN, since WGSL lets compilers assume that no comparison ever meets one.
fn equal(a: real, b: real) -> real {
    return select(real(0.0), real(1.0), (a == b) & !is_nan(a) & !is_nan(b));
}

fn less(a: real, b: real) -> real {
    return select(real(0.0), real(1.0), (a < b) & !is_nan(a) & !is_nan(b));
}

fn less_equal(a: real, b: real) -> real {
    return select(real(0.0), real(1.0), (a <= b) & !is_nan(a) & !is_nan(b));
}

fn keep_where(a: real, b: real) -> real {
    return select(a, real(-0.0), (b == real(0.0)) & !is_nan(b));
}

fn keep_unless(a: real, b: real) -> real {
    return select(real(-0.0), a, (b == real(0.0)) & !is_nan(b));
}

// exp(b ln |a|) with the logarithm and b in two parts each, and C's special cases.
fn pow_(a: real, b: real) -> real {
    let base = abs(a);
    let logarithm = logarithm_parts(base);
    // The logarithm of a number other than 1 is at least 2⁻²⁴.
    let bounded = within(b, -4294967296.0, 4294967296.0);
    let b_high = top_bits(bounded);
    let high = b_high * logarithm.high;
    let low = (bounded - b_high) * logarithm.high + bounded * logarithm.low;
    let outside = (high + low < real(-104.0)) | (high + low > real(89.0));
    let reduced = reduce_argument(select(high, within(high + low, -104.0, 89.0), outside), select(low, real(0.0), outside));
    let power = scale_by_power(expm1_reduced(reduced.r) + 1.0, reduced.n);
    let infinite = bitcast<real>((bitcast<word>(a) & word(0u)) | word(0x7f800000u));
    let large = base > real(3.4028234663852886e38);
    let extreme = (base == real(0.0)) | large;
    let grows = (b < real(0.0)) != large;
    let magnitude = select(power, select(real(0.0), infinite, grows), extreme);
    let huge = abs(b) >= real(16777216.0);
    let whole = huge | (floor(b) == b);
    let odd = whole & !huge & (floor(0.5 * b) != 0.5 * b);
    let negative = (bitcast<word>(a) & word(0x80000000u)) != word(0u);
    let signed = select(magnitude, -magnitude, odd & negative);
    let value = nan_where((a < real(0.0)) & !large & !whole, signed);
    let result = select(select(value, b, is_nan(b)), a, is_nan(a));
    return select(result, real(1.0), (b == real(0.0)) | (a == real(1.0)));
}

// Gates below the smallest normal number are zeros on every back-end.
fn silu_mul(a: real, b: real) -> real {
    let bounded = at_least(a, -170.0);
    let gate = times_logistic(bounded, bounded);
    return select(gate, real(0.0), abs(gate) < real(1.17549435e-38)) * b;
}

fn gelu_mul(a: real, b: real) -> real {
    let bounded = at_least(a, -170.0);
    let cubic = GELU_TANH_CUBIC * bounded * bounded * bounded;
    let gate = times_logistic(bounded, GELU_TANH_SCALE * (bounded + cubic));
    return select(gate, real(0.0), abs(gate) < real(1.17549435e-38)) * b;
}
