// One output an invocation, row by row, which bounds the rounding error of large kernels. Padding is
// read as zero by leaving those taps out.
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

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) local: u32,
) {
    let index = workgroup_index(group, groups) * 256u + local;
    if index >= params.output_rows * params.output_cols {
        return;
    }
    let top = (index / params.output_cols) * params.stride_rows;
    let left = (index % params.output_cols) * params.stride_cols;
    var total = 0.0;
    for (var i = 0u; i < params.kernel_rows; i++) {
        // Rows above the input wrap around to numbers too large to be inside it.
        let row = top + i - params.pad_top;
        if row >= params.input_rows {
            continue;
        }
        var sum = 0.0;
        for (var j = 0u; j < params.kernel_cols; j++) {
            let col = left + j - params.pad_left;
            if col < params.input_cols {
                sum += input[row * params.input_cols + col] * weights[i * params.kernel_cols + j];
            }
        }
        total += sum;
    }
    result[index] = after(index, total);
}
