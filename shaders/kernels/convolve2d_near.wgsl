//! native
//! convolve2d_near vectors:
//! convolve2d_near_any scalars:
//! unchecked
// Convolution with stride 1 by a kernel of at most 16 × 16.
//
// Bounds: rows and columns that are read are clamped to the last, and count as zero beyond;
// values that are stored are inside the result. A kernel of at most 16 × 16 has at most
// 16 rows of 5 vectors of weights, and only rows below KERNEL_ROWS are used.
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

var<workgroup> weights: array<vec4f, 80>;

fn at(row: u32, v: u32) -> vec4f {
    return OP_at(row, v);
}

// The weight of tap `t` of a row, counted from the window's first column.
fn weight(row: u32, t: u32) -> f32 {
    let inside = t >= SKIPPED && t < SKIPPED + KERNEL_COLS;
    let col = min(t - SKIPPED, KERNEL_COLS - 1u);
    return select(0.0, kernel[row * KERNEL_COLS + col], inside);
}

fn weights_at(row: u32, q: u32) -> vec4f {
    return weights[row * VECTORS + q];
}

// Most windows meet one of the kernel's rows with each of the four outputs.
fn with_window(sums: mat4x4f, t: u32, w: Window) -> mat4x4f {
    if t < 3u || t >= KERNEL_ROWS {
        return some_rows(sums, t, w);
    }
    return mat4x4f(
        row_taps(sums[0], t, w),
        row_taps(sums[1], t - 1u, w),
        row_taps(sums[2], t - 2u, w),
        row_taps(sums[3], t - 3u, w),
    );
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
    let out = first_output(workgroup_index(group, groups), local);
    var sums: mat4x4f;
    for (var t = 0u; t < KERNEL_ROWS + 3u; t++) {
        // Above and to the left of the input, numbers wrap around to some beyond its end.
        sums = with_window(sums, t, window_of(out.x + t - params.pad_top, out.y - params.pad_left));
    }
    OP_put(out.x, out.y, sums[0]);
    OP_put(out.x + 1u, out.y, sums[1]);
    OP_put(out.x + 2u, out.y, sums[2]);
    OP_put(out.x + 3u, out.y, sums[3]);
}
