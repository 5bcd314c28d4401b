// C = A · B without workgroup memory or barriers, by subgroups of any size from 8 invocations on. Each
// subgroup computes a tile of 8 · BLOCKS rows by itself, and each of its invocations two vectors of
// columns there, which it reads of B. Of A an invocation reads one vector of depths for each block of 8
// rows, and the others get it by shuffles. All is read a step ahead: without that it took 1.3 times as
// long. PART depths at a time add up, to bound the rounding error.
//
// Bounds: what is read of A is clamped to its last row and depth (`lib/matmul.wgsl`). Of B it is clamped
// to the last vector of columns once, before the loops, and to the last four depths in each step. What
// is stored lies in C.
import constants::BLOCKS;
import package::lib::grid::workgroup_index;
import package::lib::matmul::{Cell, Columns, Sums, add_product, columns_of, load_a, load_b_within, store};

struct Params {
    m: u32,
    k: u32,
    n: u32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> a: array<Cell>;
@group(0) @binding(2) var<storage, read> b: array<Cell>;
@group(0) @binding(3) var<storage, read_write> c: array<Cell>;

const PART = 256u;
const SPAN = 1u;
const ROWS = 8u * BLOCKS;

// Of the block below, if there is one.
fn a_below(row: u32, quarter: u32) -> vec4f {
    if BLOCKS > 1u {
        return load_a(row + 8u, quarter);
    }
    return vec4f();
}

// Four rows of A that lie with as many invocations from the first one on.
fn a_block(vectors: vec4f, first: u32) -> mat4x4f {
    return mat4x4f(
        subgroupShuffle(vectors, first),
        subgroupShuffle(vectors, first + 1u),
        subgroupShuffle(vectors, first + 2u),
        subgroupShuffle(vectors, first + 3u),
    );
}

fn b_block(depth: u32, columns: Columns) -> mat4x4f {
    return mat4x4f(
        load_b_within(depth, columns),
        load_b_within(depth + 1u, columns),
        load_b_within(depth + 2u, columns),
        load_b_within(depth + 3u, columns),
    );
}

fn advance(sums: ptr<function, Sums>, rows: vec4f, first: u32, left: mat4x4f, right: mat4x4f) {
    let top = a_block(rows, first);
    (*sums).first = add_product((*sums).first, top, left);
    (*sums).right = add_product((*sums).right, top, right);
    let bottom = a_block(rows, first + 4u);
    (*sums).below = add_product((*sums).below, bottom, left);
    (*sums).last = add_product((*sums).last, bottom, right);
}

fn gather(totals: ptr<function, Sums>, sums: Sums) {
    (*totals).first += sums.first;
    (*totals).right += sums.right;
    (*totals).below += sums.below;
    (*totals).last += sums.last;
}

fn store_rows(row: u32, vector: u32, block: mat4x4f) {
    store(row, vector, block[0]);
    store(row + 1u, vector, block[1]);
    store(row + 2u, vector, block[2]);
    store(row + 3u, vector, block[3]);
}

fn store_sums(row: u32, left: u32, right: u32, sums: Sums) {
    store_rows(row, left, sums.first);
    store_rows(row, right, sums.right);
    store_rows(row + 4u, left, sums.below);
    store_rows(row + 4u, right, sums.last);
}

@compute @workgroup_size(64)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(subgroup_id) subgroup: u32,
    @builtin(num_subgroups) subgroups: u32,
    @builtin(subgroup_invocation_id) lane: u32,
    @builtin(subgroup_size) lanes: u32,
) {
    // Tiles below each other share what they read of B.
    let tile = workgroup_index(group, groups) * subgroups + subgroup;
    let down = (params.m + ROWS - 1u) / ROWS;
    let row = (tile % down) * ROWS;
    let start = (tile / down) * 2u * lanes;
    let across = (params.n + 3u) / 4u;
    if start >= across {
        return;
    }
    let left = start + lane;
    let right = left + lanes;
    let left_columns = columns_of(min(left, across - 1u));
    let right_columns = columns_of(min(right, across - 1u));
    // Which part of a block of A is this invocation's.
    let a_row = row + lane % 8u;
    let a_quarter = lane / 8u;
    let held = lanes / 8u;
    let quarters = (params.k + 3u) / 4u;
    var a_next = load_a(a_row, a_quarter);
    var a_next_below = a_below(a_row, a_quarter);
    var left_next = b_block(0u, left_columns);
    var right_next = b_block(0u, right_columns);
    var totals = Sums();
    var totals_below = Sums();
    for (var part = 0u; part < quarters; part += PART / 4u) {
        var sums = Sums();
        var sums_below = Sums();
        let end = min(part + PART / 4u, quarters);
        for (var first = part; first < end; first += held) {
            let a_held = a_next;
            let a_held_below = a_next_below;
            a_next = load_a(a_row, first + held + a_quarter);
            a_next_below = a_below(a_row, first + held + a_quarter);
            for (var i = 0u; i < min(held, end - first); i++) {
                let left_block = left_next;
                let right_block = right_next;
                let depth = 4u * min(first + i + 1u, quarters - 1u);
                left_next = b_block(depth, left_columns);
                right_next = b_block(depth, right_columns);
                advance(&sums, a_held, 8u * i, left_block, right_block);
                if BLOCKS > 1u {
                    advance(&sums_below, a_held_below, 8u * i, left_block, right_block);
                }
            }
        }
        gather(&totals, sums);
        gather(&totals_below, sums_below);
    }
    store_sums(row, left, right, totals);
    if BLOCKS > 1u {
        store_sums(row + 8u, left, right, totals_below);
    }
}
