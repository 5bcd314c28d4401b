// The second of two dispatches for long rows: every workgroup puts its row's pairs together,
// as T. Chan, G. Golub and R. LeVeque do ("Algorithms for computing the sample variance", 1983), then
// writes its chunk.
import package::lib::grid::workgroup_index;
import package::lib::norm::{factor_of, put_normed};
import package::lib::reduce::{SUM, workgroup_reduce};
import package::lib::rows::chunk;

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

// Fewer on software adapters.
override GROUP = 256u;

fn before0(i: u32) -> f32 {
    return x[i];
}

// The values of a chunk.
fn count(number: u32) -> f32 {
    let columns = chunk(number);
    return f32(columns.y - columns.x);
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
    let first = index - index % params.chunks;
    var sum = 0.0;
    for (var i = local; i < params.chunks; i += GROUP) {
        sum += count(i) * partials[first + i].x;
    }
    let mean = workgroup_reduce(SUM, sum, local) / f32(params.cols);
    var squares = 0.0;
    for (var i = local; i < params.chunks; i += GROUP) {
        let pair = partials[first + i];
        let apart = pair.x - mean;
        squares += pair.y + count(i) * apart * apart;
    }
    squares = workgroup_reduce(SUM, squares, local);
    let factor = factor_of(squares / f32(params.cols), params.epsilon);
    let start = (index / params.chunks) * params.cols;
    put_normed(start, chunk(index % params.chunks), mean, factor, local);
}
