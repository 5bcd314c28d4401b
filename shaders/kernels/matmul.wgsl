// C = A · B: a workgroup computes a 64 × 64 tile of C, an invocation 4 × 4 of it, from slices
// of A and B, 16 deep, in workgroup memory. Vectors are never indexed at run time: compilers
// would move them out of registers.
struct Params {
    m: u32,
    k: u32,
    n: u32,
    tiles_across: u32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> a: array<f32>;
@group(0) @binding(2) var<storage, read> b: array<f32>;
@group(0) @binding(3) var<storage, read_write> c: array<f32>;

// Slices as [depth][row of A or column of B], four rows or columns a vector.
var<workgroup> a_slice: array<array<vec4f, 16>, 16>;
var<workgroup> b_slice: array<array<vec4f, 16>, 16>;

fn load_a(row: u32, depth: u32) -> f32 {
    if row < params.m && depth < params.k {
        return a[row * params.k + depth];
    }
    return 0.0;
}

fn load_b(depth: u32, col: u32) -> f32 {
    if depth < params.k && col < params.n {
        return b[depth * params.n + col];
    }
    return 0.0;
}

fn store(row: u32, col: u32, values: vec4f) {
    if row >= params.m {
        return;
    }
    let start = row * params.n + col;
    if col < params.n { c[start] = after(start, values.x); }
    if col + 1u < params.n { c[start + 1u] = after(start + 1u, values.y); }
    if col + 2u < params.n { c[start + 2u] = after(start + 2u, values.z); }
    if col + 3u < params.n { c[start + 3u] = after(start + 3u, values.w); }
}

@compute @workgroup_size(16, 16)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_id) local: vec3u,
) {
    let tile = workgroup_index(group, groups);
    let row = (tile / params.tiles_across) * 64u;
    let col = (tile % params.tiles_across) * 64u;
    var sum0 = vec4f();
    var sum1 = vec4f();
    var sum2 = vec4f();
    var sum3 = vec4f();
    for (var depth = 0u; depth < params.k; depth += 16u) {
        let r = row + 4u * local.y;
        let d = depth + local.x;
        a_slice[local.x][local.y] =
            vec4f(load_a(r, d), load_a(r + 1u, d), load_a(r + 2u, d), load_a(r + 3u, d));
        let p = depth + local.y;
        let q = col + 4u * local.x;
        b_slice[local.y][local.x] =
            vec4f(load_b(p, q), load_b(p, q + 1u), load_b(p, q + 2u), load_b(p, q + 3u));
        workgroupBarrier();
        for (var i = 0u; i < 16u; i++) {
            let av = a_slice[i][local.y];
            let bv = b_slice[i][local.x];
            sum0 += av.x * bv;
            sum1 += av.y * bv;
            sum2 += av.z * bv;
            sum3 += av.w * bv;
        }
        workgroupBarrier();
    }
    let r = row + 4u * local.y;
    let q = col + 4u * local.x;
    store(r, q, sum0);
    store(r + 1u, q, sum1);
    store(r + 2u, q, sum2);
    store(r + 3u, q, sum3);
}
