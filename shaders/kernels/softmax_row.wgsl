// One workgroup a row: maximum, sum of exponentials, result; three passes over the row, which
// stays in cache as long as this kernel is chosen for it.
struct Params {
    rows: u32,
    cols: u32,
    lowest: f32,
    as_log: u32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;

fn before0(i: u32) -> f32 {
    return x[i];
}

const GROUP = 256u;

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
    var largest = params.lowest;
    for (var i = local; i < params.cols; i += 256u) {
        largest = maximum(largest, before0(start + i));
    }
    largest = workgroup_reduce(MAX, largest, local);
    var total = 0.0;
    for (var i = local; i < params.cols; i += 256u) {
        total += exponential(before0(start + i) - largest);
    }
    total = workgroup_reduce(SUM, total, local);
    for (var i = local; i < params.cols; i += 256u) {
        let value = normalise(before0(start + i), largest, total, params.as_log);
        y[start + i] = after(start + i, value);
    }
}
