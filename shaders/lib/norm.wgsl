// Normalisation of rows.
import package::kernel::{GROUP, bias, gain, params};
import package::lib::reduce::{SUM, TERMS, workgroup_reduce};
import package::lib::rows::{four_places, put_four, read_four};

// A value's distance from the mean brought to scale; without a mean there is no bias either.
fn normed(x: vec4f, factor: f32, gain: vec4f, bias: vec4f, centred: u32) -> vec4f {
    return x * factor * gain + select(vec4f(), bias, vec4<bool>(centred != 0u));
}

// What brings distances to scale whose squares have this mean. One beyond all numbers would make zeros
// of them, which look like a result.
fn factor_of(mean_square: f32, epsilon: f32) -> f32 {
    let square = mean_square + epsilon;
    let bits = bitcast<u32>(square);
    return select(inverseSqrt(square), bitcast<f32>(bits | 0x7fc00000u), bits >= 0x7f800000u);
}

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
    var total = vec4f();
    for (var block = start + local; block < end; block += 4u * TERMS * GROUP) {
        var part = vec4f();
        for (var i = block; i < min(block + 4u * TERMS * GROUP, end); i += 4u * GROUP) {
            let d = read_four(i, end, mean) - mean;
            part += select(d, d * d, power == 2u);
        }
        total += part;
    }
    return (total.x + total.y) + (total.z + total.w);
}

// Stores what the columns of `part` come to, in the row that begins at `start`.
fn put_normed(start: u32, part: vec2u, mean: f32, factor: f32, local: u32) {
    let end = start + part.y;
    for (var col = part.x + local; col < part.y; col += 4u * GROUP) {
        let at = min(four_places(col), vec4u(part.y - 1u));
        let gains = vec4f(gain[at.x], gain[at.y], gain[at.z], gain[at.w]);
        let biases = vec4f(bias[at.x], bias[at.y], bias[at.z], bias[at.w]);
        let distance = read_four(start + col, end, mean) - mean;
        put_four(start + col, end, normed(distance, factor, gains, biases, params.centred));
    }
}
