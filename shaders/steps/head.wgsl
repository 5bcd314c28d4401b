// A head of queries, keys or values on its way to attention: divided by its root mean square if there are gains, then
// rotated by its position's angles. A workgroup has one head at a time.
import package::kernel::{GROUP, angles, cached, key_gain, params, query_gain, x};
@if(!f16 && !q8_0) import package::steps::cached::stride_of;
@if(f16 || q8_0) import package::steps::cached::{stride_of, words_of};
import package::lib::reduce::{SUM, workgroup_reduce};

// The largest f16: beyond it the conversion has no defined result.
@if(f16)
const MOST = 65504.0;

// Below it the inverse may be infinite. A block of such numbers becomes zeros.
@if(q8_0)
const LEAST = 1e-37;

@if(q8_0)
const NOT_A_NUMBER = 0x7fc00000u;

var<workgroup> values: array<f32, 256>;
// The same head after its rotation.
var<workgroup> turned: array<f32, 256>;

fn is_value(head: u32) -> bool {
    return head >= params.heads + params.kv_heads;
}

// Whether all heads of queries are normalised together, and all of keys.
fn is_joint() -> bool {
    return params.gains == 2u;
}

fn gain(head: u32, i: u32) -> f32 {
    if head < params.heads {
        return query_gain[i + select(0u, head * params.head_len, is_joint())];
    }
    return key_gain[i + select(0u, (head - params.heads) * params.head_len, is_joint())];
}

// The sum of an invocation's squares of all heads of queries or of keys of a token.
fn joint_squares(token: u32, first: u32, count: u32, local: u32) -> f32 {
    let row = params.before + token;
    let start = (row * (params.heads + 2u * params.kv_heads) + first) * params.head_len;
    var squares = 0.0;
    for (var i = local; i < count * params.head_len; i += GROUP) {
        squares += x[start + i] * x[start + i];
    }
    return squares;
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
    let first = select(0u, params.query_angles, head < params.heads);
    let angle = angles[first + position * params.pairs + pair];
    let other = values[select(i + stride, i - stride, second)];
    return value * angle.x + select(-other, other, second) * angle.y;
}

// Takes an element of a head, and returns its square.
fn take(i: u32, value: f32) -> f32 {
    values[i] = value;
    return value * value;
}

// Normalises and rotates the head whose elements were taken. `squares` is the sum of an invocation's squares.
fn turn(head: u32, squares: f32, position: u32, local: u32) {
    let len = params.head_len;
    if params.gains > 0u && !is_value(head) {
        var all = squares;
        var count = len;
        if is_joint() {
            let is_key = head >= params.heads;
            let heads = select(params.heads, params.kv_heads, is_key);
            all = joint_squares(position - params.position, select(0u, params.heads, is_key), heads, local);
            count = heads * len;
        }
        let square = workgroup_reduce(SUM, all, local) / f32(count);
        let factor = 1.0 / sqrt(square + params.epsilon);
        for (var i = local; i < len; i += GROUP) {
            values[i] *= factor * gain(head, i);
        }
    }
    workgroupBarrier();
    for (var i = local; i < len; i += GROUP) {
        turned[i] = rotated(i, head, position);
    }
    workgroupBarrier();
}

// The `i`-th vector of the head.
fn vector_of_head(i: u32) -> vec4f {
    return vec4f(turned[4u * i], turned[4u * i + 1u], turned[4u * i + 2u], turned[4u * i + 3u]);
}

// Writes the head to a row of the cache.
@if(!f16 && !q8_0)
fn write_row(row: u32, local: u32) {
    let vectors = params.head_len / 4u;
    for (var i = local; i < vectors; i += GROUP) {
        cached[row * stride_of(vectors) + i] = vector_of_head(i);
    }
}

@if(f16)
fn write_row(row: u32, local: u32) {
    let vectors = params.head_len / 4u;
    let words = words_of(vectors);
    for (var i = local; i < words; i += GROUP) {
        let first = clamp(vector_of_head(i), vec4f(-MOST), vec4f(MOST));
        let second = clamp(vector_of_head(words + i), vec4f(-MOST), vec4f(MOST));
        cached[row * stride_of(vectors) + i] = vec4u(
            pack2x16float(vec2f(first.x, second.x)),
            pack2x16float(vec2f(first.y, second.y)),
            pack2x16float(vec2f(first.z, second.z)),
            pack2x16float(vec2f(first.w, second.w)),
        );
    }
}

@if(q8_0)
fn write_row(row: u32, local: u32) {
    let vectors = params.head_len / 4u;
    let words = words_of(vectors);
    let start = row * stride_of(vectors);
    for (var i = local; i < words; i += GROUP) {
        let largest = largest_of(i / 2u);
        let inverse = select(0.0, 1.0 / largest, largest > LEAST);
        cached[start + i] = vec4u(
            pack4x8snorm(inverse * vector_of_head(4u * i)),
            pack4x8snorm(inverse * vector_of_head(4u * i + 1u)),
            pack4x8snorm(inverse * vector_of_head(4u * i + 2u)),
            pack4x8snorm(inverse * vector_of_head(4u * i + 3u)),
        );
    }
    for (var i = local; words + i < stride_of(vectors); i += GROUP) {
        let first = 4u * i;
        cached[start + words + i] = vec4u(
            scale_for(first),
            scale_for(first + 1u),
            scale_for(first + 2u),
            scale_for(first + 3u),
        );
    }
}

// The largest magnitude in the block of 32 elements.
@if(q8_0)
fn largest_of(block: u32) -> f32 {
    var largest = 0.0;
    for (var i = 32u * block; i < min(32u * block + 32u, params.head_len); i++) {
        largest = max(largest, abs(turned[i]));
    }
    return largest;
}

// The bits of a block's scale: a NaN if an element is not finite.
@if(q8_0)
fn scale_for(block: u32) -> u32 {
    var bits = 0u;
    for (var i = 32u * block; i < min(32u * block + 32u, params.head_len); i++) {
        bits = max(bits, bitcast<u32>(turned[i]) & 0x7fffffffu);
    }
    return select(NOT_A_NUMBER, bitcast<u32>(bitcast<f32>(bits) / 127.0), bits < 0x7f800000u);
}
