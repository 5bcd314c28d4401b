// One workgroup a row: maximum, sum of exponentials, result; three passes over the row, which
// stays in cache as long as this kernel is chosen for it.
import package::lib::grid::workgroup_index;
import package::lib::softmax::{largest_of, put_shares, total_of};

struct Params {
    rows: u32,
    cols: u32,
    lowest: f32,
    as_log: u32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;

// Fewer on software adapters.
override GROUP = 256u;

fn before0(i: u32) -> f32 {
    return x[i];
}

@compute @workgroup_size(GROUP)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) local: u32,
) {
    let row = workgroup_index(group, groups);
    if row >= params.rows {
        return;
    }
    let start = row * params.cols;
    let end = start + params.cols;
    let largest = largest_of(start, end, local);
    let total = total_of(start, end, largest, local);
    put_shares(start, end, largest, total, local);
}
