// 4 × 4 outputs an invocation, which read their columns of the input one after the other: of the taps
// that are as many columns apart as outputs are, each needs but one column more than the one before.
// Sums of a row of taps add up, and those of long kernels a part at a time, which bounds their rounding
// error. Padding is read as zero.
import package::lib::grid::workgroup_index;
import package::lib::hooks::after;

struct Params {
    input_rows: u32,
    input_cols: u32,
    kernel_rows: u32,
    kernel_cols: u32,
    output_rows: u32,
    output_cols: u32,
    stride_rows: u32,
    stride_cols: u32,
    pad_top: u32,
    pad_left: u32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> input: array<f32>;
@group(0) @binding(2) var<storage, read> weights: array<f32>;
@group(0) @binding(3) var<storage, read_write> result: array<f32>;

// Columns of kernels that are not long, and taps and sums of a part.
const SHORT = 64u;
const TERMS = 32u;

// What four rows hold in a column. Rows above the input and columns to its left have wrapped around
// to numbers too large to be inside it.
fn column(rows: vec4u, col: u32) -> vec4f {
    let starts = min(rows, vec4u(params.input_rows - 1u)) * params.input_cols;
    let at = starts + min(col, params.input_cols - 1u);
    let values = vec4f(input[at.x], input[at.y], input[at.z], input[at.w]);
    let inside = (rows < vec4u(params.input_rows)) & vec4<bool>(col < params.input_cols);
    return select(vec4f(), values, inside);
}

// Adds every `step`-th tap, of the kernel's row `i`, from one to before another.
fn add_taps(sum: ptr<function, mat4x4f>, rows: vec4u, left: u32, i: u32, first: u32, end: u32, step: u32) {
    let stride = params.stride_cols;
    let start = left + first;
    var window = mat4x4f(
        vec4f(),
        column(rows, start),
        column(rows, start + stride),
        column(rows, start + 2u * stride),
    );
    for (var j = first; j < end; j += step) {
        let next = column(rows, left + j + 3u * stride);
        window = mat4x4f(window[1], window[2], window[3], next);
        *sum += weights[i * params.kernel_cols + j] * window;
    }
}

// As many rows as short kernels have add up at a time.
fn sum_of_rows(top: vec4u, left: u32, step: u32) -> mat4x4f {
    var total = mat4x4f();
    for (var band = 0u; band < params.kernel_rows; band += SHORT) {
        var part = mat4x4f();
        for (var i = band; i < min(band + SHORT, params.kernel_rows); i++) {
            var sum = mat4x4f();
            for (var first = 0u; first < step; first++) {
                add_taps(&sum, top + i, left, i, first, params.kernel_cols, step);
            }
            part += sum;
        }
        total += part;
    }
    return total;
}

// Of TERMS taps at least, and not twice as many, is each sum, of TERMS sums each part.
fn sum_of_parts(top: vec4u, left: u32, step: u32) -> mat4x4f {
    // From the first tap of TERMS to the next one's, without overflow.
    let stretch = select(TERMS * step, params.kernel_cols, step > params.kernel_cols / TERMS);
    var total = mat4x4f();
    var part = mat4x4f();
    var sum = mat4x4f();
    var taken = 0u;
    var parts = 0u;
    for (var i = 0u; i < params.kernel_rows; i++) {
        for (var first = 0u; first < step; first++) {
            for (var block = first; block < params.kernel_cols; block += stretch) {
                let end = min(block + stretch, params.kernel_cols);
                add_taps(&sum, top + i, left, i, block, end, step);
                taken += (end - block + step - 1u) / step;
                if taken >= TERMS {
                    part += sum;
                    sum = mat4x4f();
                    taken = 0u;
                    parts++;
                }
                if parts == TERMS {
                    total += part;
                    part = mat4x4f();
                    parts = 0u;
                }
            }
        }
    }
    return total + part + sum;
}

fn put_column(row: u32, col: u32, values: vec4f) {
    if col >= params.output_cols {
        return;
    }
    for (var i = 0u; i < min(params.output_rows - row, 4u); i++) {
        let at = (row + i) * params.output_cols + col;
        result[at] = after(at, values[i]);
    }
}

@compute @workgroup_size(64)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) local: u32,
) {
    let tile = workgroup_index(group, groups) * 64u + local;
    let across = (params.output_cols + 3u) / 4u;
    let row = 4u * (tile / across);
    let col = 4u * (tile % across);
    if row >= params.output_rows {
        return;
    }
    let top = (row + vec4u(0u, 1u, 2u, 3u)) * params.stride_rows - params.pad_top;
    let left = col * params.stride_cols - params.pad_left;
    // Outputs that are further apart than the kernel is wide have no column in common.
    let step = min(params.stride_cols, params.kernel_cols);
    var total: mat4x4f;
    if params.kernel_cols <= SHORT {
        total = sum_of_rows(top, left, step);
    } else {
        total = sum_of_parts(top, left, step);
    }
    put_column(row, col, total[0]);
    put_column(row, col + 1u, total[1]);
    put_column(row, col + 2u, total[2]);
    put_column(row, col + 3u, total[3]);
}
