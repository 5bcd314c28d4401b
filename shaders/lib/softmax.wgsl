// exp(x − max) / Σ, or its logarithm.
fn normalise(x: f32, largest: f32, total: f32, as_log: u32) -> f32 {
    if as_log != 0u {
        return x - largest - logarithm(total);
    }
    return exponential(x - largest) / total;
}

// exp(x − max) for partial sums. Where all that was seen is −∞ each value counts as 1: the row
// may still hold a larger one, before which these vanish.
fn rescale(x: f32, largest: f32) -> f32 {
    if largest < -3.4028234663852886e38 {
        return 1.0;
    }
    return exponential(x - largest);
}

// eˣ for x ≤ 0 by WGSL's own function, which is exact enough here: the error that it may have
// grows with x as that of rounding x does. What −∞ or NaN give is up to the caller.
fn exponential_of_difference(x: real) -> real {
    return exp(max(x, real(-104.0)));
}
