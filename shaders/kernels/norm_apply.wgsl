// The second of two dispatches for long rows: every workgroup puts its row's pairs together, of
// which there are at most 256, as T. Chan, G. Golub and R. LeVeque do ("Algorithms for computing the
// sample variance", 1983), then writes its chunk.
struct Params {
    rows: u32,
    cols: u32,
    chunks: u32,
    chunk_len: u32,
    epsilon: f32,
    centred: u32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read> partials: array<vec2f>;
@group(0) @binding(3) var<storage, read> gain: array<f32>;
@group(0) @binding(4) var<storage, read> bias: array<f32>;
@group(0) @binding(5) var<storage, read_write> y: array<f32>;

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
    var pair = vec2f();
    var count = 0.0;
    if local < params.chunks {
        pair = partials[row * params.chunks + local];
        let theirs = chunk(local);
        count = f32(theirs.y - theirs.x);
    }
    let mean = workgroup_reduce(SUM, count * pair.x, local) / f32(params.cols);
    let apart = pair.x - mean;
    let squares = workgroup_reduce(SUM, pair.y + count * apart * apart, local);
    let factor = inverseSqrt(squares / f32(params.cols) + params.epsilon);
    let part = chunk(index % params.chunks);
    for (var col = part.x + local; col < part.y; col += GROUP) {
        let i = row * params.cols + col;
        y[i] = after(i, normed(before0(i) - mean, factor, gain[col], bias[col], params.centred));
    }
}
