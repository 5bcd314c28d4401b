// A value's distance from the mean brought to scale; without a mean there is no bias either.
fn normed(x: real, factor: f32, gain: real, bias: real, centred: u32) -> real {
    return x * factor * gain + select(real(0.0), bias, truth(centred != 0u));
}

// The row's columns in its chunk of that number, from the first to the one after the last.
fn chunk(number: u32) -> vec2u {
    let first = min(number * params.chunk_len, params.cols);
    return vec2u(first, min(first + params.chunk_len, params.cols));
}

// Terms that an invocation adds up before their sum goes to that of others, which bounds the
// rounding error.
const TERMS = 64u;

// The mean of the values from `start` to `end`, or 0 where they are not `centred`, and the sum of
// squared distances from it.
fn moments_of(start: u32, end: u32, centred: u32, local: u32) -> vec2f {
    var mean = 0.0;
    if centred != 0u {
        mean = workgroup_reduce(SUM, sum_of_powers(start, end, 0.0, 1u, local), local);
        mean /= max(f32(end - start), 1.0);
    }
    return vec2f(mean, workgroup_reduce(SUM, sum_of_powers(start, end, mean, 2u, local), local));
}

// An invocation's part of the sum of x − mean, or of its square.
fn sum_of_powers(start: u32, end: u32, mean: f32, power: u32, local: u32) -> f32 {
    var total = 0.0;
    for (var block = start + local; block < end; block += TERMS * GROUP) {
        var part = 0.0;
        for (var i = block; i < min(block + TERMS * GROUP, end); i += GROUP) {
            let d = before0(i) - mean;
            part += select(d, d * d, power == 2u);
        }
        total += part;
    }
    return total;
}
