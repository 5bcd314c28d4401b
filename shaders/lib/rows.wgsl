// Rows of a matrix, of which a workgroup has one or a chunk of one.
import package::kernel::{GROUP, before0, params, y};
import package::lib::hooks::after;

// The row's columns in its chunk of that number, from the first to the one after the last.
fn chunk(number: u32) -> vec2u {
    let first = min(number * params.chunk_len, params.cols);
    return vec2u(first, min(first + params.chunk_len, params.cols));
}

// Four values of a row at a time, GROUP apart, so that neighbours read neighbours.
fn four_places(i: u32) -> vec4u {
    return i + GROUP * vec4u(0u, 1u, 2u, 3u);
}

// What the first input holds there; `otherwise` from `end` on.
fn read_four(i: u32, end: u32, otherwise: f32) -> vec4f {
    let at = min(four_places(i), vec4u(end - 1u));
    let values = vec4f(before0(at.x), before0(at.y), before0(at.z), before0(at.w));
    return select(vec4f(otherwise), values, four_places(i) < vec4u(end));
}

// Stores the results that are not past the end.
fn put_four(i: u32, end: u32, values: vec4f) {
    let at = four_places(i);
    if at.x < end { y[at.x] = after(at.x, values.x); }
    if at.y < end { y[at.y] = after(at.y, values.y); }
    if at.z < end { y[at.z] = after(at.z, values.z); }
    if at.w < end { y[at.w] = after(at.w, values.w); }
}
