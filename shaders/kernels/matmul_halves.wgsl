// C = A · B of matrices of binary16 (`halves.wgsl`), with sums in f32; all three are made of whole
// tiles. A workgroup of four subgroups of 32 computes a tile of 128 × 128 from slabs of A and B,
// 32 deep, in workgroup memory; the next pair of slabs is loaded while one is multiplied. A
// subgroup has 64 × 64 of the sums, in 4 × 4 matrices of 16 × 16 that its invocations hold
// together. Passing them through workgroup memory, to store only a part or something computed
// from them, took as long as the product: `trim.wgsl` does so afterwards where it must be.
// Both halves of a slab are written out: a loop over them took a third longer.
// naga and Chromium have their own words for such matrices, and for what they are read from
// (`shaders/lib/matrices.wgsl`).
import package::lib::grid::workgroup_index;
import package::lib::matrices::{Product, keep_a, keep_b, load_left, load_right, multiply_add, store};

enable f16;
@if(naga) enable wgpu_cooperative_matrix;
@if(chromium) enable chromium_experimental_subgroup_matrix;
@if(chromium) diagnostic(off, chromium.subgroup_matrix_uniformity);

struct Params {
    tiles: u32,
    tiles_across: u32,
    slabs: u32,
    // From one row of A, and of B, to the next, in vectors of four, and of C in values.
    a_across: u32,
    b_across: u32,
    c_across: u32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> a: array<vec4<f16>>;
@group(0) @binding(2) var<storage, read> b: array<vec4<f16>>;
@group(0) @binding(3) var<storage, read_write> c: array<f32>;

// Rows of the slabs, in vectors: two more than there are values for, so that rows begin in
// different banks of the memory.
const A_ROW = 10u;
const B_ROW = 34u;
const A_SLAB = 128u * A_ROW;
const B_SLAB = 32u * B_ROW;

@compute @workgroup_size(128)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) local: u32,
) {
    // Workgroups past the last tile, which cooperative matrices may not leave early, do it too.
    let tile = min(workgroup_index(group, groups), params.tiles - 1u);
    let row = (tile / params.tiles_across) * 128u;
    let col = (tile % params.tiles_across) * 128u;
    let subgroup = local / 32u;
    let top = (subgroup / 2u) * 64u;
    let left = (subgroup % 2u) * 64u;
    var a_at = (row + local / 8u) * params.a_across + local % 8u;
    var b_at = (local / 32u) * params.b_across + col / 4u + local % 32u;
    let a_kept = (local / 8u) * A_ROW + local % 8u;
    let b_kept = (local / 32u) * B_ROW + local % 32u;
    let a_from = top * A_ROW;
    let b_from = left / 4u;
    var c00 = Product();
    var c01 = Product();
    var c02 = Product();
    var c03 = Product();
    var c10 = Product();
    var c11 = Product();
    var c12 = Product();
    var c13 = Product();
    var c20 = Product();
    var c21 = Product();
    var c22 = Product();
    var c23 = Product();
    var c30 = Product();
    var c31 = Product();
    var c32 = Product();
    var c33 = Product();
    // An invocation's share of the next slabs: rows of A are 16 apart, of B 4.
    let a_step = 16u * params.a_across;
    let b_step = 4u * params.b_across;
    var next_a0 = a[a_at];
    var next_a1 = a[a_at + a_step];
    var next_a2 = a[a_at + 2u * a_step];
    var next_a3 = a[a_at + 3u * a_step];
    var next_a4 = a[a_at + 4u * a_step];
    var next_a5 = a[a_at + 5u * a_step];
    var next_a6 = a[a_at + 6u * a_step];
    var next_a7 = a[a_at + 7u * a_step];
    var next_b0 = b[b_at];
    var next_b1 = b[b_at + b_step];
    var next_b2 = b[b_at + 2u * b_step];
    var next_b3 = b[b_at + 3u * b_step];
    var next_b4 = b[b_at + 4u * b_step];
    var next_b5 = b[b_at + 5u * b_step];
    var next_b6 = b[b_at + 6u * b_step];
    var next_b7 = b[b_at + 7u * b_step];
    for (var slab = 1u; slab <= params.slabs; slab += 1u) {
        keep_a(a_kept, next_a0);
        keep_a(a_kept + 16u * A_ROW, next_a1);
        keep_a(a_kept + 32u * A_ROW, next_a2);
        keep_a(a_kept + 48u * A_ROW, next_a3);
        keep_a(a_kept + 64u * A_ROW, next_a4);
        keep_a(a_kept + 80u * A_ROW, next_a5);
        keep_a(a_kept + 96u * A_ROW, next_a6);
        keep_a(a_kept + 112u * A_ROW, next_a7);
        keep_b(b_kept, next_b0);
        keep_b(b_kept + 4u * B_ROW, next_b1);
        keep_b(b_kept + 8u * B_ROW, next_b2);
        keep_b(b_kept + 12u * B_ROW, next_b3);
        keep_b(b_kept + 16u * B_ROW, next_b4);
        keep_b(b_kept + 20u * B_ROW, next_b5);
        keep_b(b_kept + 24u * B_ROW, next_b6);
        keep_b(b_kept + 28u * B_ROW, next_b7);
        workgroupBarrier();
        // The last slab once more where there is no next one.
        if slab < params.slabs {
            a_at += 8u;
            b_at += 32u * params.b_across;
        }
        next_a0 = a[a_at];
        next_a1 = a[a_at + a_step];
        next_a2 = a[a_at + 2u * a_step];
        next_a3 = a[a_at + 3u * a_step];
        next_a4 = a[a_at + 4u * a_step];
        next_a5 = a[a_at + 5u * a_step];
        next_a6 = a[a_at + 6u * a_step];
        next_a7 = a[a_at + 7u * a_step];
        next_b0 = b[b_at];
        next_b1 = b[b_at + b_step];
        next_b2 = b[b_at + 2u * b_step];
        next_b3 = b[b_at + 3u * b_step];
        next_b4 = b[b_at + 4u * b_step];
        next_b5 = b[b_at + 5u * b_step];
        next_b6 = b[b_at + 6u * b_step];
        next_b7 = b[b_at + 7u * b_step];
        {
            let b0 = load_right(b_from);
            let b1 = load_right(b_from + 4u);
            let b2 = load_right(b_from + 8u);
            let b3 = load_right(b_from + 12u);
            let a0 = load_left(a_from);
            c00 = multiply_add(a0, b0, c00);
            c01 = multiply_add(a0, b1, c01);
            c02 = multiply_add(a0, b2, c02);
            c03 = multiply_add(a0, b3, c03);
            let a1 = load_left(a_from + 16u * A_ROW);
            c10 = multiply_add(a1, b0, c10);
            c11 = multiply_add(a1, b1, c11);
            c12 = multiply_add(a1, b2, c12);
            c13 = multiply_add(a1, b3, c13);
            let a2 = load_left(a_from + 32u * A_ROW);
            c20 = multiply_add(a2, b0, c20);
            c21 = multiply_add(a2, b1, c21);
            c22 = multiply_add(a2, b2, c22);
            c23 = multiply_add(a2, b3, c23);
            let a3 = load_left(a_from + 48u * A_ROW);
            c30 = multiply_add(a3, b0, c30);
            c31 = multiply_add(a3, b1, c31);
            c32 = multiply_add(a3, b2, c32);
            c33 = multiply_add(a3, b3, c33);
        }
        {
            let b0 = load_right(b_from + 16u * B_ROW);
            let b1 = load_right(b_from + 16u * B_ROW + 4u);
            let b2 = load_right(b_from + 16u * B_ROW + 8u);
            let b3 = load_right(b_from + 16u * B_ROW + 12u);
            let a0 = load_left(a_from + 4u);
            c00 = multiply_add(a0, b0, c00);
            c01 = multiply_add(a0, b1, c01);
            c02 = multiply_add(a0, b2, c02);
            c03 = multiply_add(a0, b3, c03);
            let a1 = load_left(a_from + 4u + 16u * A_ROW);
            c10 = multiply_add(a1, b0, c10);
            c11 = multiply_add(a1, b1, c11);
            c12 = multiply_add(a1, b2, c12);
            c13 = multiply_add(a1, b3, c13);
            let a2 = load_left(a_from + 4u + 32u * A_ROW);
            c20 = multiply_add(a2, b0, c20);
            c21 = multiply_add(a2, b1, c21);
            c22 = multiply_add(a2, b2, c22);
            c23 = multiply_add(a2, b3, c23);
            let a3 = load_left(a_from + 4u + 48u * A_ROW);
            c30 = multiply_add(a3, b0, c30);
            c31 = multiply_add(a3, b1, c31);
            c32 = multiply_add(a3, b2, c32);
            c33 = multiply_add(a3, b3, c33);
        }
        workgroupBarrier();
    }
    let across = params.c_across;
    let c_at = (row + top) * across + col + left;
    let c_step = 16u * across;
    store(c_at, c00, across);
    store(c_at + 16u, c01, across);
    store(c_at + 32u, c02, across);
    store(c_at + 48u, c03, across);
    store(c_at + c_step, c10, across);
    store(c_at + c_step + 16u, c11, across);
    store(c_at + c_step + 32u, c12, across);
    store(c_at + c_step + 48u, c13, across);
    store(c_at + 2u * c_step, c20, across);
    store(c_at + 2u * c_step + 16u, c21, across);
    store(c_at + 2u * c_step + 32u, c22, across);
    store(c_at + 2u * c_step + 48u, c23, across);
    store(c_at + 3u * c_step, c30, across);
    store(c_at + 3u * c_step + 16u, c31, across);
    store(c_at + 3u * c_step + 32u, c32, across);
    store(c_at + 3u * c_step + 48u, c33, across);
}
