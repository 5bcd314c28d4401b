// Attention of a head of one token to the positions that it sees: a workgroup goes through them 256 at a time, an
// invocation a position, and keeps the largest score and the sum so far (Milakov and Gimelshein, "Online normalizer
// calculation for softmax", 2018). Several workgroups may share the positions (Dao et al., "Flash-Decoding", 2023);
// add_splits.wgsl adds up what they leave.
//
// With `next` there is one token. Workgroups place its heads themselves, as place_heads.wgsl does, and do not read its key
// and value from the cache, which would round them; one workgroup for each head of keys writes them there.
//
// With `within` there is a cache of f32, and tokens see all rows of their text.
@if(f16) import package::steps::cached::{first_half, second_half};
@if(q8_0) import package::steps::cached::scale_of;
import package::steps::cached::{stride_of, vector_of, words_of, wrapped};
@if(next) import package::steps::head::{take, turn, vector_of_head, write_row};
import package::steps::soft_cap::soft_capped;
import package::lib::grid::workgroup_index;
import package::lib::reduce::{MAX, SUM, workgroup_reduce};

struct Params {
    tokens: u32,
    heads: u32,
    // The number of heads of keys, and of values. Several heads of queries share each.
    kv_heads: u32,
    head_len: u32,
    // The position of the first token.
    position: u32,
    // Positions that there is room for, of which a later one takes the place of an earlier one, and those of a window, or 0.
    capacity: u32,
    window: u32,
    scale: f32,
    // Workgroups that share the positions of a head.
    splits: u32,
    // The bound of scores, or 0 for none.
    soft_cap: f32,
    // The rows before the first token's.
    before: u32,
    // With `next`, as in place_heads.wgsl.
    pairs: u32,
    neighbours: u32,
    gains: u32,
    epsilon: f32,
    query_angles: u32,
}
@group(0) @binding(0) var<uniform> params: Params;
@if(!next)
@group(0) @binding(1) var<storage, read> queries: array<vec4f>;
// The keys of all heads and positions, then the values.
@if(!f16 && !q8_0 && !next)
@group(0) @binding(2) var<storage, read> cached: array<vec4f>;
// A word has an f16 of the first half of a row and the one at the same place of the second half.
@if(f16 && !next)
@group(0) @binding(2) var<storage, read> cached: array<vec4u>;
// A word has four integers of 8 bits. The scales of blocks of 32 follow, and fill their last vector up.
@if(q8_0 && !next)
@group(0) @binding(2) var<storage, read> cached: array<vec4u>;
// The first row and the end of each token's text.
@if(within)
@group(0) @binding(3) var<storage, read> bounds: array<vec2u>;
@if(within)
@group(0) @binding(4) var<storage, read_write> mixed: array<vec4f>;
// The mean of values; of each split their sum, and a vector of the largest score and the sum of weights relative to it.
@if(!next && !within)
@group(0) @binding(3) var<storage, read_write> mixed: array<vec4f>;

@if(next)
@group(0) @binding(1) var<storage, read> x: array<f32>;
@if(next)
@group(0) @binding(2) var<storage, read> query_gain: array<f32>;
@if(next)
@group(0) @binding(3) var<storage, read> key_gain: array<f32>;
@if(next)
@group(0) @binding(4) var<storage, read> angles: array<vec2f>;
@if(next && !f16 && !q8_0)
@group(0) @binding(5) var<storage, read_write> cached: array<vec4f>;
@if(next && (f16 || q8_0))
@group(0) @binding(5) var<storage, read_write> cached: array<vec4u>;
@if(next)
@group(0) @binding(6) var<storage, read_write> mixed: array<vec4f>;

const GROUP = 256u;
// Below every score, and not infinite: shaders may assume that nothing is.
const LOWEST = -3e38;

// The number of positions that are seen but not read from the cache: the token's own.
@if(!next)
const OWN = 0u;
@if(next)
const OWN = 1u;

// The largest score so far, the sum of weights relative to it, and an invocation's sum of values times weights.
struct Mix {
    highest: f32,
    total: f32,
    sum: vec4f,
}

var<workgroup> query: array<vec4f, GROUP>;
var<workgroup> weights: array<f32, GROUP>;
var<workgroup> parts: array<vec4f, GROUP>;

fn capped(score: f32) -> f32 {
    if params.soft_cap > 0.0 {
        return soft_capped(score, params.soft_cap);
    }
    return score;
}

// Multiplies the query by a row of `vectors` vectors, place by place, and adds the products up. Four loads at a time
// wait for memory together.
fn multiply_row(row: u32, vectors: u32) -> vec4f {
    let words = words_of(vectors);
    let start = row * stride_of(vectors);
    var products = vec4f();
    var i = 0u;
    for (; i + 4u <= words; i += 4u) {
        let at = start + i;
        let loaded = array(cached[at], cached[at + 1u], cached[at + 2u], cached[at + 3u]);
        products += multiply(loaded[0], start, i, words) + multiply(loaded[1], start, i + 1u, words);
        products += multiply(loaded[2], start, i + 2u, words) + multiply(loaded[3], start, i + 3u, words);
    }
    for (; i < words; i++) {
        products += multiply(cached[start + i], start, i, words);
    }
    return products;
}

// Multiplies the query by the `i`-th of the `words` vectors of words in the row that begins at `start`.
@if(!f16 && !q8_0)
fn multiply(key: vec4f, start: u32, i: u32, words: u32) -> vec4f {
    return query[i] * key;
}

@if(f16)
fn multiply(key: vec4u, start: u32, i: u32, words: u32) -> vec4f {
    return query[i] * first_half(key) + query[words + i] * second_half(key);
}

@if(q8_0)
fn multiply(key: vec4u, start: u32, i: u32, words: u32) -> vec4f {
    var products = query[4u * i] * unpack4x8snorm(key.x) + query[4u * i + 1u] * unpack4x8snorm(key.y);
    products += query[4u * i + 2u] * unpack4x8snorm(key.z) + query[4u * i + 3u] * unpack4x8snorm(key.w);
    return scale_of(start + words, i / 2u) * products;
}

// Brings the query of a workgroup to its memory, and returns the mix of no positions.
@if(!next)
fn begin(number: u32, vectors: u32, local: u32) -> Mix {
    if local < vectors {
        let row = params.before * params.heads + number / params.splits;
        query[local] = params.scale * queries[row * vectors + local];
    }
    workgroupBarrier();
    return Mix(LOWEST, 0.0, vec4f());
}

// Normalises and rotates a head, of which an invocation has at most one element.
@if(next)
fn turn_element(head: u32, element: f32, local: u32) {
    var square = 0.0;
    if local < params.head_len {
        square = take(local, element);
    }
    turn(head, square, params.position, local);
}

// Places the query first. The first split also places the key and value, and returns the mix of the token's own position.
@if(next)
fn begin(number: u32, vectors: u32, local: u32) -> Mix {
    let head = number / params.splits;
    let shared_by = params.heads / params.kv_heads;
    let key = params.heads + head / shared_by;
    let value = key + params.kv_heads;
    // The loads wait for memory together.
    let at = min(local, params.head_len - 1u);
    let first = params.before * (params.heads + 2u * params.kv_heads);
    let elements = (vec3u(head, key, value) + first) * params.head_len + at;
    let loaded = array(x[elements.x], x[elements.y], x[elements.z]);
    turn_element(head, loaded[0], local);
    if local < vectors {
        query[local] = params.scale * vector_of_head(local);
    }
    workgroupBarrier();
    if number % params.splits > 0u {
        return Mix(LOWEST, 0.0, vec4f());
    }
    let row = head / shared_by * params.capacity + params.position % params.capacity;
    let is_first = head % shared_by == 0u;
    turn_element(key, loaded[1], local);
    var product = 0.0;
    if local < vectors {
        product = dot(query[local], vector_of_head(local));
    }
    if is_first {
        write_row(row, local);
    }
    let score = capped(workgroup_reduce(SUM, product, local));
    turn_element(value, loaded[2], local);
    if is_first {
        write_row(row + params.kv_heads * params.capacity, local);
    }
    var own = vec4f();
    if local < vectors {
        own = vector_of_head(local);
    }
    return Mix(score, 1.0, own);
}

// The first position that a token sees, and the end of those.
@if(!within)
fn seen_by(token: u32) -> vec2u {
    let end = params.position + token + 1u;
    return vec2u(select(0u, max(end, params.window) - params.window, params.window > 0u), end);
}

@if(within)
fn seen_by(token: u32) -> vec2u {
    return bounds[token];
}

@compute @workgroup_size(GROUP)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) local: u32,
) {
    let number = workgroup_index(group, groups);
    let index = number / params.splits;
    if index >= params.tokens * params.heads {
        return;
    }
    let vectors = params.head_len / 4u;
    let beginning = begin(number, vectors, local);
    let shared_by = params.heads / params.kv_heads;
    let keys = index % params.heads / shared_by * params.capacity;
    let values = keys + params.kv_heads * params.capacity;
    let positions = seen_by(index / params.heads);
    let earliest = positions.x;
    // A split has whole rounds, but for the last one with any.
    let seen = positions.y - earliest - OWN;
    let rounds = (seen + GROUP - 1u) / GROUP;
    let len = (rounds + params.splits - 1u) / params.splits * GROUP;
    let before = min(number % params.splits * len, seen);
    let start = earliest % params.capacity + before;
    let end = start + min(len, seen - before);
    // In the sum of values an invocation adds one vector of the head, at every `sharing`-th position.
    let sharing = GROUP / vectors;
    let vector = local % vectors;
    let share = local / vectors;
    var highest = beginning.highest;
    var total = beginning.total;
    var sum = beginning.sum;
    var first = start;
    while first < end {
        // A round ends where the ring does.
        let stop = select(end, min(end, params.capacity), first < params.capacity);
        let count = min(GROUP, stop - first);
        let row = wrapped(first);
        var score = LOWEST;
        if local < count {
            score = capped(dot(multiply_row(keys + row + local, vectors), vec4f(1.0)));
        }
        let above = max(highest, workgroup_reduce(MAX, score, local));
        let weight = select(0.0, exp(score - above), local < count);
        let correction = exp(highest - above);
        highest = above;
        weights[local] = weight;
        total = total * correction + workgroup_reduce(SUM, weight, local);
        sum *= correction;
        if share < sharing {
            let first_value = values + row;
            var i = share;
            for (; i + 3u * sharing < count; i += 4u * sharing) {
                let at = vec4u(i, i + sharing, i + 2u * sharing, i + 3u * sharing);
                let loaded = array(
                    vector_of(first_value + at.x, vector, vectors),
                    vector_of(first_value + at.y, vector, vectors),
                    vector_of(first_value + at.z, vector, vectors),
                    vector_of(first_value + at.w, vector, vectors),
                );
                sum += weights[at.x] * loaded[0] + weights[at.y] * loaded[1];
                sum += weights[at.z] * loaded[2] + weights[at.w] * loaded[3];
            }
            for (; i < count; i += sharing) {
                sum += weights[i] * vector_of(first_value + i, vector, vectors);
            }
        }
        first += count;
        workgroupBarrier();
    }
    parts[local] = sum;
    workgroupBarrier();
    if local < vectors {
        for (var i = 1u; i < sharing; i++) {
            sum += parts[i * vectors + local];
        }
        if params.splits == 1u {
            mixed[(params.before * params.heads + index) * vectors + local] = sum / total;
        } else {
            mixed[number * (vectors + 1u) + local] = sum;
        }
    }
    if local == 0u && params.splits > 1u {
        mixed[number * (vectors + 1u) + vectors] = vec4f(highest, total, 0.0, 0.0);
    }
}
