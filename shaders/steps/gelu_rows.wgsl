// GELU by its definition with the error function, of vectors of four.
import package::lib::grid::workgroup_index;
import package::lib::math::times_normal_cdf;

struct Params {
    len: u32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<vec4f>;
@group(0) @binding(2) var<storage, read_write> y: array<vec4f>;

const GROUP = 64u;

@compute @workgroup_size(GROUP)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) local: u32,
) {
    let i = workgroup_index(group, groups) * GROUP + local;
    if i < params.len {
        y[i] = times_normal_cdf(x[i]);
    }
}
