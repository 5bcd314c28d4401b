//! native
//! enable f16
//! enable wgpu_cooperative_matrix
// C = A · B of matrices of binary16 (`halves.wgsl`), with sums in f32; all three are made of whole
// tiles. A workgroup of four subgroups of 32 computes a tile of 128 × 128 from slabs of A and B,
// 32 deep, in workgroup memory; the next pair of slabs is loaded while one is multiplied. A
// subgroup has 64 × 64 of the sums, in 4 × 4 matrices of 16 × 16 that its invocations hold
// together. Passing them through workgroup memory, to store only a part or something computed
// from them, took as long as the product: `trim.wgsl` does so afterwards where it must be.
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
var<workgroup> a_slab: array<vec4<f16>, 1280>;
var<workgroup> b_slab: array<vec4<f16>, 1088>;

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
    var c00 = coop_mat16x16<f32, C>();
    var c01 = coop_mat16x16<f32, C>();
    var c02 = coop_mat16x16<f32, C>();
    var c03 = coop_mat16x16<f32, C>();
    var c10 = coop_mat16x16<f32, C>();
    var c11 = coop_mat16x16<f32, C>();
    var c12 = coop_mat16x16<f32, C>();
    var c13 = coop_mat16x16<f32, C>();
    var c20 = coop_mat16x16<f32, C>();
    var c21 = coop_mat16x16<f32, C>();
    var c22 = coop_mat16x16<f32, C>();
    var c23 = coop_mat16x16<f32, C>();
    var c30 = coop_mat16x16<f32, C>();
    var c31 = coop_mat16x16<f32, C>();
    var c32 = coop_mat16x16<f32, C>();
    var c33 = coop_mat16x16<f32, C>();
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
        a_slab[a_kept] = next_a0;
        a_slab[a_kept + 16u * A_ROW] = next_a1;
        a_slab[a_kept + 32u * A_ROW] = next_a2;
        a_slab[a_kept + 48u * A_ROW] = next_a3;
        a_slab[a_kept + 64u * A_ROW] = next_a4;
        a_slab[a_kept + 80u * A_ROW] = next_a5;
        a_slab[a_kept + 96u * A_ROW] = next_a6;
        a_slab[a_kept + 112u * A_ROW] = next_a7;
        b_slab[b_kept] = next_b0;
        b_slab[b_kept + 4u * B_ROW] = next_b1;
        b_slab[b_kept + 8u * B_ROW] = next_b2;
        b_slab[b_kept + 12u * B_ROW] = next_b3;
        b_slab[b_kept + 16u * B_ROW] = next_b4;
        b_slab[b_kept + 20u * B_ROW] = next_b5;
        b_slab[b_kept + 24u * B_ROW] = next_b6;
        b_slab[b_kept + 28u * B_ROW] = next_b7;
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
            let b0 = coopLoadT<coop_mat16x16<f16, B>>(&b_slab[b_from], B_ROW);
            let b1 = coopLoadT<coop_mat16x16<f16, B>>(&b_slab[b_from + 4u], B_ROW);
            let b2 = coopLoadT<coop_mat16x16<f16, B>>(&b_slab[b_from + 8u], B_ROW);
            let b3 = coopLoadT<coop_mat16x16<f16, B>>(&b_slab[b_from + 12u], B_ROW);
            let a0 = coopLoadT<coop_mat16x16<f16, A>>(&a_slab[a_from], A_ROW);
            c00 = coopMultiplyAdd(a0, b0, c00);
            c01 = coopMultiplyAdd(a0, b1, c01);
            c02 = coopMultiplyAdd(a0, b2, c02);
            c03 = coopMultiplyAdd(a0, b3, c03);
            let a1 = coopLoadT<coop_mat16x16<f16, A>>(&a_slab[a_from + 16u * A_ROW], A_ROW);
            c10 = coopMultiplyAdd(a1, b0, c10);
            c11 = coopMultiplyAdd(a1, b1, c11);
            c12 = coopMultiplyAdd(a1, b2, c12);
            c13 = coopMultiplyAdd(a1, b3, c13);
            let a2 = coopLoadT<coop_mat16x16<f16, A>>(&a_slab[a_from + 32u * A_ROW], A_ROW);
            c20 = coopMultiplyAdd(a2, b0, c20);
            c21 = coopMultiplyAdd(a2, b1, c21);
            c22 = coopMultiplyAdd(a2, b2, c22);
            c23 = coopMultiplyAdd(a2, b3, c23);
            let a3 = coopLoadT<coop_mat16x16<f16, A>>(&a_slab[a_from + 48u * A_ROW], A_ROW);
            c30 = coopMultiplyAdd(a3, b0, c30);
            c31 = coopMultiplyAdd(a3, b1, c31);
            c32 = coopMultiplyAdd(a3, b2, c32);
            c33 = coopMultiplyAdd(a3, b3, c33);
        }
        {
            let b0 = coopLoadT<coop_mat16x16<f16, B>>(&b_slab[b_from + 16u * B_ROW], B_ROW);
            let b1 = coopLoadT<coop_mat16x16<f16, B>>(&b_slab[b_from + 16u * B_ROW + 4u], B_ROW);
            let b2 = coopLoadT<coop_mat16x16<f16, B>>(&b_slab[b_from + 16u * B_ROW + 8u], B_ROW);
            let b3 = coopLoadT<coop_mat16x16<f16, B>>(&b_slab[b_from + 16u * B_ROW + 12u], B_ROW);
            let a0 = coopLoadT<coop_mat16x16<f16, A>>(&a_slab[a_from + 4u], A_ROW);
            c00 = coopMultiplyAdd(a0, b0, c00);
            c01 = coopMultiplyAdd(a0, b1, c01);
            c02 = coopMultiplyAdd(a0, b2, c02);
            c03 = coopMultiplyAdd(a0, b3, c03);
            let a1 = coopLoadT<coop_mat16x16<f16, A>>(&a_slab[a_from + 4u + 16u * A_ROW], A_ROW);
            c10 = coopMultiplyAdd(a1, b0, c10);
            c11 = coopMultiplyAdd(a1, b1, c11);
            c12 = coopMultiplyAdd(a1, b2, c12);
            c13 = coopMultiplyAdd(a1, b3, c13);
            let a2 = coopLoadT<coop_mat16x16<f16, A>>(&a_slab[a_from + 4u + 32u * A_ROW], A_ROW);
            c20 = coopMultiplyAdd(a2, b0, c20);
            c21 = coopMultiplyAdd(a2, b1, c21);
            c22 = coopMultiplyAdd(a2, b2, c22);
            c23 = coopMultiplyAdd(a2, b3, c23);
            let a3 = coopLoadT<coop_mat16x16<f16, A>>(&a_slab[a_from + 4u + 48u * A_ROW], A_ROW);
            c30 = coopMultiplyAdd(a3, b0, c30);
            c31 = coopMultiplyAdd(a3, b1, c31);
            c32 = coopMultiplyAdd(a3, b2, c32);
            c33 = coopMultiplyAdd(a3, b3, c33);
        }
        workgroupBarrier();
    }
    // Values and places by name: naga fails on anything else that is stored.
    let across = params.c_across;
    let c_at = (row + top) * across + col + left;
    let c_step = 16u * across;
    let s00 = c00;
    let p00 = &c[c_at];
    coopStoreT(s00, p00, across);
    let s01 = c01;
    let p01 = &c[c_at + 16u];
    coopStoreT(s01, p01, across);
    let s02 = c02;
    let p02 = &c[c_at + 32u];
    coopStoreT(s02, p02, across);
    let s03 = c03;
    let p03 = &c[c_at + 48u];
    coopStoreT(s03, p03, across);
    let s10 = c10;
    let p10 = &c[c_at + c_step];
    coopStoreT(s10, p10, across);
    let s11 = c11;
    let p11 = &c[c_at + c_step + 16u];
    coopStoreT(s11, p11, across);
    let s12 = c12;
    let p12 = &c[c_at + c_step + 32u];
    coopStoreT(s12, p12, across);
    let s13 = c13;
    let p13 = &c[c_at + c_step + 48u];
    coopStoreT(s13, p13, across);
    let s20 = c20;
    let p20 = &c[c_at + 2u * c_step];
    coopStoreT(s20, p20, across);
    let s21 = c21;
    let p21 = &c[c_at + 2u * c_step + 16u];
    coopStoreT(s21, p21, across);
    let s22 = c22;
    let p22 = &c[c_at + 2u * c_step + 32u];
    coopStoreT(s22, p22, across);
    let s23 = c23;
    let p23 = &c[c_at + 2u * c_step + 48u];
    coopStoreT(s23, p23, across);
    let s30 = c30;
    let p30 = &c[c_at + 3u * c_step];
    coopStoreT(s30, p30, across);
    let s31 = c31;
    let p31 = &c[c_at + 3u * c_step + 16u];
    coopStoreT(s31, p31, across);
    let s32 = c32;
    let p32 = &c[c_at + 3u * c_step + 32u];
    coopStoreT(s32, p32, across);
    let s33 = c33;
    let p33 = &c[c_at + 3u * c_step + 48u];
    coopStoreT(s33, p33, across);
}
