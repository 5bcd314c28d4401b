// Matrices of 16 × 16 that a subgroup's invocations hold together, and the slabs of A and B that a kernel reads them
// from. Places are those of vectors of four values. naga and Chromium have different words for them: the features `naga`
// and `chromium` choose.
import package::kernel::{A_ROW, A_SLAB, B_ROW, B_SLAB, c};

// Slabs of single values took a quarter longer in naga's words.
@if(naga) alias Left = coop_mat16x16<f16, A>;
@if(naga) alias Right = coop_mat16x16<f16, B>;
@if(naga) alias Product = coop_mat16x16<f32, C>;
@if(naga) var<workgroup> a_slab: array<vec4<f16>, A_SLAB>;
@if(naga) var<workgroup> b_slab: array<vec4<f16>, B_SLAB>;

@if(naga)
fn keep_a(at: u32, x: vec4<f16>) {
    a_slab[at] = x;
}

@if(naga)
fn keep_b(at: u32, x: vec4<f16>) {
    b_slab[at] = x;
}

@if(naga)
fn load_left(at: u32) -> Left {
    return coopLoadT<Left>(&a_slab[at], A_ROW);
}

@if(naga)
fn load_right(at: u32) -> Right {
    return coopLoadT<Right>(&b_slab[at], B_ROW);
}

// B has a row of a slab as a column.
@if(naga)
fn load_right_columns(at: u32) -> Right {
    return coopLoad<Right>(&b_slab[at], B_ROW);
}

@if(naga)
fn multiply_add(a: Left, b: Right, sums: Product) -> Product {
    return coopMultiplyAdd(a, b, sums);
}

@if(naga)
fn store(at: u32, sums: Product, across: u32) {
    coopStoreT(sums, &c[at], across);
}

// Chromium reads them from single values only. The composer writes what these functions do where they are called.
@if(chromium) alias Left = subgroup_matrix_left<f16, 16, 16>;
@if(chromium) alias Right = subgroup_matrix_right<f16, 16, 16>;
@if(chromium) alias Product = subgroup_matrix_result<f32, 16, 16>;
@if(chromium) var<workgroup> a_slab: array<f16, 4 * A_SLAB>;
@if(chromium) var<workgroup> b_slab: array<f16, 4 * B_SLAB>;

@if(chromium)
fn keep_a(at: u32, values: vec4<f16>) {
    a_slab[4u * at] = values.x;
    a_slab[4u * at + 1u] = values.y;
    a_slab[4u * at + 2u] = values.z;
    a_slab[4u * at + 3u] = values.w;
}

@if(chromium)
fn keep_b(at: u32, values: vec4<f16>) {
    b_slab[4u * at] = values.x;
    b_slab[4u * at + 1u] = values.y;
    b_slab[4u * at + 2u] = values.z;
    b_slab[4u * at + 3u] = values.w;
}

@if(chromium)
fn load_left(at: u32) -> Left {
    return subgroupMatrixLoad<Left, row_major>(&a_slab, 4u * at, 4u * A_ROW);
}

@if(chromium)
fn load_right(at: u32) -> Right {
    return subgroupMatrixLoad<Right, row_major>(&b_slab, 4u * at, 4u * B_ROW);
}

@if(chromium)
fn multiply_add(a: Left, b: Right, sums: Product) -> Product {
    return subgroupMatrixMultiplyAccumulate(a, b, sums);
}

@if(chromium)
fn store(at: u32, sums: Product, across: u32) {
    subgroupMatrixStore<row_major>(&c, at, sums, across);
}
