// Attention of a head of many tokens to the positions that they see, with a running largest score and sum as in
// attend.wgsl. A workgroup computes 16 tokens and goes through the positions 64 at a time. Keys lie in its memory, 16
// elements of each at a time; an invocation multiplies one of them by the queries of eight tokens.
@if(f16) import package::steps::cached::{first_half, second_half};
@if(q8_0) import package::steps::cached::scale_of;
import package::steps::cached::{stride_of, vector_of, words_of, wrapped};
import package::steps::soft_cap::soft_capped;
import package::lib::grid::workgroup_index;

struct Params {
    // As in attend.wgsl.
    tokens: u32,
    heads: u32,
    kv_heads: u32,
    head_len: u32,
    position: u32,
    capacity: u32,
    window: u32,
    scale: f32,
    splits: u32,
    soft_cap: f32,
    // 0: several sequences have fewer tokens each.
    before: u32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> queries: array<f32>;
// As in attend.wgsl.
@if(!f16 && !q8_0)
@group(0) @binding(2) var<storage, read> cached: array<vec4f>;
@if(f16 || q8_0)
@group(0) @binding(2) var<storage, read> cached: array<vec4u>;
@group(0) @binding(3) var<storage, read_write> mixed: array<vec4f>;

// Positions of a round, of which an invocation computes the scores of eight tokens.
const ROUND = 64u;
const GROUP = 128u;
const TOKENS = 16u;
const HALVES = 2u;
// Vectors of four tokens.
const FOURS = 4u;
// Vectors from a key to the next one; an odd number keeps keys in different banks.
const PITCH = 5u;
// Invocations that find the largest score of a token together.
const LANES = GROUP / TOKENS;
// Below every score, and not infinite: shaders may assume that nothing is.
const LOWEST = -3e38;

// The queries of four tokens, element by element.
var<workgroup> query: array<vec4f, 128u * FOURS>;
// Keys; then scores or weights of four tokens, position by position; at the end the sums of invocations.
var<workgroup> tile: array<vec4f, ROUND * PITCH>;
var<workgroup> lanes: array<f32, GROUP>;
var<workgroup> highest: array<f32, TOKENS>;
var<workgroup> corrections: array<f32, TOKENS>;

// Writes the vectors 4 · chunk to 4 · chunk + 3 of the key of a row.
@if(!f16 && !q8_0)
fn fill(keys: Keys, chunk: u32, vectors: u32, local: u32) {
    for (var i = local; i < 4u * ROUND; i += GROUP) {
        let row = row_of(keys, i / 4u);
        tile[i / 4u * PITCH + i % 4u] = cached[row * vectors + 4u * chunk + i % 4u];
    }
}

// Writes the vectors 2 · chunk and 2 · chunk + 1 of each half of a row.
@if(f16)
fn fill(keys: Keys, chunk: u32, vectors: u32, local: u32) {
    for (var i = local; i < 2u * ROUND; i += GROUP) {
        let row = row_of(keys, i / 2u);
        let words = cached[row * words_of(vectors) + 2u * chunk + i % 2u];
        let to = i / 2u * PITCH + i % 2u;
        tile[to] = first_half(words);
        tile[to + 2u] = second_half(words);
    }
}

@if(q8_0)
fn fill(keys: Keys, chunk: u32, vectors: u32, local: u32) {
    for (var i = local; i < ROUND; i += GROUP) {
        let start = row_of(keys, i) * stride_of(vectors);
        let words = cached[start + chunk];
        let scale = scale_of(start + words_of(vectors), chunk / 2u);
        tile[i * PITCH] = scale * unpack4x8snorm(words.x);
        tile[i * PITCH + 1u] = scale * unpack4x8snorm(words.y);
        tile[i * PITCH + 2u] = scale * unpack4x8snorm(words.z);
        tile[i * PITCH + 3u] = scale * unpack4x8snorm(words.w);
    }
}

// The vector of the query that belongs to a vector of a key in the tile.
@if(!f16)
fn place_of(chunk: u32, vector: u32, vectors: u32) -> u32 {
    return 4u * chunk + vector;
}

@if(f16)
fn place_of(chunk: u32, vector: u32, vectors: u32) -> u32 {
    return 2u * chunk + vector % 2u + select(0u, vectors / 2u, vector >= 2u);
}

// The keys of a round: the row before all of the head's, the first one's position from the beginning of the ring's round,
// and their number.
struct Keys {
    base: u32,
    first: u32,
    count: u32,
}

// The row of a key. The last one stands for those that are missing.
fn row_of(keys: Keys, i: u32) -> u32 {
    return keys.base + wrapped(keys.first + min(i, keys.count - 1u));
}

// Returns which of four tokens see a position, where the positions that the first one sees end at `end`.
fn seen(position: u32, end: u32) -> vec4<bool> {
    let ends = vec4u(end) + vec4u(0u, 1u, 2u, 3u);
    let window = select(ends, vec4u(params.window), params.window > 0u);
    return (vec4u(position) < ends) & (vec4u(position) >= max(ends, window) - window);
}

fn four_capped(scores: vec4f) -> vec4f {
    return vec4f(
        soft_capped(scores.x, params.soft_cap),
        soft_capped(scores.y, params.soft_cap),
        soft_capped(scores.z, params.soft_cap),
        soft_capped(scores.w, params.soft_cap),
    );
}

fn four_of_highest(i: u32) -> vec4f {
    return vec4f(highest[i], highest[i + 1u], highest[i + 2u], highest[i + 3u]);
}

fn four_of_corrections(i: u32) -> vec4f {
    return vec4f(corrections[i], corrections[i + 1u], corrections[i + 2u], corrections[i + 3u]);
}

@compute @workgroup_size(GROUP)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) local: u32,
) {
    let index = workgroup_index(group, groups);
    let head = index % params.heads;
    let first_token = index / params.heads * TOKENS;
    if first_token >= params.tokens {
        return;
    }
    let len = params.head_len;
    let vectors = len / 4u;
    for (var i = local; i < FOURS * len; i += GROUP) {
        let element = i % len;
        let token = vec4u(first_token + i / len * 4u) + vec4u(0u, 1u, 2u, 3u);
        let at = (min(token, vec4u(params.tokens - 1u)) * params.heads + head) * len + element;
        let four = vec4f(queries[at.x], queries[at.y], queries[at.z], queries[at.w]);
        query[element * FOURS + i / len] = params.scale * four;
    }
    if local < TOKENS {
        highest[local] = LOWEST;
    }
    let shared_by = params.heads / params.kv_heads;
    let keys_base = head / shared_by * params.capacity;
    let values_base = keys_base + params.kv_heads * params.capacity;
    // Positions that the first token sees end there, and those that any token sees.
    let first_end = params.position + first_token + 1u;
    let end = params.position + min(first_token + TOKENS, params.tokens);
    let window = select(end, params.window, params.window > 0u);
    let earliest = max(first_end, window) - window;
    let last_start = max(end, window) - window;
    let lap = earliest - earliest % params.capacity;
    // Scores: a position, and eight tokens. Values: a vector, eight tokens and a share of the positions.
    let own = local % ROUND;
    let half = local / ROUND;
    let own_end = first_end + 8u * half;
    let vector = local % vectors;
    let eight = local / vectors % HALVES;
    let share = local / (vectors * HALVES);
    let sharing = GROUP / (vectors * HALVES);
    let eight_end = first_end + 8u * eight;
    var totals_low = vec4f();
    var totals_high = vec4f();
    // Nothing here is indexed at run time, or compilers would keep it in memory.
    var sums_0 = vec4f();
    var sums_1 = vec4f();
    var sums_2 = vec4f();
    var sums_3 = vec4f();
    var sums_4 = vec4f();
    var sums_5 = vec4f();
    var sums_6 = vec4f();
    var sums_7 = vec4f();
    for (var first = earliest; first < end; first += ROUND) {
        let count = min(ROUND, end - first);
        let keys = Keys(keys_base, first - lap, count);
        var low = vec4f();
        var high = vec4f();
        for (var chunk = 0u; chunk < len / 16u; chunk++) {
            fill(keys, chunk, vectors, local);
            workgroupBarrier();
            for (var v = 0u; v < 4u; v++) {
                let key = tile[own * PITCH + v];
                let at = place_of(chunk, v, vectors) * 4u * FOURS + 2u * half;
                low += key.x * query[at] + key.y * query[at + FOURS];
                high += key.x * query[at + 1u] + key.y * query[at + FOURS + 1u];
                low += key.z * query[at + 2u * FOURS] + key.w * query[at + 3u * FOURS];
                high += key.z * query[at + 2u * FOURS + 1u] + key.w * query[at + 3u * FOURS + 1u];
            }
            workgroupBarrier();
        }
        if params.soft_cap > 0.0 {
            low = four_capped(low);
            high = four_capped(high);
        }
        let seen_low = seen(first + own, own_end);
        let seen_high = seen(first + own, own_end + 4u);
        low = select(vec4f(LOWEST), low, seen_low);
        high = select(vec4f(LOWEST), high, seen_high);
        tile[own * FOURS + 2u * half] = low;
        tile[own * FOURS + 2u * half + 1u] = high;
        workgroupBarrier();
        let token = local % TOKENS;
        var most = LOWEST;
        for (var i = local / TOKENS; i < ROUND; i += LANES) {
            most = max(most, tile[i * FOURS + token / 4u][token % 4u]);
        }
        lanes[local] = most;
        workgroupBarrier();
        if local < TOKENS {
            let before = highest[local];
            var above = before;
            for (var i = local; i < GROUP; i += TOKENS) {
                above = max(above, lanes[i]);
            }
            corrections[local] = exp(before - above);
            highest[local] = above;
        }
        workgroupBarrier();
        low = select(vec4f(), exp(low - four_of_highest(8u * half)), seen_low);
        high = select(vec4f(), exp(high - four_of_highest(8u * half + 4u)), seen_high);
        totals_low = totals_low * four_of_corrections(8u * half) + low;
        totals_high = totals_high * four_of_corrections(8u * half + 4u) + high;
        tile[own * FOURS + 2u * half] = low;
        tile[own * FOURS + 2u * half + 1u] = high;
        workgroupBarrier();
        let correction_low = four_of_corrections(8u * eight);
        let correction_high = four_of_corrections(8u * eight + 4u);
        sums_0 *= correction_low.x;
        sums_1 *= correction_low.y;
        sums_2 *= correction_low.z;
        sums_3 *= correction_low.w;
        sums_4 *= correction_high.x;
        sums_5 *= correction_high.y;
        sums_6 *= correction_high.z;
        sums_7 *= correction_high.w;
        let values = Keys(values_base, first - lap, count);
        let all_see = first >= last_start && first + count <= first_end;
        if share < sharing && all_see {
            for (var i = share; i < count; i += sharing) {
                let value = vector_of(row_of(values, i), vector, vectors);
                let weights_low = tile[i * FOURS + 2u * eight];
                let weights_high = tile[i * FOURS + 2u * eight + 1u];
                sums_0 += weights_low.x * value;
                sums_1 += weights_low.y * value;
                sums_2 += weights_low.z * value;
                sums_3 += weights_low.w * value;
                sums_4 += weights_high.x * value;
                sums_5 += weights_high.y * value;
                sums_6 += weights_high.z * value;
                sums_7 += weights_high.w * value;
            }
        }
        if share < sharing && !all_see {
            // A value that a token does not see may be no number, which a weight of 0 would not hide.
            for (var i = share; i < count; i += sharing) {
                let value = vector_of(row_of(values, i), vector, vectors);
                let weights_low = tile[i * FOURS + 2u * eight];
                let weights_high = tile[i * FOURS + 2u * eight + 1u];
                let seen_low = seen(first + i, eight_end);
                let seen_high = seen(first + i, eight_end + 4u);
                sums_0 += select(vec4f(), weights_low.x * value, seen_low.x);
                sums_1 += select(vec4f(), weights_low.y * value, seen_low.y);
                sums_2 += select(vec4f(), weights_low.z * value, seen_low.z);
                sums_3 += select(vec4f(), weights_low.w * value, seen_low.w);
                sums_4 += select(vec4f(), weights_high.x * value, seen_high.x);
                sums_5 += select(vec4f(), weights_high.y * value, seen_high.y);
                sums_6 += select(vec4f(), weights_high.z * value, seen_high.z);
                sums_7 += select(vec4f(), weights_high.w * value, seen_high.w);
            }
        }
        workgroupBarrier();
    }
    tile[own * FOURS + 2u * half] = totals_low;
    tile[own * FOURS + 2u * half + 1u] = totals_high;
    workgroupBarrier();
    if local < TOKENS {
        var total = 0.0;
        for (var i = 0u; i < ROUND; i++) {
            total += tile[i * FOURS + local / 4u][local % 4u];
        }
        lanes[local] = total;
    }
    workgroupBarrier();
    let place = Place(first_token + 8u * eight, 8u * eight, head, local, vector, vectors);
    store(place, 0u, sums_0);
    store(place, 1u, sums_1);
    store(place, 2u, sums_2);
    store(place, 3u, sums_3);
    store(place, 4u, sums_4);
    store(place, 5u, sums_5);
    store(place, 6u, sums_6);
    store(place, 7u, sums_7);
}

// Where an invocation stores: the first of its tokens, and that of the workgroup's, the head, and a vector of it.
struct Place {
    token: u32,
    in_group: u32,
    head: u32,
    local: u32,
    vector: u32,
    vectors: u32,
}

// Adds the shares of a token's vector up, and stores their mean.
fn store(place: Place, i: u32, own: vec4f) {
    tile[place.local] = own;
    workgroupBarrier();
    let part = place.vectors * HALVES;
    let token = place.token + i;
    if place.local < part && token < params.tokens {
        var sum = own;
        for (var at = place.local + part; at < GROUP / part * part; at += part) {
            sum += tile[at];
        }
        let to = (token * params.heads + place.head) * place.vectors + place.vector;
        mixed[to] = sum / lanes[place.in_group + i];
    }
    workgroupBarrier();
}
