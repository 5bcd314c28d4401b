// Adds a row to some columns of each row.
import package::lib::grid::workgroup_index;

struct Params {
    rows: u32,
    // The row's length, the first column, and the columns of Y.
    len: u32,
    column: u32,
    columns: u32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;

const GROUP = 64u;

@compute @workgroup_size(GROUP)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) local: u32,
) {
    let i = workgroup_index(group, groups) * GROUP + local;
    if i < params.rows * params.len {
        y[i / params.len * params.columns + params.column + i % params.len] += x[i % params.len];
    }
}
