// Weights in groups that have a scale and an offset, row by row. A word holds one number, four bytes with signs or
// eight unsigned groups of four bits, the first one in the lowest bits.
import package::kernel::{params, scales, words};

// Eight weights but for their group's scale and offset.
struct Eight {
    low: vec4f,
    high: vec4f,
}

// Eight weights as they lie in memory.
@if(floats)
alias Words = mat2x4f;
@if(bytes)
alias Words = vec2u;
@if(nibbles)
alias Words = u32;

// The i-th eight weights of the matrix, but for their group's scale and offset.
fn eight(i: u32) -> Eight {
    return eight_of(words_of(i));
}

@if(floats)
fn words_of(i: u32) -> Words {
    return Words(four(8u * i), four(8u * i + 4u));
}

@if(floats)
fn eight_of(loaded: Words) -> Eight {
    return Eight(loaded[0], loaded[1]);
}

@if(floats)
fn four(i: u32) -> vec4f {
    return bitcast<vec4f>(vec4u(words[i], words[i + 1u], words[i + 2u], words[i + 3u]));
}

@if(bytes)
fn words_of(i: u32) -> Words {
    return vec2u(words[2u * i], words[2u * i + 1u]);
}

@if(bytes)
fn eight_of(loaded: Words) -> Eight {
    return Eight(four(loaded.x), four(loaded.y));
}

@if(bytes)
fn four(word: u32) -> vec4f {
    return vec4f((vec4i(bitcast<i32>(word)) << vec4u(24u, 16u, 8u, 0u)) >> vec4u(24u));
}

@if(nibbles)
fn words_of(i: u32) -> Words {
    return words[i];
}

@if(nibbles)
fn eight_of(loaded: Words) -> Eight {
    return Eight(four(loaded), four(loaded >> 16u));
}

@if(nibbles)
fn four(word: u32) -> vec4f {
    return vec4f((vec4u(word) >> vec4u(0u, 4u, 8u, 12u)) & vec4u(15u)) + params.least;
}

// Sixteen weights but for their group's scale and offset.
@if(bytes)
fn sixteen_of(loaded: vec4u) -> mat4x4f {
    return mat4x4f(four(loaded.x), four(loaded.y), four(loaded.z), four(loaded.w));
}

@if(nibbles)
fn sixteen_of(loaded: vec2u) -> mat4x4f {
    return mat4x4f(four(loaded.x), four(loaded.x >> 16u), four(loaded.y), four(loaded.y >> 16u));
}

// The scale and the offset of the i-th eight weights. Groups are as long as a power of two.
@if(floats)
fn group_of(i: u32) -> vec2f {
    return vec2f(1.0, 0.0);
}

@if(!floats)
fn group_of(i: u32) -> vec2f {
    return scales[(8u * i) >> firstTrailingBit(params.group_len)];
}
