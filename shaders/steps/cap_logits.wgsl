// Logits as c · tanh(logit / c), in place.
import package::steps::soft_cap::soft_capped;
import package::lib::grid::workgroup_index;

struct Params {
    len: u32,
    cap: f32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read_write> logits: array<f32>;

const GROUP = 64u;

@compute @workgroup_size(GROUP)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) local: u32,
) {
    let i = workgroup_index(group, groups) * GROUP + local;
    if i < params.len {
        logits[i] = soft_capped(logits[i], params.cap);
    }
}
