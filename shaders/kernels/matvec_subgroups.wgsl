// C = A · B where B is one column: a subgroup two rows of A, without a barrier. TERMS products at a time
// add up, to bound the rounding error.
import package::lib::grid::workgroup_index;
import package::lib::hooks::after;
import package::lib::matmul::{Cell, load_a, load_column};
import package::lib::reduce::TERMS;

struct Params {
    m: u32,
    k: u32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> a: array<Cell>;
@group(0) @binding(2) var<storage, read> b: array<Cell>;
@group(0) @binding(3) var<storage, read_write> c: array<f32>;

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(subgroup_id) subgroup: u32,
    @builtin(num_subgroups) subgroups: u32,
    @builtin(subgroup_invocation_id) lane: u32,
    @builtin(subgroup_size) lanes: u32,
) {
    let row = 2u * (workgroup_index(group, groups) * subgroups + subgroup);
    if row >= params.m {
        return;
    }
    var total = vec4f();
    var total_below = vec4f();
    let quarters = (params.k + 3u) / 4u;
    for (var block = lane; block < quarters; block += TERMS * lanes) {
        var part = vec4f();
        var part_below = vec4f();
        for (var i = block; i < min(block + TERMS * lanes, quarters); i += lanes) {
            let column = load_column(i);
            part += load_a(row, i) * column;
            part_below += load_a(row + 1u, i) * column;
        }
        total += part;
        total_below += part_below;
    }
    let sums = subgroupAdd(vec2f(dot(total, vec4f(1.0)), dot(total_below, vec4f(1.0))));
    if lane == 0u {
        c[row] = after(row, sums.x);
        if row + 1u < params.m {
            c[row + 1u] = after(row + 1u, sums.y);
        }
    }
}
