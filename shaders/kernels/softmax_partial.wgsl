// The first of two dispatches for long rows: maximum and sum of exponentials of each chunk of
// each row, as pairs (Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018).
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

fn before0(i: u32) -> f32 {
    return x[i];
}

const GROUP = 256u;

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
    let row = index / params.chunks;
    let first = (index % params.chunks) * params.chunk_len;
    let end = row * params.cols + min(first + params.chunk_len, params.cols);
    let start = row * params.cols + first + local;
    var largest = params.lowest;
    for (var i = start; i < end; i += 256u) {
        largest = maximum(largest, before0(i));
    }
    largest = workgroup_reduce(MAX, largest, local);
    var total = 0.0;
    for (var i = start; i < end; i += 256u) {
        total += rescale(before0(i), largest);
    }
    total = workgroup_reduce(SUM, total, local);
    if local == 0u {
        partials[index] = vec2f(largest, total);
    }
}
