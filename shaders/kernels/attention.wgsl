// Attention of a head of one token to the positions that it sees: a workgroup goes through them 64 at a time, an
// invocation a position, and keeps the largest score and the sum so far (Milakov and Gimelshein, "Online normalizer
// calculation for softmax", 2018).
import package::lib::grid::workgroup_index;
import package::lib::hooks::after;
import package::lib::math::hyperbolic_tangent;
import package::lib::nan::maximum;
import package::lib::reduce::{MAX, SUM, workgroup_reduce};

struct Params {
    tokens: u32,
    heads: u32,
    kv_heads: u32,
    head_len: u32,
    positions: u32,
    // Whether a token sees the positions up to its own only, and the position of the first token.
    causal: u32,
    first: u32,
    // Positions that a token sees at most, and the bound of scores, or 0.
    window: u32,
    soft_cap: f32,
    scale: f32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> queries: array<f32>;
@group(0) @binding(2) var<storage, read> keys: array<f32>;
@group(0) @binding(3) var<storage, read> values: array<f32>;
@group(0) @binding(4) var<storage, read_write> y: array<f32>;

const GROUP = 64u;
// Below every score, and not infinite: shaders may assume that nothing is.
const LOWEST = -3e38;

var<workgroup> query: array<f32, 256>;
var<workgroup> weights: array<f32, GROUP>;

// The score of the key that begins at an index.
fn score_of(key: u32) -> f32 {
    var products = vec4f();
    var i = 0u;
    for (; i + 4u <= params.head_len; i += 4u) {
        let part = vec4f(keys[key + i], keys[key + i + 1u], keys[key + i + 2u], keys[key + i + 3u]);
        products += part * vec4f(query[i], query[i + 1u], query[i + 2u], query[i + 3u]);
    }
    for (; i < params.head_len; i++) {
        products.x += keys[key + i] * query[i];
    }
    let score = (products.x + products.y) + (products.z + products.w);
    if params.soft_cap > 0.0 {
        return params.soft_cap * hyperbolic_tangent(score / params.soft_cap);
    }
    return score;
}

// The four elements of the value that an invocation mixes, which are GROUP apart. Beyond the head's end they do not
// matter, and are the last one.
fn value_at(value: u32, local: u32) -> vec4f {
    let last = params.head_len - 1u;
    var part = vec4f(values[value + min(local, last)]);
    if params.head_len > GROUP {
        part.y = values[value + min(local + GROUP, last)];
    }
    if params.head_len > 2u * GROUP {
        part.z = values[value + min(local + 2u * GROUP, last)];
        part.w = values[value + min(local + 3u * GROUP, last)];
    }
    return part;
}

fn put(row: u32, place: u32, value: f32) {
    if place < params.head_len {
        y[row + place] = after(row + place, value);
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
    let row = index * params.head_len;
    for (var i = local; i < params.head_len; i += GROUP) {
        query[i] = params.scale * queries[row + i];
    }
    workgroupBarrier();
    let stride = params.kv_heads * params.head_len;
    let column = index % params.heads / (params.heads / params.kv_heads) * params.head_len;
    let end = select(params.positions, params.first + index / params.heads + 1u, params.causal == 1u);
    let start = select(0u, max(end, params.window) - params.window, params.window > 0u);
    var highest = LOWEST;
    var total = 0.0;
    var sum = vec4f();
    for (var first = start; first < end; first += GROUP) {
        var score = LOWEST;
        if first + local < end {
            score = score_of((first + local) * stride + column);
        }
        let above = maximum(highest, workgroup_reduce(MAX, score, local));
        let weight = select(0.0, exp(score - above), first + local < end);
        let correction = exp(highest - above);
        highest = above;
        weights[local] = weight;
        total = total * correction + workgroup_reduce(SUM, weight, local);
        sum *= correction;
        for (var i = 0u; i < min(GROUP, end - first); i++) {
            sum += weights[i] * value_at((first + i) * stride + column, local);
        }
        // Nobody may write the next weight before all have read these.
        workgroupBarrier();
    }
    let mixed = sum / total;
    put(row, local, mixed.x);
    put(row, local + GROUP, mixed.y);
    put(row, local + 2u * GROUP, mixed.z);
    put(row, local + 3u * GROUP, mixed.w);
}
