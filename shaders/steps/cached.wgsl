// Rows of keys and values in a cache, which is a ring of rows for each head.
import package::kernel::{cached, params};

// The row of a position that is counted from the beginning of the round of the ring with the first one.
fn wrapped(position: u32) -> u32 {
    return select(position, position - params.capacity, position >= params.capacity);
}

// The vectors of words with the `vectors` vectors of a row, and those to the next row.
@if(!f16 && !q8_0)
fn words_of(vectors: u32) -> u32 {
    return vectors;
}

@if(f16)
fn words_of(vectors: u32) -> u32 {
    return vectors / 2u;
}

@if(q8_0)
fn words_of(vectors: u32) -> u32 {
    return vectors / 4u;
}

@if(!q8_0)
fn stride_of(vectors: u32) -> u32 {
    return words_of(vectors);
}

@if(q8_0)
fn stride_of(vectors: u32) -> u32 {
    let blocks = (vectors + 7u) / 8u;
    return words_of(vectors) + (blocks + 3u) / 4u;
}

// The scale of a block of the row whose scales begin at `first`, for numbers from −1 to 1.
@if(q8_0)
fn scale_of(first: u32, block: u32) -> f32 {
    return 127.0 * bitcast<f32>(cached[first + block / 4u][block % 4u]);
}

@if(f16)
fn first_half(words: vec4u) -> vec4f {
    return vec4f(
        unpack2x16float(words.x).x,
        unpack2x16float(words.y).x,
        unpack2x16float(words.z).x,
        unpack2x16float(words.w).x,
    );
}

@if(f16)
fn second_half(words: vec4u) -> vec4f {
    return first_half(words >> vec4u(16u));
}

// A vector of a row.
@if(!f16 && !q8_0)
fn vector_of(row: u32, vector: u32, vectors: u32) -> vec4f {
    return cached[row * vectors + vector];
}

@if(f16)
fn vector_of(row: u32, vector: u32, vectors: u32) -> vec4f {
    let half = vectors / 2u;
    let words = cached[row * half + vector % half];
    return first_half(select(words, words >> vec4u(16u), vector >= half));
}

@if(q8_0)
fn vector_of(row: u32, vector: u32, vectors: u32) -> vec4f {
    let start = row * stride_of(vectors);
    let word = cached[start + vector / 4u][vector % 4u];
    return scale_of(start + words_of(vectors), vector / 8u) * unpack4x8snorm(word);
}
