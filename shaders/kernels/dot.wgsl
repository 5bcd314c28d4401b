// The first dispatch of a dot product; `reduce` folds the workgroups' sums.
alias real = vec4f;
alias word = vec4u;
alias integer = vec4i;
alias truth = vec4<bool>;

struct Params {
    len: u32,
    groups: u32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> a: array<vec4f>;
@group(0) @binding(2) var<storage, read> b: array<vec4f>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;

const GROUP = 256u;

fn before0(i: u32) -> vec4f {
    return a[i];
}

fn before1(i: u32) -> vec4f {
    return b[i];
}

@compute @workgroup_size(GROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) local: u32) {
    var total = vec4f();
    for (var i = group.x * GROUP + local; 4u * i < params.len; i += params.groups * GROUP) {
        total += select(vec4f(), before0(i) * before1(i), inside(i, params.len));
    }
    total = fold_lanes(SUM, workgroup_reduce(SUM, total, local));
    if local == 0u {
        y[group.x] = total.x;
    }
}
