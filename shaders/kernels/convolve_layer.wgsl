// Convolutions of images with many channels: an invocation computes four neighbouring places of four filters of a
// group, one place of the kernel after the other, through all channels. PART products at least, and not twice as
// many, add up at a time, to bound the rounding error.
//
// Bounds: places of the result are clamped to the last one where they are read for, and so are filters, rows and
// columns; channels stay below their number. What is stored is a place and a filter that there are.
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
    dilation_rows: u32,
    dilation_cols: u32,
    pad_top: u32,
    pad_left: u32,
    batch: u32,
    groups: u32,
    // Of a group.
    channels: u32,
    filters: u32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> input: array<f32>;
@group(0) @binding(2) var<storage, read> weights: array<f32>;
@group(0) @binding(3) var<storage, read_write> result: array<f32>;

const PART = 128u;

// Adds the products of some channels, at a place of the kernel, to the sums, a column a filter.
fn add_channels(sums: ptr<function, mat4x4f>, first: vec4u, inside: vec4<bool>, first_weight: vec4u, start: u32, end: u32) {
    let plane = params.input_rows * params.input_cols;
    let taps = params.kernel_rows * params.kernel_cols;
    for (var channel = start; channel < end; channel++) {
        let at = first + channel * plane;
        let w = first_weight + channel * taps;
        let values = select(vec4f(), vec4f(input[at.x], input[at.y], input[at.z], input[at.w]), inside);
        (*sums)[0] += weights[w.x] * values;
        (*sums)[1] += weights[w.y] * values;
        (*sums)[2] += weights[w.z] * values;
        (*sums)[3] += weights[w.w] * values;
    }
}

// Stores a filter's values of places that there are.
fn put_places(map: u32, place: u32, values: vec4f) {
    let plane = params.output_rows * params.output_cols;
    for (var i = 0u; i < min(plane - place, 4u); i++) {
        let at = map * plane + place + i;
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
    let plane = params.output_rows * params.output_cols;
    let across = (plane + 3u) / 4u;
    let fours = (params.filters + 3u) / 4u;
    let image_and_group = tile / across / fours;
    if image_and_group >= params.batch * params.groups {
        return;
    }
    let place = 4u * (tile % across);
    let local_filter = 4u * (tile / across % fours);
    let first_filter = image_and_group % params.groups * params.filters;
    let depth = params.channels * params.kernel_rows * params.kernel_cols;
    let filters = first_filter + min(local_filter + vec4u(0u, 1u, 2u, 3u), vec4u(params.filters - 1u));
    let places = min(place + vec4u(0u, 1u, 2u, 3u), vec4u(plane - 1u));
    // Before the input, numbers wrap around to some beyond its end.
    let top = places / params.output_cols * params.stride_rows - params.pad_top;
    let left = places % params.output_cols * params.stride_cols - params.pad_left;
    let image = image_and_group * params.channels * params.input_rows * params.input_cols;
    var total = mat4x4f();
    var part = mat4x4f();
    var taken = 0u;
    for (var i = 0u; i < params.kernel_rows; i++) {
        let rows = top + i * params.dilation_rows;
        let starts = image + min(rows, vec4u(params.input_rows - 1u)) * params.input_cols;
        for (var j = 0u; j < params.kernel_cols; j++) {
            let cols = left + j * params.dilation_cols;
            let inside = (rows < vec4u(params.input_rows)) & (cols < vec4u(params.input_cols));
            let at = starts + min(cols, vec4u(params.input_cols - 1u));
            let w = filters * depth + i * params.kernel_cols + j;
            for (var start = 0u; start < params.channels; start += PART) {
                let end = min(start + PART, params.channels);
                add_channels(&part, at, inside, w, start, end);
                taken += end - start;
                if taken >= PART {
                    total += part;
                    part = mat4x4f();
                    taken = 0u;
                }
            }
        }
    }
    total += part;
    let map = image_and_group / params.groups * params.groups * params.filters + first_filter + local_filter;
    for (var f = 0u; f < min(params.filters - local_filter, 4u); f++) {
        put_places(map + f, place, total[f]);
    }
}
