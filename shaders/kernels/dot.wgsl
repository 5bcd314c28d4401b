// The first dispatch of a dot product; `reduce` folds the workgroups' sums.
alias real = f32;
alias word = u32;
alias truth = bool;

struct Params {
    len: u32,
    groups: u32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> a: array<f32>;
@group(0) @binding(2) var<storage, read> b: array<f32>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) local: u32) {
    var total = 0.0;
    for (var i = group.x * 256u + local; i < params.len; i += params.groups * 256u) {
        total += a[i] * b[i];
    }
    total = workgroup_reduce(SUM, total, local);
    if local == 0u {
        y[group.x] = total;
    }
}
