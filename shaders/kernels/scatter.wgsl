// Sums of the rows of x with one index, which are neighbours in the order of the indices.
import package::lib::grid::workgroup_index;
import package::lib::hooks::after;

struct Params {
    len: u32,
    cols: u32,
    count: u32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read> indices: array<f32>;
@group(0) @binding(3) var<storage, read> order: array<f32>;
@group(0) @binding(4) var<storage, read_write> y: array<f32>;

// Elements of a workgroup, as the host counts them.
const CHUNK = 1024u;
// Fewer on software adapters.
override GROUP = 256u;

// The first place in the order whose index is not below a row; NaN comes last.
fn first_of(row: f32) -> u32 {
    var low = 0u;
    var high = params.count;
    while low < high {
        let middle = (low + high) / 2u;
        if indices[u32(order[middle])] < row {
            low = middle + 1u;
        } else {
            high = middle;
        }
    }
    return low;
}

fn element(i: u32) -> f32 {
    let row = f32(i / params.cols);
    var total = 0.0;
    for (var at = first_of(row); at < params.count; at++) {
        let own = u32(order[at]);
        if indices[own] != row {
            break;
        }
        total += x[own * params.cols + i % params.cols];
    }
    return total;
}

@compute @workgroup_size(GROUP)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) local: u32,
) {
    let start = workgroup_index(group, groups) * CHUNK;
    for (var i = start + local; i < min(start + CHUNK, params.len); i += GROUP) {
        y[i] = after(i, element(i));
    }
}
