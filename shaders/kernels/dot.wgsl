// The first dispatch of a dot product; `reduce` folds the workgroups' sums.
import package::lib::reduce::{SUM, fold_lanes, sum_of_terms, walk_of, workgroup_reduce};

struct Params {
    len: u32,
    groups: u32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> a: array<vec4f>;
@group(0) @binding(2) var<storage, read> b: array<vec4f>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;

// Fewer on software adapters.
override GROUP = 256u;

fn before0(i: u32) -> vec4f {
    return a[i];
}

fn before1(i: u32) -> vec4f {
    return b[i];
}

fn term(i: u32) -> vec4f {
    return before0(i) * before1(i);
}

@compute @workgroup_size(GROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) local: u32) {
    let sum = sum_of_terms(walk_of(group.x, local));
    let total = fold_lanes(SUM, workgroup_reduce(SUM, sum, local));
    if local == 0u {
        y[group.x] = total.x;
    }
}
