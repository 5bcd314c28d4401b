// y = OP(a, b), four values an invocation. Buffers are padded to whole vectors.
alias real = vec4f;
alias word = vec4u;
alias truth = vec4<bool>;

struct Params {
    vectors: u32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> a: array<vec4f>;
@group(0) @binding(2) var<storage, read> b: array<vec4f>;
@group(0) @binding(3) var<storage, read_write> y: array<vec4f>;

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) local: u32,
) {
    let i = workgroup_index(group, groups) * 256u + local;
    if i < params.vectors {
        y[i] = OP(a[i], b[i]);
    }
}
