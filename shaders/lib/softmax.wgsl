// Softmax of rows.
import package::kernel::{GROUP, params};
import package::lib::math::logarithm;
import package::lib::nan::{maximum, nan_where};
import package::lib::reduce::{MAX, SUM, TERMS, workgroup_reduce};
import package::lib::rows::{put_four, read_four};

// eˣ for x ≤ 0 by WGSL's own function, which is exact enough here: the error that it may have
// grows with x as that of rounding x does. What −∞ or NaN give is up to the caller.
fn exponential_of_difference(x: vec4f) -> vec4f {
    return exp(max(x, vec4f(-104.0)));
}

// The largest of a workgroup's values, NaN if one is.
fn largest_of(start: u32, end: u32, local: u32) -> f32 {
    var most = vec4f(params.lowest);
    for (var i = start + local; i < end; i += 4u * GROUP) {
        let v = read_four(i, end, params.lowest);
        let upper = vec2f(maximum(most.x, v.x), maximum(most.y, v.y));
        most = vec4f(upper, maximum(most.z, v.z), maximum(most.w, v.w));
    }
    let folded = maximum(maximum(most.x, most.y), maximum(most.z, most.w));
    return workgroup_reduce(MAX, folded, local);
}

// What values are told the distance from. Where all that was seen is −∞, that is the lowest number: a
// row may still hold a larger one, before which these vanish.
fn measured_from(largest: f32) -> vec4f {
    return vec4f(max(largest, -3.4028234663852886e38));
}

// The sum of a workgroup's exponentials of distances.
fn total_of(start: u32, end: u32, largest: f32, local: u32) -> f32 {
    var total = vec4f();
    for (var block = start + local; block < end; block += 4u * TERMS * GROUP) {
        var part = vec4f();
        for (var i = block; i < min(block + 4u * TERMS * GROUP, end); i += 4u * GROUP) {
            part += exponential_of_difference(read_four(i, end, params.lowest) - measured_from(largest));
        }
        total += part;
    }
    return workgroup_reduce(SUM, (total.x + total.y) + (total.z + total.w), local);
}

// Stores a workgroup's shares exp(x − max) / Σ, or their logarithms. NaN and +∞ leave no numbers to
// share, and a row of only −∞ has no distribution.
fn put_shares(start: u32, end: u32, largest: f32, total: f32, local: u32) {
    let none = (bitcast<u32>(largest) & 0x7fffffffu) >= 0x7f800000u;
    let sum = nan_where(none, total);
    let share = 1.0 / sum;
    let shift = logarithm(sum);
    for (var i = start + local; i < end; i += 4u * GROUP) {
        let distance = read_four(i, end, params.lowest) - largest;
        let shares = exponential_of_difference(distance) * share;
        put_four(i, end, select(shares, distance - shift, params.as_log != 0u));
    }
}
