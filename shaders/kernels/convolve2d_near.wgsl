//! native
//! convolve2d_near vectors:
//! convolve2d_near_any scalars:
//! unchecked
// Convolution with stride 1, specialised for the kernel's size: an invocation computes 4 × 4
// values from windows of the input's rows, which neighbours find in the cache.
//
// Windows are whole vectors of columns. Their first SKIPPED columns come before the first tap of
// the first output, so that no row is read across vectors.
//
// Bounds: rows and columns that are read are clamped to the last, and count as zero beyond;
// values that are stored are inside the result. A kernel of at most 16 × 16 has at most
// 16 rows of 5 vectors of weights, and only rows below KERNEL_ROWS are used.
override KERNEL_ROWS: u32;
override KERNEL_COLS: u32;
override SKIPPED: u32;
override VECTORS = (KERNEL_COLS + SKIPPED + 3u) / 4u;
override HIGH = KERNEL_ROWS > 8u;

struct Params {
    input_rows: u32,
    input_cols: u32,
    output_rows: u32,
    output_cols: u32,
    pad_top: u32,
    // Vectors before the first column.
    pad_left: u32,
    tiles_across: u32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> input: array<OP_pixel>;
@group(0) @binding(2) var<storage, read> kernel: array<f32>;
@group(0) @binding(3) var<storage, read_write> result: array<OP_pixel>;

const ACROSS = 32u;
const DOWN = 4u;
const GROUP = ACROSS * DOWN;

var<workgroup> weights: array<vec4f, 80>;

// The weight of tap `t` of a row, counted from the window's first column.
fn weight(row: u32, t: u32) -> f32 {
    let inside = t >= SKIPPED && t < SKIPPED + KERNEL_COLS;
    let col = min(t - SKIPPED, KERNEL_COLS - 1u);
    return select(0.0, kernel[row * KERNEL_COLS + col], inside);
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

struct Window {
    v0: vec4f,
    v1: vec4f,
    v2: vec4f,
    v3: vec4f,
    v4: vec4f,
    v5: vec4f,
}

fn window(row: u32, v: u32) -> Window {
    var w: Window;
    w.v0 = OP_at(row, v);
    w.v1 = OP_at(row, v + 1u);
    if VECTORS > 1u { w.v2 = OP_at(row, v + 2u); }
    if VECTORS > 2u { w.v3 = OP_at(row, v + 3u); }
    if VECTORS > 3u { w.v4 = OP_at(row, v + 4u); }
    if VECTORS > 4u { w.v5 = OP_at(row, v + 5u); }
    return w;
}

// A row of the kernel.
fn row_taps(sum: vec4f, row: u32, w: Window) -> vec4f {
    let at = row * VECTORS;
    var s = taps(sum, 0u, weights[at], w.v0, w.v1);
    if VECTORS > 1u { s = taps(s, 1u, weights[at + 1u], w.v1, w.v2); }
    if VECTORS > 2u { s = taps(s, 2u, weights[at + 2u], w.v2, w.v3); }
    if VECTORS > 3u { s = taps(s, 3u, weights[at + 3u], w.v3, w.v4); }
    if VECTORS > 4u { s = taps(s, 4u, weights[at + 4u], w.v4, w.v5); }
    return s;
}

// The same, if the kernel has that row.
fn some_taps(sum: vec4f, row: u32, w: Window) -> vec4f {
    if row < KERNEL_ROWS {
        return row_taps(sum, row, w);
    }
    return sum;
}

// Four rows of outputs.
struct Sums {
    s0: vec4f,
    s1: vec4f,
    s2: vec4f,
    s3: vec4f,
}

fn add_window(sums: ptr<function, Sums>, t: u32, row: u32, v: u32) {
    // Above and to the left of the input, numbers wrap around to some beyond its end.
    let w = window(row + t - params.pad_top, v - params.pad_left);
    // In high kernels most windows meet one of its rows with each of the four outputs.
    if HIGH && t >= 3u && t < KERNEL_ROWS {
        (*sums).s0 = row_taps((*sums).s0, t, w);
        (*sums).s1 = row_taps((*sums).s1, t - 1u, w);
        (*sums).s2 = row_taps((*sums).s2, t - 2u, w);
        (*sums).s3 = row_taps((*sums).s3, t - 3u, w);
    } else {
        (*sums).s0 = some_taps((*sums).s0, t, w);
        (*sums).s1 = some_taps((*sums).s1, t - 1u, w);
        (*sums).s2 = some_taps((*sums).s2, t - 2u, w);
        (*sums).s3 = some_taps((*sums).s3, t - 3u, w);
    }
}

@compute @workgroup_size(GROUP)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) local: u32,
) {
    for (var i = local; i < KERNEL_ROWS * VECTORS; i += GROUP) {
        let row = i / VECTORS;
        let t = 4u * (i % VECTORS);
        weights[i] =
            vec4f(weight(row, t), weight(row, t + 1u), weight(row, t + 2u), weight(row, t + 3u));
    }
    workgroupBarrier();
    let tile = workgroup_index(group, groups);
    let row = 4u * (DOWN * (tile / params.tiles_across) + local / ACROSS);
    let v = ACROSS * (tile % params.tiles_across) + local % ACROSS;
    var sums: Sums;
    if HIGH {
        for (var t = 0u; t < KERNEL_ROWS + 3u; t++) {
            add_window(&sums, t, row, v);
        }
    } else {
        // Two at a time, of which the last may be one too many, and adds nothing.
        for (var t = 0u; t < KERNEL_ROWS + 3u; t += 2u) {
            add_window(&sums, t, row, v);
            add_window(&sums, t + 1u, row, v);
        }
    }
    OP_put(row, v, sums.s0);
    OP_put(row + 1u, v, sums.s1);
    OP_put(row + 2u, v, sums.s2);
    OP_put(row + 3u, v, sums.s3);
}
