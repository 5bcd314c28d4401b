// The second of two dispatches for long rows: every workgroup folds its row's pairs, then
// writes its chunk.
import package::lib::grid::workgroup_index;
import package::lib::nan::maximum;
import package::lib::reduce::{MAX, SUM, workgroup_reduce};
import package::lib::rows::chunk;
import package::lib::softmax::{exponential_of_difference, measured_from, put_shares};

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
    let first = index - index % params.chunks;
    var largest = params.lowest;
    for (var i = local; i < params.chunks; i += GROUP) {
        largest = maximum(largest, partials[first + i].x);
    }
    largest = workgroup_reduce(MAX, largest, local);
    var total = 0.0;
    for (var i = local; i < params.chunks; i += GROUP) {
        let pair = partials[first + i];
        total += pair.y * exponential_of_difference(pair.x - measured_from(largest)).x;
    }
    total = workgroup_reduce(SUM, total, local);
    let part = (index / params.chunks) * params.cols + chunk(index % params.chunks);
    put_shares(part.x, part.y, largest, total, local);
}
