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
    // Where the first head goes, and the elements of Y from a token to the next and from a head to the next.
    start: u32,
    token_stride: u32,
    head_stride: u32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read> gain: array<f32>;
@group(0) @binding(3) var<storage, read> angles: array<vec2f>;
@if(!f16)
@group(0) @binding(4) var<storage, read_write> y: array<f32>;
// A word has an f16 of the first half of a head and the one at the same place of the second half.
@if(f16)
@group(0) @binding(4) var<storage, read_write> y: array<u32>;

const GROUP = 64u;

// The largest f16: beyond it the conversion has no defined result.
@if(f16)
const MOST = 65504.0;

var<workgroup> values: array<f32, 256>;

// An element of the head, rotated by the angles of its position.
fn rotated(i: u32, head: u32, position: u32) -> f32 {
    let value = values[i];
    if i >= 2u * params.pairs || head >= params.turned {
        return value;
    }
    let pair = select(i % params.pairs, i / 2u, params.neighbours == 1u);
    let second = select(i / params.pairs, i % 2u, params.neighbours == 1u) == 1u;
    let stride = select(params.pairs, 1u, params.neighbours == 1u);
    let angle = angles[position * params.pairs + pair];
    let other = values[select(i + stride, i - stride, second)];
    return value * angle.x + select(-other, other, second) * angle.y;
}

@if(!f16)
fn write(start: u32, local: u32, head: u32, position: u32) {
    for (var i = local; i < params.head_len; i += GROUP) {
        y[start + i] = rotated(i, head, position);
    }
}

@if(f16)
fn write(start: u32, local: u32, head: u32, position: u32) {
    let half = params.head_len / 2u;
    for (var i = local; i < half; i += GROUP) {
        let pair = vec2f(rotated(i, head, position), rotated(half + i, head, position));
        y[start + i] = pack2x16float(clamp(pair, vec2f(-MOST), vec2f(MOST)));
    }
}

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
    write(start, local, head, params.position + token);
}
