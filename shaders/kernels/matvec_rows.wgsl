// C = A · B where B is one column: a workgroup a row of A. TERMS products at a time add up, to
// bound the rounding error.
import package::lib::grid::workgroup_index;
import package::lib::hooks::after;
import package::lib::matmul::{Cell, load_a, load_column};
import package::lib::reduce::{SUM, TERMS, workgroup_reduce};

struct Params {
    m: u32,
    k: u32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> a: array<Cell>;
@group(0) @binding(2) var<storage, read> b: array<Cell>;
@group(0) @binding(3) var<storage, read_write> c: array<f32>;

const GROUP = 64u;

@compute @workgroup_size(GROUP)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) local: u32,
) {
    let row = workgroup_index(group, groups);
    if row >= params.m {
        return;
    }
    var total = vec4f();
    let quarters = (params.k + 3u) / 4u;
    for (var block = local; block < quarters; block += TERMS * GROUP) {
        var part = vec4f();
        for (var i = block; i < min(block + TERMS * GROUP, quarters); i += GROUP) {
            part += load_a(row, i) * load_column(i);
        }
        total += part;
    }
    let sum = workgroup_reduce(SUM, dot(total, vec4f(1.0)), local);
    if local == 0u {
        c[row] = after(row, sum);
    }
}
