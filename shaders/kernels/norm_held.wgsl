// GROUP invocations a row of at most 16 · GROUP values, which stay in registers between one read and
// one write of each. Rows are made of whole vectors. A workgroup has ROWS rows.
import constants::{GROUP, ROWS};
import package::lib::fold::fold;
import package::lib::grid::workgroup_index;
import package::lib::hooks::after;
import package::lib::norm::{factor_of, normed};

struct Params {
    rows: u32,
    cols: u32,
    epsilon: f32,
    centred: u32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<vec4f>;
@group(0) @binding(2) var<storage, read> gain: array<vec4f>;
@group(0) @binding(3) var<storage, read> bias: array<vec4f>;
@group(0) @binding(4) var<storage, read_write> y: array<vec4f>;

fn before0(i: u32) -> vec4f {
    return x[i];
}

fn load(row: u32, i: u32) -> vec4f {
    let across = params.cols / 4u;
    return select(vec4f(), before0(row * across + i), i < across);
}

// How far values are from the mean; those past the row's end count as no distance.
fn deviation(i: u32, values: vec4f, mean: f32) -> vec4f {
    return select(vec4f(), values - mean, i < params.cols / 4u);
}

fn keep(row: u32, i: u32, values: vec4f, factor: f32) {
    let across = params.cols / 4u;
    if i < across && row < params.rows {
        let at = row * across + i;
        y[at] = after(at, normed(values, factor, gain[i], bias[i], params.centred));
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
    let cols = f32(params.cols);
    // The same for all.
    if params.centred != 0u {
        let mean = fold((v0 + v1) + (v2 + v3), false, 0u, place) / cols;
        v0 = deviation(local, v0, mean);
        v1 = deviation(i1, v1, mean);
        v2 = deviation(i2, v2, mean);
        v3 = deviation(i3, v3, mean);
    }
    let squares = fold((v0 * v0 + v1 * v1) + (v2 * v2 + v3 * v3), false, 1u, place);
    let factor = factor_of(squares / cols, params.epsilon);
    keep(row, local, v0, factor);
    keep(row, i1, v1, factor);
    keep(row, i2, v2, factor);
    keep(row, i3, v3, factor);
}
