// Heads whose pairs of elements are rotated by the angles of their token's position.
import package::lib::grid::workgroup_index;
import package::lib::hooks::after;

struct Params {
    len: u32,
    // Elements of a token, and of a head.
    row: u32,
    head_len: u32,
    // Pairs of a head, the first ones of its elements, and whether a pair is of neighbours.
    pairs: u32,
    interleaved: u32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<f32>;
// The cosine and the sine for each token and pair.
@group(0) @binding(2) var<storage, read> angles: array<f32>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;

// Elements of a workgroup, as the host counts them.
const CHUNK = 1024u;
// Fewer on software adapters.
override GROUP = 256u;

fn rotated(i: u32) -> f32 {
    let place = i % params.head_len;
    if place >= 2u * params.pairs {
        return x[i];
    }
    let neighbours = params.interleaved == 1u;
    let pair = select(place % params.pairs, place / 2u, neighbours);
    let second = select(place / params.pairs, place % 2u, neighbours) == 1u;
    let stride = select(params.pairs, 1u, neighbours);
    let angle = 2u * (i / params.row * params.pairs + pair);
    let other = x[select(i + stride, i - stride, second)];
    return x[i] * angles[angle] + select(-other, other, second) * angles[angle + 1u];
}

@compute @workgroup_size(GROUP)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) local: u32,
) {
    let start = workgroup_index(group, groups) * CHUNK;
    for (var i = start + local; i < min(start + CHUNK, params.len); i += GROUP) {
        y[i] = after(i, rotated(i));
    }
}
