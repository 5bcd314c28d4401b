// GROUP invocations a row of at most 16 · GROUP values, which stay in registers between one read and
// one write of each. Rows are made of whole vectors. A workgroup has ROWS rows: workgroups of 64
// invocations each begin so often that it took a quarter longer. Short rows are part of a subgroup each.
import constants::{GROUP, ROWS};
import package::lib::fold::fold;
import package::lib::grid::workgroup_index;
import package::lib::hooks::after;
import package::lib::math::logarithm;
import package::lib::nan::{is_nan, nan_where};
import package::lib::softmax::exponential_of_difference;

struct Params {
    rows: u32,
    cols: u32,
    lowest: f32,
    as_log: u32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<vec4f>;
@group(0) @binding(2) var<storage, read_write> y: array<vec4f>;

// Small enough that no sum of the largest finite numbers is infinite.
const TINY = 1e-10;

fn before0(i: u32) -> vec4f {
    return x[i];
}

// Past the row's end is −∞, which neither a maximum nor a sum of exponentials sees.
fn load(row: u32, i: u32) -> vec4f {
    let across = params.cols / 4u;
    return select(vec4f(params.lowest), before0(row * across + i), i < across);
}

fn keep(row: u32, i: u32, values: vec4f) {
    let across = params.cols / 4u;
    if i < across && row < params.rows {
        let at = row * across + i;
        y[at] = after(at, values);
    }
}

@compute @workgroup_size(ROWS * GROUP)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) place: u32,
) {
    let row = workgroup_index(group, groups) * ROWS + place / GROUP;
    let local = place % GROUP;
    let i1 = local + GROUP;
    let i2 = i1 + GROUP;
    let i3 = i2 + GROUP;
    var v0 = load(row, local);
    var v1 = load(row, i1);
    var v2 = load(row, i2);
    var v3 = load(row, i3);
    let largest = fold(max(max(v0, v1), max(v2, v3)), true, 0u, place);
    // Infinite or NaN where a value is NaN, or where there are infinities of both signs.
    let trace = TINY * v0 + TINY * v1 + TINY * v2 + TINY * v3;
    v0 -= largest;
    v1 -= largest;
    v2 -= largest;
    v3 -= largest;
    let e0 = exponential_of_difference(v0);
    let e1 = exponential_of_difference(v1);
    let e2 = exponential_of_difference(v2);
    let e3 = exponential_of_difference(v3);
    let sums = nan_where(is_nan(trace), (e0 + e1) + (e2 + e3));
    // +∞ has no share that is a number, and a row of only −∞ has no distribution.
    let none = vec4<bool>(abs(largest) > 3.4028234663852886e38);
    let total = nan_where(none, vec4f(fold(sums, false, 1u, place)));
    if params.as_log != 0u {
        let shift = logarithm(total);
        keep(row, local, v0 - shift);
        keep(row, i1, v1 - shift);
        keep(row, i2, v2 - shift);
        keep(row, i3, v3 - shift);
    } else {
        let share = 1.0 / total;
        keep(row, local, e0 * share);
        keep(row, i1, e1 * share);
        keep(row, i2, e2 * share);
        keep(row, i3, e3 * share);
    }
}
