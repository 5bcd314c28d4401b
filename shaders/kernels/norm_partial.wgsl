// The first of two dispatches for long rows: mean and squares around it of each chunk of each row,
// as pairs.
import package::lib::grid::workgroup_index;
import package::lib::norm::moments_of;
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
    let row = index / params.chunks;
    let part = chunk(index % params.chunks);
    let start = row * params.cols;
    let moments = moments_of(start + part.x, start + part.y, params.centred, local);
    if local == 0u {
        partials[index] = moments;
    }
}
