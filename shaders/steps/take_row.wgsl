// The row of a matrix that an index names, times a factor: an invocation writes eight elements. Other rows belong to
// another part of the matrix.
import package::steps::blocks::{eight, group_of};

struct Params {
    // The elements of a row, the rows, and the number of the first one.
    k: u32,
    rows: u32,
    first: u32,
    // As in multiply_blocks.wgsl.
    group_len: u32,
    least: f32,
    scale: f32,
    // The place of the index.
    at: u32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> index: array<f32>;
@group(0) @binding(2) var<storage, read> words: array<u32>;
@group(0) @binding(3) var<storage, read> scales: array<vec2f>;
@group(0) @binding(4) var<storage, read_write> y: array<vec4f>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
    let eights = params.k / 8u;
    // Beyond all rows where the index is below the first.
    let row = u32(index[params.at]) - params.first;
    if id.x >= eights || row >= params.rows {
        return;
    }
    let at = row * eights + id.x;
    let weights = eight(at);
    let scale = params.scale * group_of(at);
    y[2u * id.x] = scale.x * weights.low + scale.y;
    y[2u * id.x + 1u] = scale.x * weights.high + scale.y;
}
