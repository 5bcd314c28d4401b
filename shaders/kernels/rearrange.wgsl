// y[i₀, i₁, …] = x[offset + Σ iₖ · strideₖ], for six axes at most. Those that are absent have one element; the outermost
// axis is the first.
import package::lib::grid::workgroup_index;
import package::lib::hooks::after;

struct Params {
    len: u32,
    offset: u32,
    // Sizes of all axes but the outermost.
    size1: u32,
    size2: u32,
    size3: u32,
    size4: u32,
    size5: u32,
    // Strides, negative ones modulo 2³².
    stride0: u32,
    stride1: u32,
    stride2: u32,
    stride3: u32,
    stride4: u32,
    stride5: u32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;

// Elements of a workgroup, as the host counts them.
const CHUNK = 1024u;
// Fewer on software adapters.
override GROUP = 256u;

fn index(i: u32) -> u32 {
    var at = vec2u(i, params.offset);
    at = walked(at, params.size5, params.stride5);
    at = walked(at, params.size4, params.stride4);
    at = walked(at, params.size3, params.stride3);
    at = walked(at, params.size2, params.stride2);
    at = walked(at, params.size1, params.stride1);
    return at.y + at.x * params.stride0;
}

// What is left of an index after an axis, and the place in x so far. Divisions cost software adapters most of the time.
fn walked(at: vec2u, size: u32, stride: u32) -> vec2u {
    if size == 1u {
        return at;
    }
    return vec2u(at.x / size, at.y + at.x % size * stride);
}

@compute @workgroup_size(GROUP)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) local: u32,
) {
    let start = workgroup_index(group, groups) * CHUNK;
    for (var i = start + local; i < min(start + CHUNK, params.len); i += GROUP) {
        y[i] = after(i, x[index(i)]);
    }
}
