//! native
//! enable f16
//! enable wgpu_cooperative_matrix
//! matmul_halves vectors:
//! matmul_halves_any scalars:
// C = A · B of matrices of binary16 (`halves.wgsl`), whose rows and columns were filled up to
// whole tiles, with sums in f32. A workgroup of four subgroups of 32 computes a tile of
// 128 × 128 from slabs of A and B, 32 deep, in workgroup memory; the next pair of slabs is loaded
// while one is multiplied. A subgroup has 64 × 64 of the sums, in 4 × 4 matrices of 16 × 16 that
// its invocations hold together. They pass through workgroup memory on their way to C, whose edge
// need not be a tile's.
struct Params {
    m: u32,
    k: u32,
    n: u32,
    tiles_across: u32,
    // From one row of A, and of B, to the next, in vectors of four; slabs one after the other.
    a_across: u32,
    b_across: u32,
    slabs: u32,
    a_rows: u32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> a: array<vec4<f16>>;
@group(0) @binding(2) var<storage, read> b: array<vec4<f16>>;
@group(0) @binding(3) var<storage, read_write> c: array<OP_cell>;

// Rows of the slabs, in vectors: two more than there are values for, so that rows begin in
// different banks of the memory.
const A_ROW = 10u;
const B_ROW = 34u;
const STAGE_ROW = 17u;
var<workgroup> a_slab: array<vec4<f16>, 1280>;
var<workgroup> b_slab: array<vec4<f16>, 1088>;
// 16 rows of each subgroup's sums.
var<workgroup> stage: array<vec4f, 1088>;

// An invocation's share of a slab: eight vectors, 16 rows of A or 4 of B apart.
struct Share {
    first: mat4x4<f16>,
    second: mat4x4<f16>,
}

fn a_share(at: u32) -> Share {
    let step = 16u * params.a_across;
    let half = at + 4u * step;
    return Share(
        mat4x4<f16>(a[at], a[at + step], a[at + 2u * step], a[at + 3u * step]),
        mat4x4<f16>(a[half], a[half + step], a[half + 2u * step], a[half + 3u * step]),
    );
}

fn b_share(at: u32) -> Share {
    let step = 4u * params.b_across;
    let half = at + 4u * step;
    return Share(
        mat4x4<f16>(b[at], b[at + step], b[at + 2u * step], b[at + 3u * step]),
        mat4x4<f16>(b[half], b[half + step], b[half + 2u * step], b[half + 3u * step]),
    );
}

fn keep_a(at: u32, share: Share) {
    const STEP = 16u * A_ROW;
    a_slab[at] = share.first[0];
    a_slab[at + STEP] = share.first[1];
    a_slab[at + 2u * STEP] = share.first[2];
    a_slab[at + 3u * STEP] = share.first[3];
    a_slab[at + 4u * STEP] = share.second[0];
    a_slab[at + 5u * STEP] = share.second[1];
    a_slab[at + 6u * STEP] = share.second[2];
    a_slab[at + 7u * STEP] = share.second[3];
}

fn keep_b(at: u32, share: Share) {
    const STEP = 4u * B_ROW;
    b_slab[at] = share.first[0];
    b_slab[at + STEP] = share.first[1];
    b_slab[at + 2u * STEP] = share.first[2];
    b_slab[at + 3u * STEP] = share.first[3];
    b_slab[at + 4u * STEP] = share.second[0];
    b_slab[at + 5u * STEP] = share.second[1];
    b_slab[at + 6u * STEP] = share.second[2];
    b_slab[at + 7u * STEP] = share.second[3];
}

// Brings the staged rows of a subgroup to C.
fn flush(row: u32, vector: u32, at: u32, lane: u32) {
    workgroupBarrier();
    for (var i = lane; i < 256u; i += 32u) {
        OP_store(row + i / 16u, vector + i % 16u, stage[at + (i / 16u) * STAGE_ROW + i % 16u]);
    }
    workgroupBarrier();
}

@compute @workgroup_size(128)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) local: u32,
) {
    let tile = workgroup_index(group, groups);
    let row = (tile / params.tiles_across) * 128u;
    let col = (tile % params.tiles_across) * 128u;
    let subgroup = local / 32u;
    let top = (subgroup / 2u) * 64u;
    let left = (subgroup % 2u) * 64u;
    // Workgroups past the last tile, which cooperative matrices may not leave early, read the last
    // rows of A once more.
    let a_row = min(row, params.a_rows - 128u) + local / 8u;
    var a_at = a_row * params.a_across + local % 8u;
    var b_at = (local / 32u) * params.b_across + col / 4u + local % 32u;
    let a_kept = (local / 8u) * A_ROW + local % 8u;
    let b_kept = (local / 32u) * B_ROW + local % 32u;
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
    var next_a = a_share(a_at);
    var next_b = b_share(b_at);
    for (var slab = 1u; slab <= params.slabs; slab += 1u) {
        keep_a(a_kept, next_a);
        keep_b(b_kept, next_b);
        workgroupBarrier();
        // The last slab once more where there is no next one.
        if slab < params.slabs {
            a_at += 8u;
            b_at += 32u * params.b_across;
        }
        next_a = a_share(a_at);
        next_b = b_share(b_at);
        for (var half = 0u; half < 2u; half += 1u) {
            let a_from = top * A_ROW + 4u * half;
            let b_from = half * 16u * B_ROW + left / 4u;
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
        workgroupBarrier();
    }
    let lane = local % 32u;
    let staged = subgroup * 16u * STAGE_ROW;
    let first = row + top;
    let vector = (col + left) / 4u;
    let s00 = c00;
    coopStoreT(s00, &stage[staged], STAGE_ROW);
    let s01 = c01;
    coopStoreT(s01, &stage[staged + 4u], STAGE_ROW);
    let s02 = c02;
    coopStoreT(s02, &stage[staged + 8u], STAGE_ROW);
    let s03 = c03;
    coopStoreT(s03, &stage[staged + 12u], STAGE_ROW);
    flush(first, vector, staged, lane);
    let s10 = c10;
    coopStoreT(s10, &stage[staged], STAGE_ROW);
    let s11 = c11;
    coopStoreT(s11, &stage[staged + 4u], STAGE_ROW);
    let s12 = c12;
    coopStoreT(s12, &stage[staged + 8u], STAGE_ROW);
    let s13 = c13;
    coopStoreT(s13, &stage[staged + 12u], STAGE_ROW);
    flush(first + 16u, vector, staged, lane);
    let s20 = c20;
    coopStoreT(s20, &stage[staged], STAGE_ROW);
    let s21 = c21;
    coopStoreT(s21, &stage[staged + 4u], STAGE_ROW);
    let s22 = c22;
    coopStoreT(s22, &stage[staged + 8u], STAGE_ROW);
    let s23 = c23;
    coopStoreT(s23, &stage[staged + 12u], STAGE_ROW);
    flush(first + 32u, vector, staged, lane);
    let s30 = c30;
    coopStoreT(s30, &stage[staged], STAGE_ROW);
    let s31 = c31;
    coopStoreT(s31, &stage[staged + 4u], STAGE_ROW);
    let s32 = c32;
    coopStoreT(s32, &stage[staged + 8u], STAGE_ROW);
    let s33 = c33;
    coopStoreT(s33, &stage[staged + 12u], STAGE_ROW);
    flush(first + 48u, vector, staged, lane);
}
