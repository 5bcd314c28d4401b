// Elementwise operations, which `after` applies to x and whatever else it reads at i: two times
// four values an invocation. Buffers are padded to whole vectors; what the padding holds never matters.
import package::lib::grid::workgroup_index;
import package::lib::hooks::after;

struct Params {
    vectors: u32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<vec4f>;
@group(0) @binding(2) var<storage, read_write> y: array<vec4f>;

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) local: u32,
) {
    let i = workgroup_index(group, groups) * 512u + local;
    let j = i + 256u;
    // Both are read before either is stored.
    if j < params.vectors {
        let first = after(i, x[i]);
        let second = after(j, x[j]);
        y[i] = first;
        y[j] = second;
    } else if i < params.vectors {
        y[i] = after(i, x[i]);
    }
}
