// The second of two dispatches for long rows: every workgroup folds its row's pairs, of which
// there are at most 256, then writes its chunk.
struct Params {
    rows: u32,
    cols: u32,
    chunks: u32,
    chunk_len: u32,
    lowest: f32,
    as_log: u32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read> partials: array<vec2f>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;

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
    var pair = vec2f(params.lowest, 0.0);
    if local < params.chunks {
        pair = partials[row * params.chunks + local];
    }
    let largest = workgroup_reduce(MAX, pair.x, local);
    // A row of only −∞ has no distribution; x − max is NaN for each of its values.
    let total = workgroup_reduce(SUM, pair.y * rescale(pair.x, largest), local);
    let first = (index % params.chunks) * params.chunk_len;
    let end = row * params.cols + min(first + params.chunk_len, params.cols);
    for (var i = row * params.cols + first + local; i < end; i += 256u) {
        y[i] = after(i, normalise(before0(i), largest, total, params.as_log));
    }
}
