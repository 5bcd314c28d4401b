// Convolution with stride 1 by a kernel of at most 16 × 16.
//
// Bounds: rows and columns that are read are clamped to the last, and count as zero beyond;
// values that are stored are inside the result. A kernel of at most 16 × 16 has at most
// 16 rows of 5 vectors of weights, and only rows below KERNEL_ROWS are used.
import package::lib::convolve2d::{KERNEL_COLS, KERNEL_ROWS, Pixel, SKIPPED, VECTORS, Window};
import package::lib::convolve2d::{first_output, put, row_taps, some_taps, window_of};
import package::lib::grid::workgroup_index;

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
@group(0) @binding(1) var<storage, read> input: array<Pixel>;
@group(0) @binding(2) var<storage, read> kernel: array<f32>;
@group(0) @binding(3) var<storage, read_write> result: array<Pixel>;

var<workgroup> weights: array<vec4f, 80>;

// The weight of tap `t` of a row, counted from the window's first column.
fn weight(row: u32, t: u32) -> f32 {
    let inside = t >= SKIPPED && t < SKIPPED + KERNEL_COLS;
    let col = min(t - SKIPPED, KERNEL_COLS - 1u);
    return select(0.0, kernel[row * KERNEL_COLS + col], inside);
}

fn weights_at(row: u32, q: u32) -> vec4f {
    return weights[row * VECTORS + q];
}

struct FourRows {
    s0: vec4f,
    s1: vec4f,
    s2: vec4f,
    s3: vec4f,
}

// What the `t`-th window adds to four rows of outputs, of which most windows meet all.
fn add_window(sums: ptr<function, FourRows>, t: u32, w: Window) {
    if t >= 3u && t < KERNEL_ROWS {
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

@compute @workgroup_size(128)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) local: u32,
) {
    for (var i = local; i < KERNEL_ROWS * VECTORS; i += 128u) {
        let row = i / VECTORS;
        let t = 4u * (i % VECTORS);
        weights[i] =
            vec4f(weight(row, t), weight(row, t + 1u), weight(row, t + 2u), weight(row, t + 3u));
    }
    workgroupBarrier();
    let out = first_output(workgroup_index(group, groups), local, 4u);
    var sums: FourRows;
    for (var t = 0u; t < KERNEL_ROWS + 3u; t++) {
        // Above and to the left of the input, numbers wrap around to some beyond its end.
        add_window(&sums, t, window_of(out.x + t - params.pad_top, out.y - params.pad_left));
    }
    put(out.x, out.y, sums.s0);
    put(out.x + 1u, out.y, sums.s1);
    put(out.x + 2u, out.y, sums.s2);
    put(out.x + 3u, out.y, sums.s3);
}
