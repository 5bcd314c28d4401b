// How a convolution reads its input and writes its result: by vectors of four columns with the feature
// `vectors`, where the rows of both are made of them, else by scalars.
import package::kernel::{input, params, result, weights_at};
import package::lib::hooks::after;

@if(vectors) alias Pixel = vec4f;
@else alias Pixel = f32;

@if(vectors)
fn at(row: u32, v: u32) -> vec4f {
    let across = params.input_cols / 4u;
    let at = min(row, params.input_rows - 1u) * across + min(v, across - 1u);
    return select(vec4f(), input[at], row < params.input_rows && v < across);
}

@if(vectors)
fn put(row: u32, v: u32, values: vec4f) {
    let across = params.output_cols / 4u;
    if row < params.output_rows && v < across {
        let i = row * across + v;
        result[i] = after(i, values);
    }
}

@if(!vectors)
fn at(row: u32, v: u32) -> vec4f {
    // A vector to the left of the input has wrapped around, and its columns do so too.
    let cols = 4u * v + vec4u(0u, 1u, 2u, 3u);
    let at = min(row, params.input_rows - 1u) * params.input_cols
        + min(cols, vec4u(params.input_cols - 1u));
    let values = vec4f(input[at.x], input[at.y], input[at.z], input[at.w]);
    let inside = (cols < vec4u(params.input_cols)) & vec4<bool>(row < params.input_rows);
    return select(vec4f(), values, inside);
}

@if(!vectors)
fn put(row: u32, v: u32, values: vec4f) {
    let col = 4u * v;
    let at = row * params.output_cols + col;
    if row >= params.output_rows {
        return;
    }
    if col < params.output_cols { result[at] = after(at, values.x); }
    if col + 1u < params.output_cols { result[at + 1u] = after(at + 1u, values.y); }
    if col + 2u < params.output_cols { result[at + 2u] = after(at + 2u, values.z); }
    if col + 3u < params.output_cols { result[at + 3u] = after(at + 3u, values.w); }
}

// Kernels with stride 1 are specialised for the size of what they convolve with. An invocation
// computes some rows of a vector of outputs from windows of the input's rows, which neighbours find
// in the cache. Windows are whole vectors of columns: their first SKIPPED columns come before the
// first tap of the first output, so that no row is read across vectors.
override KERNEL_ROWS: u32;
override KERNEL_COLS: u32;
override SKIPPED: u32;
override VECTORS = (KERNEL_COLS + SKIPPED + 3u) / 4u;

struct Window {
    v0: vec4f,
    v1: vec4f,
    v2: vec4f,
    v3: vec4f,
    v4: vec4f,
    v5: vec4f,
}

fn window_of(row: u32, v: u32) -> Window {
    var w: Window;
    w.v0 = at(row, v);
    w.v1 = at(row, v + 1u);
    if VECTORS > 1u { w.v2 = at(row, v + 2u); }
    if VECTORS > 2u { w.v3 = at(row, v + 3u); }
    if VECTORS > 3u { w.v4 = at(row, v + 4u); }
    if VECTORS > 4u { w.v5 = at(row, v + 5u); }
    return w;
}

// Four taps for four neighbouring outputs. A tap outside the kernel must not be multiplied even
// by zero: the input may be infinite there.
fn taps(sum: vec4f, q: u32, w: vec4f, near: vec4f, far: vec4f) -> vec4f {
    let first = 4u * q;
    let end = SKIPPED + KERNEL_COLS;
    var s = sum;
    if first >= SKIPPED && first < end { s += w.x * near; }
    if first + 1u >= SKIPPED && first + 1u < end { s += w.y * vec4f(near.yzw, far.x); }
    if first + 2u >= SKIPPED && first + 2u < end { s += w.z * vec4f(near.zw, far.xy); }
    if first + 3u >= SKIPPED && first + 3u < end { s += w.w * vec4f(near.w, far.xyz); }
    return s;
}

// A row of the kernel.
fn row_taps(sum: vec4f, row: u32, w: Window) -> vec4f {
    var s = taps(sum, 0u, weights_at(row, 0u), w.v0, w.v1);
    if VECTORS > 1u { s = taps(s, 1u, weights_at(row, 1u), w.v1, w.v2); }
    if VECTORS > 2u { s = taps(s, 2u, weights_at(row, 2u), w.v2, w.v3); }
    if VECTORS > 3u { s = taps(s, 3u, weights_at(row, 3u), w.v3, w.v4); }
    if VECTORS > 4u { s = taps(s, 4u, weights_at(row, 4u), w.v4, w.v5); }
    return s;
}

// The same, if the kernel has that row.
fn some_taps(sum: vec4f, row: u32, w: Window) -> vec4f {
    if row < KERNEL_ROWS {
        return row_taps(sum, row, w);
    }
    return sum;
}

// The first row, and the vector, of an invocation's outputs: a workgroup has 32 × 4 invocations, each
// with some `rows`.
fn first_output(tile: u32, local: u32, rows: u32) -> vec2u {
    let down = 4u * (tile / params.tiles_across) + local / 32u;
    return vec2u(rows * down, 32u * (tile % params.tiles_across) + local % 32u);
}
