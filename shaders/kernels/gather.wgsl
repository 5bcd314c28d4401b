// Elements of a table by index: `span` neighbouring ones for each. Where an index is none, they are NaN.
import package::lib::grid::workgroup_index;
import package::lib::hooks::after;
import package::lib::nan::{is_nan, nan_where};

struct Params {
    len: u32,
    // What indices must be below.
    count: u32,
    span: u32,
    // Elements of y that belong to one row of the table, and the distance of its rows, where indices are within a row.
    per_row: u32,
    stride: u32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> table: array<f32>;
@group(0) @binding(2) var<storage, read> indices: array<f32>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;

// Elements of a workgroup, as the host counts them.
const CHUNK = 1024u;
// Fewer on software adapters.
override GROUP = 256u;

@compute @workgroup_size(GROUP)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) local: u32,
) {
    let start = workgroup_index(group, groups) * CHUNK;
    for (var i = start + local; i < min(start + CHUNK, params.len); i += GROUP) {
        let index = indices[i / params.span];
        let found = !is_nan(index) && index >= 0.0 && index < f32(params.count) && floor(index) == index;
        let place = u32(select(0.0, index, found)) * params.span + i % params.span;
        let value = table[place + i / params.per_row * params.stride];
        y[i] = after(i, nan_where(!found, value));
    }
}
