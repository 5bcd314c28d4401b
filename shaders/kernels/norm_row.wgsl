// One workgroup a row: mean, mean square around it, result; three passes over the row, which stays
// in cache as long as this kernel is chosen for it.
import package::lib::grid::workgroup_index;
import package::lib::norm::{factor_of, moments_of, put_normed};

struct Params {
    rows: u32,
    cols: u32,
    epsilon: f32,
    centred: u32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read> gain: array<f32>;
@group(0) @binding(3) var<storage, read> bias: array<f32>;
@group(0) @binding(4) var<storage, read_write> y: array<f32>;

// Fewer on software adapters.
override GROUP = 256u;

fn before0(i: u32) -> f32 {
    return x[i];
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
    let start = row * params.cols;
    let moments = moments_of(start, start + params.cols, params.centred, local);
    let factor = factor_of(moments.y / f32(params.cols), params.epsilon);
    put_normed(start, vec2u(0u, params.cols), moments.x, factor, local);
}
