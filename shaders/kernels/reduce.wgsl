// Sum, maximum or minimum: each workgroup folds every `groups`-th block of 256 values into
// one. A second dispatch of one workgroup folds those; `divisor` makes a mean of a sum there.
struct Params {
    len: u32,
    groups: u32,
    kind: u32,
    identity: f32,
    divisor: f32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;

fn before0(i: u32) -> f32 {
    return x[i];
}

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) local: u32) {
    var folded = params.identity;
    for (var i = group.x * 256u + local; i < params.len; i += params.groups * 256u) {
        folded = combine(params.kind, folded, before0(i));
    }
    folded = workgroup_reduce(params.kind, folded, local);
    if local == 0u {
        y[group.x] = folded / params.divisor;
    }
}
