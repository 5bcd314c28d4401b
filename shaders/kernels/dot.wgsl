// The first dispatch of a dot product; `reduce` folds the workgroups' sums.
struct Params {
    len: u32,
    groups: u32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> a: array<f32>;
@group(0) @binding(2) var<storage, read> b: array<f32>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;

fn before0(i: u32) -> f32 {
    return a[i];
}

fn before1(i: u32) -> f32 {
    return b[i];
}

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) local: u32) {
    var total = 0.0;
    for (var i = group.x * 256u + local; i < params.len; i += params.groups * 256u) {
        total += before0(i) * before1(i);
    }
    total = workgroup_reduce(SUM, total, local);
    if local == 0u {
        y[group.x] = total;
    }
}
