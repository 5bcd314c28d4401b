// Heads of queries, or of keys and values, to where attention reads them: the first ones divided by their root mean
// square if there is a gain, then rotated by their position's angles. A workgroup a head.
import package::lib::grid::workgroup_index;
import package::lib::reduce::{SUM, workgroup_reduce};

struct Params {
    tokens: u32,
    heads: u32,
    // Heads that are normalised and rotated; the others are only copied.
    turned: u32,
    head_len: u32,
    // The first head's column, and the columns of X.
    column: u32,
    columns: u32,
    // The position of the first token.
    position: u32,
    // Pairs of a head that are rotated, and whether a pair is of neighbours.
    pairs: u32,
    neighbours: u32,
    has_gain: u32,
    epsilon: f32,
    // Where the first head goes, and the elements from a token to the next and from a head to the next.
    start: u32,
    token_stride: u32,
    head_stride: u32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read> gain: array<f32>;
@group(0) @binding(3) var<storage, read> angles: array<vec2f>;
@group(0) @binding(4) var<storage, read_write> y: array<f32>;

const GROUP = 64u;

var<workgroup> values: array<f32, 256>;

@compute @workgroup_size(GROUP)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) local: u32,
) {
    let index = workgroup_index(group, groups);
    if index >= params.tokens * params.heads {
        return;
    }
    let token = index / params.heads;
    let head = index % params.heads;
    var squares = 0.0;
    for (var i = local; i < params.head_len; i += GROUP) {
        let value = x[token * params.columns + params.column + head * params.head_len + i];
        squares += value * value;
        values[i] = value;
    }
    let square = workgroup_reduce(SUM, squares, local) / f32(params.head_len);
    if params.has_gain == 1u && head < params.turned {
        let factor = 1.0 / sqrt(square + params.epsilon);
        for (var i = local; i < params.head_len; i += GROUP) {
            values[i] *= factor * gain[i];
        }
    }
    workgroupBarrier();
    let start = params.start + token * params.token_stride + head * params.head_stride;
    for (var i = local; i < params.head_len; i += GROUP) {
        var value = values[i];
        if i < 2u * params.pairs && head < params.turned {
            let pair = select(i % params.pairs, i / 2u, params.neighbours == 1u);
            let second = select(i / params.pairs, i % 2u, params.neighbours == 1u) == 1u;
            let stride = select(params.pairs, 1u, params.neighbours == 1u);
            let angle = angles[(params.position + token) * params.pairs + pair];
            let other = values[select(i + stride, i - stride, second)];
            value = value * angle.x + select(-other, other, second) * angle.y;
        }
        y[start + i] = value;
    }
}
