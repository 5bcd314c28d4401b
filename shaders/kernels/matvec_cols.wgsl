// C = A · B where A is one row: a workgroup sums 128 columns of B over one of `slices` parts of
// its depth, TERMS products at a time, to bound the rounding error. A second dispatch sums those, as a
// product with a row of ones.
import package::lib::grid::workgroup_index;
import package::lib::matmul::{Cell, columns_of, load_b, store};
import package::lib::reduce::TERMS;

struct Params {
    m: u32,
    k: u32,
    n: u32,
    tiles_across: u32,
    // Depths of a slice.
    slice: u32,
    // Whether to take every value of A for one.
    ones: u32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> a: array<f32>;
@group(0) @binding(2) var<storage, read> b: array<Cell>;
@group(0) @binding(3) var<storage, read_write> c: array<Cell>;

const SPAN = 32u;
var<workgroup> sums: array<vec4f, 256>;

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) local: u32,
) {
    let index = workgroup_index(group, groups);
    let slice = index / params.tiles_across;
    let vector = 32u * (index % params.tiles_across) + local % 32u;
    let columns = columns_of(vector);
    let first = slice * params.slice;
    let end = min(first + params.slice, params.k);
    var total = vec4f();
    for (var block = first + local / 32u; block < end; block += 8u * TERMS) {
        var part = vec4f();
        for (var depth = block; depth < min(block + 8u * TERMS, end); depth += 8u) {
            let factor = select(a[depth], 1.0, params.ones != 0u);
            part += factor * load_b(depth, columns);
        }
        total += part;
    }
    sums[local] = total;
    for (var half = 128u; half >= 32u; half >>= 1u) {
        workgroupBarrier();
        if local < half {
            sums[local] += sums[local + half];
        }
    }
    if local < 32u {
        store(slice, vector, sums[local]);
    }
}
