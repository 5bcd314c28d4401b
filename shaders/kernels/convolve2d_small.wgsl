// Convolution with stride 1 by a kernel of at most 8 × 8. Its weights are uniforms and no loop is
// left, so that multiply-adds have them from constant memory, without loads of their own.
//
// Bounds: rows and columns that are read are clamped to the last, and count as zero beyond;
// values that are stored are inside the result; places of weights are clamped to the last.
import package::lib::convolve2d::{KERNEL_COLS, KERNEL_ROWS, Pixel, SKIPPED};
import package::lib::convolve2d::{first_output, put, some_taps, window_of};
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
@group(0) @binding(2) var<uniform> weights: array<vec4f, 16>;
@group(0) @binding(3) var<storage, read_write> result: array<Pixel>;

fn weight(row: u32, t: u32) -> f32 {
    let i = min(row * KERNEL_COLS + t - SKIPPED, 63u);
    return weights[i / 4u][i % 4u];
}

// Those of four taps, counted from the window's first column. What is outside the kernel is not used.
fn weights_at(row: u32, q: u32) -> vec4f {
    let t = 4u * q;
    return vec4f(weight(row, t), weight(row, t + 1u), weight(row, t + 2u), weight(row, t + 3u));
}

// More rows share more of their windows, but six leave enough registers on all that was measured.
struct SixRows {
    s0: vec4f,
    s1: vec4f,
    s2: vec4f,
    s3: vec4f,
    s4: vec4f,
    s5: vec4f,
}

// What the `t`-th window adds to six rows of outputs.
fn add_window(sums: ptr<function, SixRows>, t: u32, row: u32, v: u32) {
    if t >= KERNEL_ROWS + 5u {
        return;
    }
    let w = window_of(row + t, v);
    (*sums).s0 = some_taps((*sums).s0, t, w);
    (*sums).s1 = some_taps((*sums).s1, t - 1u, w);
    (*sums).s2 = some_taps((*sums).s2, t - 2u, w);
    (*sums).s3 = some_taps((*sums).s3, t - 3u, w);
    (*sums).s4 = some_taps((*sums).s4, t - 4u, w);
    (*sums).s5 = some_taps((*sums).s5, t - 5u, w);
}

@compute @workgroup_size(128)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) local: u32,
) {
    let out = first_output(workgroup_index(group, groups), local, 6u);
    // Above and to the left of the input, numbers wrap around to some beyond its end.
    let row = out.x - params.pad_top;
    let v = out.y - params.pad_left;
    var sums: SixRows;
    add_window(&sums, 0u, row, v);
    add_window(&sums, 1u, row, v);
    add_window(&sums, 2u, row, v);
    add_window(&sums, 3u, row, v);
    add_window(&sums, 4u, row, v);
    add_window(&sums, 5u, row, v);
    add_window(&sums, 6u, row, v);
    add_window(&sums, 7u, row, v);
    add_window(&sums, 8u, row, v);
    add_window(&sums, 9u, row, v);
    add_window(&sums, 10u, row, v);
    add_window(&sums, 11u, row, v);
    add_window(&sums, 12u, row, v);
    put(out.x, out.y, sums.s0);
    put(out.x + 1u, out.y, sums.s1);
    put(out.x + 2u, out.y, sums.s2);
    put(out.x + 3u, out.y, sums.s3);
    put(out.x + 4u, out.y, sums.s4);
    put(out.x + 5u, out.y, sums.s5);
}
