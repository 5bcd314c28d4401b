// C = A · B for software adapters, to which workgroup memory is no closer and each barrier costs a
// switch of contexts: an invocation computes 8 × 8 values of C straight from A and B. What it takes is
// nearly all loads, lane by lane, of which wide tiles need fewer. PART depths at a time add up, to
// bound the rounding error.
import package::lib::grid::workgroup_index;
import package::lib::matmul::{Cell, Columns, Layer, Sums, add_product, columns_of, load_a, load_b, store};

struct Params {
    m: u32,
    k: u32,
    n: u32,
    tiles_across: u32,
    layer: Layer,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> a: array<Cell>;
@group(0) @binding(2) var<storage, read> b: array<Cell>;
@group(0) @binding(3) var<storage, read_write> c: array<Cell>;

const PART = 256u;
const SPAN = 1u;

fn a_block(row: u32, quarter: u32) -> mat4x4f {
    return mat4x4f(
        load_a(row, quarter),
        load_a(row + 1u, quarter),
        load_a(row + 2u, quarter),
        load_a(row + 3u, quarter),
    );
}

fn b_block(depth: u32, columns: Columns) -> mat4x4f {
    return mat4x4f(
        load_b(depth, columns),
        load_b(depth + 1u, columns),
        load_b(depth + 2u, columns),
        load_b(depth + 3u, columns),
    );
}

fn store_block(row: u32, vector: u32, block: mat4x4f) {
    store(row, vector, block[0]);
    store(row + 1u, vector, block[1]);
    store(row + 2u, vector, block[2]);
    store(row + 3u, vector, block[3]);
}

@compute @workgroup_size(64)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) local: u32,
) {
    let tile = workgroup_index(group, groups) * 64u + local;
    let row = (tile / params.tiles_across) * 8u;
    let vector = (tile % params.tiles_across) * 2u;
    if row >= params.m {
        return;
    }
    let left_columns = columns_of(vector);
    let right_columns = columns_of(vector + 1u);
    var totals = Sums();
    for (var part = 0u; part < params.k; part += PART) {
        var sums = Sums();
        for (var depth = part; depth < min(part + PART, params.k); depth += 4u) {
            let left = b_block(depth, left_columns);
            let right = b_block(depth, right_columns);
            let top = a_block(row, depth / 4u);
            sums.first = add_product(sums.first, top, left);
            sums.right = add_product(sums.right, top, right);
            let bottom = a_block(row + 4u, depth / 4u);
            sums.below = add_product(sums.below, bottom, left);
            sums.last = add_product(sums.last, bottom, right);
        }
        totals.first += sums.first;
        totals.right += sums.right;
        totals.below += sums.below;
        totals.last += sums.last;
    }
    store_block(row, vector, totals.first);
    store_block(row, vector + 1u, totals.right);
    store_block(row + 4u, vector, totals.below);
    store_block(row + 4u, vector + 1u, totals.last);
}
