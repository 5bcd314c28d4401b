// C = A · B. A workgroup of ACROSS × DOWN invocations computes a tile of C from slabs of A and B,
// 16 deep, in workgroup memory; the next pair of slabs is loaded while one is multiplied. An
// invocation computes BLOCK_ROWS × BLOCK_COLS blocks of 4 × 4 values in registers: nothing in
// them is indexed at run time, or compilers would move it elsewhere.
//
// What PART depths add up to goes to the totals, which bounds the rounding error: a sum of
// thousands of like terms would lose as many last places. The totals are indexed at run time, so
// that they take no registers.
//
// Bounds: what is read of A and B is clamped to their last row, column and depth, or is the first value where it lies
// beyond an image, and what is stored lies in C (`lib/matmul.wgsl`). An invocation writes two vectors of a slab, of
// A's by their places among its rows and depths, of B's `local` and `local + GROUP`, and reads rows, depths and columns
// below ROWS, 16 and 4 · VECTORS: a slab has 4 · ROWS = 16 · VECTORS = 2 · GROUP vectors, and as many places, since an
// exclusive or with less than 8 leaves multiples of 8 alone. Totals begin at 0 or 1, of five.
import constants::{BLOCK_COLS, BLOCK_ROWS};
import package::lib::grid::workgroup_index;
import package::lib::matmul::{Cell, Layer, Sums, add_product, columns_of, load_b, load_share, slab_block, slab_place, store};

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

// The sides that make two vectors of each slab an invocation's share.
const ACROSS = 8u * BLOCK_ROWS;
const DOWN = 8u * BLOCK_COLS;
const GROUP = ACROSS * DOWN;
const ROWS = 4u * BLOCK_ROWS * DOWN;
const VECTORS = BLOCK_COLS * ACROSS;
const SPAN = VECTORS;
const PART = 256u;

// Two slabs each. A's is as `slab_block` reads it; B's as [depth][column / 4], four columns a vector.
var<workgroup> a_slabs: array<vec4f, 4 * GROUP>;
var<workgroup> b_slabs: array<vec4f, 4 * GROUP>;

fn b_block(i: u32) -> mat4x4f {
    const STEP = VECTORS;
    return mat4x4f(b_slabs[i], b_slabs[i + STEP], b_slabs[i + 2u * STEP], b_slabs[i + 3u * STEP]);
}

// Four depths more.
fn advance(sums: ptr<function, Sums>, slab: u32, y: u32, quarter: u32, b_at: u32) {
    let left = b_block(b_at);
    let top = slab_block(slab, y, quarter, 0u);
    (*sums).first = add_product((*sums).first, top, left);
    if BLOCK_ROWS > 1u {
        let bottom = slab_block(slab, y, quarter, 1u);
        (*sums).below = add_product((*sums).below, bottom, left);
        if BLOCK_COLS > 1u {
            let right = b_block(b_at + ACROSS);
            (*sums).right = add_product((*sums).right, top, right);
            (*sums).last = add_product((*sums).last, bottom, right);
        }
    }
}

var<private> totals: array<mat4x4f, 5>;

// Adds the sums to the totals that begin at `at`.
fn gather(sums: ptr<function, Sums>, at: u32) {
    totals[at] += (*sums).first;
    if BLOCK_ROWS > 1u {
        totals[at + 1u] += (*sums).below;
        if BLOCK_COLS > 1u {
            totals[at + 2u] += (*sums).right;
            totals[at + 3u] += (*sums).last;
        }
    }
}

fn store_block(row: u32, vector: u32, block: mat4x4f) {
    store(row, vector, block[0]);
    store(row + DOWN, vector, block[1]);
    store(row + 2u * DOWN, vector, block[2]);
    store(row + 3u * DOWN, vector, block[3]);
}

@compute @workgroup_size(GROUP)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) local: u32,
) {
    let tile = workgroup_index(group, groups);
    let row = (tile / params.tiles_across) * ROWS;
    let vector = (tile % params.tiles_across) * VECTORS;
    let x = local % ACROSS;
    let y = local / ACROSS;
    // Where this invocation's two loads of each slab of B lie.
    let b_depth = local / VECTORS;
    let b_columns = columns_of(vector + local % VECTORS);
    const B_STEP = GROUP / VECTORS;
    var a0 = load_share(row, 0u, local, 0u);
    var a1 = load_share(row, 0u, local, 1u);
    var b0 = load_b(b_depth, b_columns);
    var b1 = load_b(b_depth + B_STEP, b_columns);
    var slab = 0u;
    let at = u32(params.k == 0u);
    for (var part = 0u; part < params.k; part += PART) {
        // Without a value Chromium's compiler makes it zero but once, before the loop.
        var sums = Sums();
        let end = min(part + PART, params.k);
        for (var depth = part + 16u; depth < end + 16u; depth += 16u) {
            a_slabs[slab + slab_place(local, 0u)] = a0;
            a_slabs[slab + slab_place(local, 1u)] = a1;
            b_slabs[slab + local] = b0;
            b_slabs[slab + local + GROUP] = b1;
            workgroupBarrier();
            a0 = load_share(row, depth, local, 0u);
            a1 = load_share(row, depth, local, 1u);
            b0 = load_b(depth + b_depth, b_columns);
            b1 = load_b(depth + b_depth + B_STEP, b_columns);
            let b_at = slab + x;
            advance(&sums, slab, y, 0u, b_at);
            advance(&sums, slab, y, 1u, b_at + 4u * VECTORS);
            advance(&sums, slab, y, 2u, b_at + 8u * VECTORS);
            advance(&sums, slab, y, 3u, b_at + 12u * VECTORS);
            slab = 2u * GROUP - slab;
        }
        gather(&sums, at);
    }
    let r = row + y;
    let v = vector + x;
    store_block(r, v, totals[at]);
    if BLOCK_ROWS > 1u {
        store_block(r + 4u * DOWN, v, totals[at + 1u]);
        if BLOCK_COLS > 1u {
            store_block(r, v + ACROSS, totals[at + 2u]);
            store_block(r + 4u * DOWN, v + ACROSS, totals[at + 3u]);
        }
    }
}
