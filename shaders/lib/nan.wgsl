// By bits, since WGSL lets compilers assume that no comparison ever meets a NaN.
fn is_nan(x: real) -> truth {
    return (bitcast<word>(x) & word(0x7fffffffu)) > word(0x7f800000u);
}

// Comparison alone would drop a NaN in one of the two places; the sum keeps either.
fn maximum(a: real, b: real) -> real {
    return select(select(b, a, a > b), a + b, is_nan(a) | is_nan(b));
}

fn minimum(a: real, b: real) -> real {
    return select(select(b, a, a < b), a + b, is_nan(a) | is_nan(b));
}
