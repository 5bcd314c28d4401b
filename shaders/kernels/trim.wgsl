// The first n columns of the first m rows of a matrix with more of both, four columns an invocation.
import package::lib::grid::workgroup_index;
import package::lib::matmul::{Cell, store};

struct Params {
    m: u32,
    n: u32,
    // A row of the result and of the matrix, in vectors of four; the last one of a row may be short.
    across: u32,
    x_across: u32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<vec4f>;
@group(0) @binding(2) var<storage, read_write> c: array<Cell>;

const SPAN = 1u;

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) local: u32,
) {
    let i = workgroup_index(group, groups) * 256u + local;
    let row = i / params.across;
    let vector = i % params.across;
    if row < params.m {
        store(row, vector, x[row * params.x_across + vector]);
    }
}
