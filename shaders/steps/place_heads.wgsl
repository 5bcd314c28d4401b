// Moves heads of queries, keys and values to where attention reads them. A workgroup moves one head.
import package::steps::head::{take, turn, turned, write_row};
import package::lib::grid::workgroup_index;

struct Params {
    tokens: u32,
    // Heads of queries, and of keys, which are as many as those of values.
    heads: u32,
    kv_heads: u32,
    head_len: u32,
    // The position of the first token, and the positions that the cache has room for: one beyond takes the place of an
    // earlier one.
    position: u32,
    capacity: u32,
    // The rows before the first token's.
    before: u32,
    // Pairs of a head that are rotated, and whether a pair is of neighbours.
    pairs: u32,
    neighbours: u32,
    // 0: no norms, 1: of each head, 2: of all heads of queries together, and of all of keys.
    gains: u32,
    epsilon: f32,
    // The first angles of queries.
    query_angles: u32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read> query_gain: array<f32>;
@group(0) @binding(3) var<storage, read> key_gain: array<f32>;
@group(0) @binding(4) var<storage, read> angles: array<vec2f>;
@group(0) @binding(5) var<storage, read_write> queries: array<f32>;
// The keys of all heads and positions, then the values: the words of attend.wgsl.
@if(!f16 && !q8_0)
@group(0) @binding(6) var<storage, read_write> cached: array<vec4f>;
@if(f16 || q8_0)
@group(0) @binding(6) var<storage, read_write> cached: array<vec4u>;

const GROUP = 64u;

@compute @workgroup_size(GROUP)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) local: u32,
) {
    let index = workgroup_index(group, groups);
    let heads = params.heads + 2u * params.kv_heads;
    if index >= params.tokens * heads {
        return;
    }
    let token = index / heads;
    let head = index % heads;
    let position = params.position + token;
    let first = (params.before * heads + index) * params.head_len;
    var squares = 0.0;
    for (var i = local; i < params.head_len; i += GROUP) {
        squares += take(i, x[first + i]);
    }
    turn(head, squares, position, local);
    if head >= params.heads {
        write_row((head - params.heads) * params.capacity + position % params.capacity, local);
        return;
    }
    let start = ((params.before + token) * params.heads + head) * params.head_len;
    for (var i = local; i < params.head_len; i += GROUP) {
        queries[start + i] = turned[i];
    }
}
