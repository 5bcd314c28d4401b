// Y = s · X · Wᵀ for many rows of X: a workgroup computes a tile of 32 rows and 32 columns, an invocation four by four of
// it. Slabs of 32 columns of X and W lie in the workgroup's memory.
import package::composed::blocks::{eight, group_of};
import package::lib::grid::workgroup_index;

struct Params {
    // As in multiply_blocks.wgsl.
    tokens: u32,
    k: u32,
    rows: u32,
    first: u32,
    stride: u32,
    adds: u32,
    group_len: u32,
    least: f32,
    scale: f32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<vec4f>;
@group(0) @binding(2) var<storage, read> words: array<u32>;
@group(0) @binding(3) var<storage, read> scales: array<vec2f>;
@group(0) @binding(4) var<storage, read_write> y: array<f32>;

const TILE = 32u;
// Vectors from a row of a slab to the next; an odd number keeps rows in different banks.
const SLAB = 9u;

var<workgroup> x_slab: array<vec4f, 288>;
var<workgroup> w_slab: array<vec4f, 288>;

@compute @workgroup_size(64)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) local: u32,
) {
    let index = workgroup_index(group, groups);
    let across = (params.rows + TILE - 1u) / TILE;
    let first_token = index / across * TILE;
    let first_row = index % across * TILE;
    let eights = params.k / 8u;
    // Rows of X and of W that an invocation computes with: every eighth one from these on. A vector of sums is of a row of
    // X; nothing here is indexed at run time, or compilers would keep it in memory.
    let down = local / 8u;
    let right = local % 8u;
    var sums_0 = vec4f();
    var sums_1 = vec4f();
    var sums_2 = vec4f();
    var sums_3 = vec4f();
    for (var slab = 0u; slab < eights; slab += 4u) {
        for (var i = local; i < TILE * 4u; i += 64u) {
            let line = i / 4u;
            let at = slab + i % 4u;
            let to = line * SLAB + 2u * (i % 4u);
            var low = vec4f();
            var high = vec4f();
            if first_token + line < params.tokens && at < eights {
                low = x[2u * ((first_token + line) * eights + at)];
                high = x[2u * ((first_token + line) * eights + at) + 1u];
            }
            x_slab[to] = low;
            x_slab[to + 1u] = high;
            low = vec4f();
            high = vec4f();
            if first_row + line < params.rows && at < eights {
                let weights = eight((first_row + line) * eights + at);
                let scale = group_of((first_row + line) * eights + at);
                low = weights.low * scale.x + scale.y;
                high = weights.high * scale.x + scale.y;
            }
            w_slab[to] = low;
            w_slab[to + 1u] = high;
        }
        workgroupBarrier();
        for (var i = 0u; i < 8u; i++) {
            let w = mat4x4f(
                w_slab[right * SLAB + i],
                w_slab[(right + 8u) * SLAB + i],
                w_slab[(right + 16u) * SLAB + i],
                w_slab[(right + 24u) * SLAB + i],
            );
            sums_0 += x_slab[down * SLAB + i] * w;
            sums_1 += x_slab[(down + 8u) * SLAB + i] * w;
            sums_2 += x_slab[(down + 16u) * SLAB + i] * w;
            sums_3 += x_slab[(down + 24u) * SLAB + i] * w;
        }
        workgroupBarrier();
    }
    store_row(first_token + down, first_row + right, sums_0);
    store_row(first_token + down + 8u, first_row + right, sums_1);
    store_row(first_token + down + 16u, first_row + right, sums_2);
    store_row(first_token + down + 24u, first_row + right, sums_3);
}

// Stores every eighth element of a row of Y.
fn store_row(token: u32, row: u32, sums: vec4f) {
    store(token, row, sums.x);
    store(token, row + 8u, sums.y);
    store(token, row + 16u, sums.z);
    store(token, row + 24u, sums.w);
}

fn store(token: u32, row: u32, sum: f32) {
    if token < params.tokens && row < params.rows {
        let at = token * params.stride + params.first + row;
        y[at] = params.scale * sum + select(0.0, y[at], params.adds == 1u);
    }
}
