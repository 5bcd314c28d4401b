// C = A · B for software adapters, to which workgroup memory is no closer and each barrier
// costs a switch of contexts: an invocation computes 4 × 4 of C straight from A and B, of which
// PART depths at a time add up, to bound the rounding error.
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

const PART = 256u;

fn store(row: u32, col: u32, values: vec4f) {
    if row >= params.m {
        return;
    }
    let start = row * params.n + col;
    c[start] = after(start, values.x);
    if col + 1u < params.n { c[start + 1u] = after(start + 1u, values.y); }
    if col + 2u < params.n { c[start + 2u] = after(start + 2u, values.z); }
    if col + 3u < params.n { c[start + 3u] = after(start + 3u, values.w); }
}

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) local: u32,
) {
    let tile = workgroup_index(group, groups) * 256u + local;
    let row = (tile / params.tiles_across) * 4u;
    let col = (tile % params.tiles_across) * 4u;
    if row >= params.m {
        return;
    }
    // Past the edge, the last row or column stands in; its sums are not stored.
    let offsets = vec4u(0u, 1u, 2u, 3u);
    let cols = min(vec4u(col) + offsets, vec4u(params.n - 1u));
    let rows = min(vec4u(row) + offsets, vec4u(params.m - 1u)) * params.k;
    var total = mat4x4f();
    for (var first = 0u; first < params.k; first += PART) {
        var sum0 = vec4f();
        var sum1 = vec4f();
        var sum2 = vec4f();
        var sum3 = vec4f();
        for (var p = first; p < min(first + PART, params.k); p++) {
            let q = cols + p * params.n;
            let bv = vec4f(b[q.x], b[q.y], b[q.z], b[q.w]);
            sum0 += a[rows.x + p] * bv;
            sum1 += a[rows.y + p] * bv;
            sum2 += a[rows.z + p] * bv;
            sum3 += a[rows.w + p] * bv;
        }
        total += mat4x4f(sum0, sum1, sum2, sum3);
    }
    store(row, col, total[0]);
    store(row + 1u, col, total[1]);
    store(row + 2u, col, total[2]);
    store(row + 3u, col, total[3]);
}
