// Not-a-number, which WGSL lets compilers take for something that never occurs.
import package::lib::real::{real, truth, word};

// By bits, since WGSL lets compilers assume that no comparison ever meets a NaN.
fn is_nan(x: real) -> truth {
    return (bitcast<word>(x) & word(0x7fffffffu)) > word(0x7f800000u);
}

// Comparison alone would drop a NaN. The sum would keep it, but compilers may take a + (x - a) for x.
fn maximum(a: real, b: real) -> real {
    return select(select(b, a, (a > b) | is_nan(a)), b, is_nan(b));
}

fn minimum(a: real, b: real) -> real {
    return select(select(b, a, (a < b) | is_nan(a)), b, is_nan(b));
}

// WGSL refuses constants that are NaN, so this one depends on `x` in appearance.
fn nan_where(condition: truth, x: real) -> real {
    let nan = bitcast<real>((bitcast<word>(x) & word(0u)) | word(0x7fc00000u));
    return select(x, nan, condition);
}
