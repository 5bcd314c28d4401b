// Attention of a head of one token to the positions that it sees: a workgroup goes through them 64 at a time, an
// invocation a position, and keeps the largest score and the sum so far (Milakov and Gimelshein, "Online normalizer
// calculation for softmax", 2018).
import package::lib::grid::workgroup_index;
import package::lib::reduce::{MAX, SUM, workgroup_reduce};

struct Params {
    tokens: u32,
    heads: u32,
    // Heads of queries that share a head of keys and values.
    shared_by: u32,
    head_len: u32,
    // The position of the first token.
    position: u32,
    // Positions that there is room for, and those of a window, or 0.
    capacity: u32,
    window: u32,
    scale: f32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> queries: array<f32>;
@group(0) @binding(2) var<storage, read> keys: array<f32>;
@group(0) @binding(3) var<storage, read> values: array<f32>;
@group(0) @binding(4) var<storage, read_write> mixed: array<f32>;

const GROUP = 64u;
// Below every score, and not infinite: shaders may assume that nothing is.
const LOWEST = -3e38;

var<workgroup> query: array<f32, 256>;
var<workgroup> weights: array<f32, GROUP>;

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
    let head_len = params.head_len;
    for (var i = local; i < head_len; i += GROUP) {
        query[i] = params.scale * queries[index * head_len + i];
    }
    workgroupBarrier();
    let cached = index % params.heads / params.shared_by * params.capacity;
    let end = params.position + index / params.heads + 1u;
    let start = select(0u, max(end, params.window) - params.window, params.window > 0u);
    var highest = LOWEST;
    var total = 0.0;
    var sums = vec4f();
    for (var first = start; first < end; first += GROUP) {
        var score = LOWEST;
        if first + local < end {
            let key = (cached + first + local) * head_len;
            score = 0.0;
            for (var i = 0u; i < head_len; i++) {
                score += query[i] * keys[key + i];
            }
        }
        let above = max(highest, workgroup_reduce(MAX, score, local));
        let weight = select(0.0, exp(score - above), first + local < end);
        let correction = exp(highest - above);
        highest = above;
        weights[local] = weight;
        total = total * correction + workgroup_reduce(SUM, weight, local);
        sums *= correction;
        for (var i = 0u; i < min(GROUP, end - first); i++) {
            let value = (cached + first + i) * head_len + local;
            for (var part = 0u; part < 4u && local + part * GROUP < head_len; part++) {
                sums[part] += weights[i] * values[value + part * GROUP];
            }
        }
        workgroupBarrier();
    }
    for (var part = 0u; part < 4u && local + part * GROUP < head_len; part++) {
        mixed[index * head_len + local + part * GROUP] = sums[part] / total;
    }
}
