// Rows divided by their root mean square, times a gain: a workgroup a row of vectors of four. With `deviations`, the
// row's mean is subtracted first, and a bias added last.
import package::lib::grid::workgroup_index;
import package::lib::reduce::{SUM, workgroup_reduce};

struct Params {
    rows: u32,
    // Vectors of a row.
    cols: u32,
    epsilon: f32,
    // Rows of the input before the first one.
    skipped: u32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<vec4f>;
@group(0) @binding(2) var<storage, read> gain: array<vec4f>;
@if(!deviations)
@group(0) @binding(3) var<storage, read_write> y: array<vec4f>;
@if(deviations)
@group(0) @binding(3) var<storage, read> bias: array<vec4f>;
@if(deviations)
@group(0) @binding(4) var<storage, read_write> y: array<vec4f>;

const GROUP = 64u;

@if(!deviations)
fn mean_of(source: u32, local: u32) -> vec4f {
    return vec4f();
}

@if(deviations)
fn mean_of(source: u32, local: u32) -> vec4f {
    var sums = vec4f();
    for (var i = local; i < params.cols; i += GROUP) {
        sums += x[source + i];
    }
    let sum = workgroup_reduce(SUM, dot(sums, vec4f(1.0)), local);
    return vec4f(sum / f32(4u * params.cols));
}

@if(!deviations)
fn scaled(element: vec4f, i: u32) -> vec4f {
    return element * gain[i];
}

@if(deviations)
fn scaled(element: vec4f, i: u32) -> vec4f {
    return element * gain[i] + bias[i];
}

@compute @workgroup_size(GROUP)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) local: u32,
) {
    let row = workgroup_index(group, groups);
    if row >= params.rows {
        return;
    }
    let source = (params.skipped + row) * params.cols;
    let mean = mean_of(source, local);
    var squares = 0.0;
    for (var i = local; i < params.cols; i += GROUP) {
        let deviation = x[source + i] - mean;
        squares += dot(deviation, deviation);
    }
    let square = workgroup_reduce(SUM, squares, local) / f32(4u * params.cols);
    let factor = 1.0 / sqrt(square + params.epsilon);
    for (var i = local; i < params.cols; i += GROUP) {
        y[row * params.cols + i] = scaled((x[source + i] - mean) * factor, i);
    }
}
