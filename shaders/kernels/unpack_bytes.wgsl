// The four bytes of each word as numbers from 0 to 1.
import package::lib::grid::workgroup_index;
import package::lib::hooks::after;

struct Params {
    numbers: u32,
    // The distance of a word's numbers: 1, or the number of words.
    stride: u32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<u32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) local: u32,
) {
    let word = workgroup_index(group, groups) * 256u + local;
    if 4u * word >= params.numbers {
        return;
    }
    let first = select(word, 4u * word, params.stride == 1u);
    let numbers = unpack4x8unorm(x[word]);
    for (var byte = 0u; byte < 4u; byte++) {
        let i = first + byte * params.stride;
        y[i] = after(i, numbers[byte]);
    }
}
