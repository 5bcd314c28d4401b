// The rows of two matrices side by side.
import package::lib::grid::workgroup_index;
import package::lib::hooks::after;

struct Params {
    len: u32,
    a_cols: u32,
    b_cols: u32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> a: array<f32>;
@group(0) @binding(2) var<storage, read> b: array<f32>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;

// Elements of a workgroup, as the host counts them.
const CHUNK = 1024u;
// Fewer on software adapters.
override GROUP = 256u;

fn element(i: u32) -> f32 {
    let cols = params.a_cols + params.b_cols;
    let row = i / cols;
    let col = i % cols;
    if col < params.a_cols {
        return a[row * params.a_cols + col];
    }
    return b[row * params.b_cols + col - params.a_cols];
}

@compute @workgroup_size(GROUP)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) local: u32,
) {
    let start = workgroup_index(group, groups) * CHUNK;
    for (var i = start + local; i < min(start + CHUNK, params.len); i += GROUP) {
        y[i] = after(i, element(i));
    }
}
