// A step of cumulative sums or products of rows: each element is combined with the one at a distance before it, which
// has as many elements below it by then (Hillis and Steele, 1986).
import package::lib::grid::workgroup_index;

struct Params {
    len: u32,
    cols: u32,
    distance: u32,
    is_product: u32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;

// Elements of a workgroup, as the host counts them.
const CHUNK = 1024u;
// Fewer on software adapters.
override GROUP = 256u;

fn element(i: u32) -> f32 {
    let own = x[i];
    if i % params.cols < params.distance {
        return own;
    }
    let before = x[i - params.distance];
    return select(before + own, before * own, params.is_product != 0u);
}

@compute @workgroup_size(GROUP)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) local: u32,
) {
    let start = workgroup_index(group, groups) * CHUNK;
    for (var i = start + local; i < min(start + CHUNK, params.len); i += GROUP) {
        y[i] = element(i);
    }
}
