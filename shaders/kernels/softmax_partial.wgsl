// The first of two dispatches for long rows: maximum and sum of exponentials of each chunk of
// each row, as pairs (Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018).
import package::lib::grid::workgroup_index;
import package::lib::rows::chunk;
import package::lib::softmax::{largest_of, total_of};

struct Params {
    rows: u32,
    cols: u32,
    chunks: u32,
    chunk_len: u32,
    lowest: f32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read_write> partials: array<vec2f>;

// Fewer on software adapters.
override GROUP = 256u;

fn before0(i: u32) -> f32 {
    return x[i];
}

@compute @workgroup_size(GROUP)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) local: u32,
) {
    let index = workgroup_index(group, groups);
    if index >= params.rows * params.chunks {
        return;
    }
    let start = (index / params.chunks) * params.cols;
    let part = start + chunk(index % params.chunks);
    let largest = largest_of(part.x, part.y, local);
    let total = total_of(part.x, part.y, largest, local);
    if local == 0u {
        partials[index] = vec2f(largest, total);
    }
}
