// Matrices of 16 × 16 that a subgroup's invocations hold together, and the slabs of A and B that
// `matmul_halves.wgsl` reads them from. Places are those of vectors of four values.

// In naga's words. Slabs of single values took a quarter longer here.
alias naga_a = coop_mat16x16<f16, A>;
alias naga_b = coop_mat16x16<f16, B>;
alias naga_sums = coop_mat16x16<f32, C>;
var<workgroup> naga_a_slab: array<vec4<f16>, 1280>;
var<workgroup> naga_b_slab: array<vec4<f16>, 1088>;

fn naga_keep_a(at: u32, x: vec4<f16>) {
    naga_a_slab[at] = x;
}

fn naga_keep_b(at: u32, x: vec4<f16>) {
    naga_b_slab[at] = x;
}

fn naga_left(at: u32) -> naga_a {
    return coopLoadT<naga_a>(&naga_a_slab[at], A_ROW);
}

fn naga_right(at: u32) -> naga_b {
    return coopLoadT<naga_b>(&naga_b_slab[at], B_ROW);
}

fn naga_multiply_add(a: naga_a, b: naga_b, sums: naga_sums) -> naga_sums {
    return coopMultiplyAdd(a, b, sums);
}

fn naga_store(at: u32, sums: naga_sums, across: u32) {
    coopStoreT(sums, &c[at], across);
}

// In Chromium's, which reads them from single values only. `build.rs` writes what these functions do
// where they are called.
alias chromium_a = subgroup_matrix_left<f16, 16, 16>;
alias chromium_b = subgroup_matrix_right<f16, 16, 16>;
alias chromium_sums = subgroup_matrix_result<f32, 16, 16>;
var<workgroup> chromium_a_slab: array<f16, 5120>;
var<workgroup> chromium_b_slab: array<f16, 4352>;

fn chromium_keep_a(at: u32, values: vec4<f16>) {
    chromium_a_slab[4u * at] = values.x;
    chromium_a_slab[4u * at + 1u] = values.y;
    chromium_a_slab[4u * at + 2u] = values.z;
    chromium_a_slab[4u * at + 3u] = values.w;
}

fn chromium_keep_b(at: u32, values: vec4<f16>) {
    chromium_b_slab[4u * at] = values.x;
    chromium_b_slab[4u * at + 1u] = values.y;
    chromium_b_slab[4u * at + 2u] = values.z;
    chromium_b_slab[4u * at + 3u] = values.w;
}

fn chromium_left(at: u32) -> chromium_a {
    return subgroupMatrixLoad<chromium_a, row_major>(&chromium_a_slab, 4u * at, 4u * A_ROW);
}

fn chromium_right(at: u32) -> chromium_b {
    return subgroupMatrixLoad<chromium_b, row_major>(&chromium_b_slab, 4u * at, 4u * B_ROW);
}

fn chromium_multiply_add(a: chromium_a, b: chromium_b, sums: chromium_sums) -> chromium_sums {
    return subgroupMatrixMultiplyAccumulate(a, b, sums);
}

fn chromium_store(at: u32, sums: chromium_sums, across: u32) {
    subgroupMatrixStore<row_major>(&c, at, sums, across);
}
