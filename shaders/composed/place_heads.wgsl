// Heads of queries, keys and values to where attention reads them: those of queries and keys divided by their root mean
// square if there are gains, then rotated by their position's angles. A workgroup a head.
import package::lib::grid::workgroup_index;
import package::lib::reduce::{SUM, workgroup_reduce};

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
    // Pairs of a head that are rotated, and whether a pair is of neighbours.
    pairs: u32,
    neighbours: u32,
    has_gains: u32,
    epsilon: f32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read> query_gain: array<f32>;
@group(0) @binding(3) var<storage, read> key_gain: array<f32>;
@group(0) @binding(4) var<storage, read> angles: array<vec2f>;
@group(0) @binding(5) var<storage, read_write> queries: array<f32>;
// The keys of all heads and positions, then the values.
@if(!f16 && !q8_0)
@group(0) @binding(6) var<storage, read_write> cached: array<f32>;
// A word has an f16 of the first half of a head and the one at the same place of the second half.
@if(f16)
@group(0) @binding(6) var<storage, read_write> cached: array<u32>;
// A word has four integers of 8 bits. The scales of blocks of 32 follow, and fill their last four words up.
@if(q8_0)
@group(0) @binding(6) var<storage, read_write> cached: array<u32>;

const GROUP = 64u;

// The largest f16: beyond it the conversion has no defined result.
@if(f16)
const MOST = 65504.0;

// Below it the inverse may be infinite. A block of such numbers becomes zeros.
@if(q8_0)
const LEAST = 1e-37;

@if(q8_0)
const NOT_A_NUMBER = 0x7fc00000u;

var<workgroup> values: array<f32, 256>;
@if(q8_0)
var<workgroup> turned: array<f32, 256>;

fn is_value(head: u32) -> bool {
    return head >= params.heads + params.kv_heads;
}

// An element of the head, rotated by the angles of its position.
fn rotated(i: u32, head: u32, position: u32) -> f32 {
    let value = values[i];
    if i >= 2u * params.pairs || is_value(head) {
        return value;
    }
    let pair = select(i % params.pairs, i / 2u, params.neighbours == 1u);
    let second = select(i / params.pairs, i % 2u, params.neighbours == 1u) == 1u;
    let stride = select(params.pairs, 1u, params.neighbours == 1u);
    let angle = angles[position * params.pairs + pair];
    let other = values[select(i + stride, i - stride, second)];
    return value * angle.x + select(-other, other, second) * angle.y;
}

fn gain(head: u32, i: u32) -> f32 {
    if head < params.heads {
        return query_gain[i];
    }
    return key_gain[i];
}

// Writes the head of a position to the `row`-th row of the cache.
@if(!f16 && !q8_0)
fn write_cache(row: u32, local: u32, head: u32, position: u32) {
    for (var i = local; i < params.head_len; i += GROUP) {
        cached[row * params.head_len + i] = rotated(i, head, position);
    }
}

@if(f16)
fn write_cache(row: u32, local: u32, head: u32, position: u32) {
    let half = params.head_len / 2u;
    for (var i = local; i < half; i += GROUP) {
        let pair = vec2f(rotated(i, head, position), rotated(half + i, head, position));
        cached[row * half + i] = pack2x16float(clamp(pair, vec2f(-MOST), vec2f(MOST)));
    }
}

@if(q8_0)
fn write_cache(row: u32, local: u32, head: u32, position: u32) {
    for (var i = local; i < params.head_len; i += GROUP) {
        turned[i] = rotated(i, head, position);
    }
    workgroupBarrier();
    let words = params.head_len / 4u;
    let blocks = (params.head_len + 31u) / 32u;
    let start = row * (words + (blocks + 3u) / 4u * 4u);
    for (var word = local; word < words; word += GROUP) {
        let block = word / 8u;
        var largest = 0.0;
        var bits = 0u;
        for (var i = 32u * block; i < min(32u * block + 32u, params.head_len); i++) {
            largest = max(largest, abs(turned[i]));
            bits = max(bits, bitcast<u32>(turned[i]) & 0x7fffffffu);
        }
        let inverse = select(0.0, 1.0 / largest, largest > LEAST);
        let i = 4u * word;
        let elements = vec4f(turned[i], turned[i + 1u], turned[i + 2u], turned[i + 3u]);
        cached[start + word] = pack4x8snorm(inverse * elements);
        if word % 8u == 0u {
            let is_finite = bits < 0x7f800000u;
            cached[start + words + block] = select(NOT_A_NUMBER, bitcast<u32>(largest / 127.0), is_finite);
        }
    }
}

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
    var squares = 0.0;
    for (var i = local; i < params.head_len; i += GROUP) {
        let value = x[index * params.head_len + i];
        squares += value * value;
        values[i] = value;
    }
    let square = workgroup_reduce(SUM, squares, local) / f32(params.head_len);
    if params.has_gains == 1u && !is_value(head) {
        let factor = 1.0 / sqrt(square + params.epsilon);
        for (var i = local; i < params.head_len; i += GROUP) {
            values[i] *= factor * gain(head, i);
        }
    }
    workgroupBarrier();
    let position = params.position + token;
    if head >= params.heads {
        let row = (head - params.heads) * params.capacity + position % params.capacity;
        write_cache(row, local, head, position);
        return;
    }
    let start = (token * params.heads + head) * params.head_len;
    for (var i = local; i < params.head_len; i += GROUP) {
        queries[start + i] = rotated(i, head, position);
    }
}
