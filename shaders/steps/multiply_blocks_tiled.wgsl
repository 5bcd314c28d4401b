// Y = s · X · Wᵀ for many rows of X: a workgroup computes a tile of 32 rows and 32 columns, an invocation four by four of
// it, or of 64 and 64, and eight by four. Slabs of 16 columns of X and W lie in the workgroup's memory; the next ones are loaded while these are multiplied.
import package::steps::blocks::{Words, eight_of, group_of, words_of};
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

@if(wide)
const TILE = 64u;
@if(!wide)
const TILE = 32u;
// Invocations side by side, each of which computes four columns of Y, and below each other.
const ACROSS = TILE / 4u;
const DOWN = 8u;
const GROUP = ACROSS * DOWN;
const HAS_EIGHT_ROWS = TILE == 64u;
// Vectors from a row of a slab to the next; an odd number keeps rows in different banks.
const SLAB = 5u;

var<workgroup> x_slab: array<vec4f, TILE * SLAB>;
var<workgroup> w_slab: array<vec4f, TILE * SLAB>;

// What an invocation loads for slabs: eight columns of a row of X and of a row of W.
struct Share {
    low: vec4f,
    high: vec4f,
    weights: Words,
    scale: vec2f,
}

// The eights at these places, or zeros.
fn load_share(of_x: u32, of_w: u32, is_inside: bool) -> Share {
    var share = Share();
    if is_inside {
        share.low = x[2u * of_x];
        share.high = x[2u * of_x + 1u];
        share.weights = words_of(of_w);
        share.scale = group_of(of_w);
    }
    return share;
}

@compute @workgroup_size(GROUP)
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
    // Where there are fewer rows, the last one stands for those that are missing.
    let line = local / 2u;
    let half = local % 2u;
    let x_row = min(first_token + line, params.tokens - 1u) * eights;
    let w_row = min(first_row + line, params.rows - 1u) * eights;
    let to = line * SLAB + 2u * half;
    // Rows of X and of W that an invocation computes with: every DOWN-th and ACROSS-th one from these on. A vector of sums
    // is of a row of X; nothing here is indexed at run time, or compilers would keep it in memory.
    let down = local / ACROSS * SLAB;
    let right = local % ACROSS * SLAB;
    var sums_0 = vec4f();
    var sums_1 = vec4f();
    var sums_2 = vec4f();
    var sums_3 = vec4f();
    var sums_4 = vec4f();
    var sums_5 = vec4f();
    var sums_6 = vec4f();
    var sums_7 = vec4f();
    var share = load_share(x_row + half, w_row + half, half < eights);
    for (var slab = 0u; slab < eights; slab += 2u) {
        let weights = eight_of(share.weights);
        x_slab[to] = share.low;
        x_slab[to + 1u] = share.high;
        w_slab[to] = weights.low * share.scale.x + share.scale.y;
        w_slab[to + 1u] = weights.high * share.scale.x + share.scale.y;
        workgroupBarrier();
        let next = slab + 2u + half;
        share = load_share(x_row + next, w_row + next, next < eights);
        for (var i = 0u; i < 4u; i++) {
            let w = mat4x4f(
                w_slab[right + i],
                w_slab[right + ACROSS * SLAB + i],
                w_slab[right + 2u * ACROSS * SLAB + i],
                w_slab[right + 3u * ACROSS * SLAB + i],
            );
            sums_0 += x_slab[down + i] * w;
            sums_1 += x_slab[down + DOWN * SLAB + i] * w;
            sums_2 += x_slab[down + 2u * DOWN * SLAB + i] * w;
            sums_3 += x_slab[down + 3u * DOWN * SLAB + i] * w;
            if HAS_EIGHT_ROWS {
                sums_4 += x_slab[down + 4u * DOWN * SLAB + i] * w;
                sums_5 += x_slab[down + 5u * DOWN * SLAB + i] * w;
                sums_6 += x_slab[down + 6u * DOWN * SLAB + i] * w;
                sums_7 += x_slab[down + 7u * DOWN * SLAB + i] * w;
            }
        }
        workgroupBarrier();
    }
    let token = first_token + local / ACROSS;
    let row = first_row + local % ACROSS;
    store_row(token, row, sums_0);
    store_row(token + DOWN, row, sums_1);
    store_row(token + 2u * DOWN, row, sums_2);
    store_row(token + 3u * DOWN, row, sums_3);
    if HAS_EIGHT_ROWS {
        store_row(token + 4u * DOWN, row, sums_4);
        store_row(token + 5u * DOWN, row, sums_5);
        store_row(token + 6u * DOWN, row, sums_6);
        store_row(token + 7u * DOWN, row, sums_7);
    }
}

// Stores an invocation's elements of a row of Y.
fn store_row(token: u32, row: u32, sums: vec4f) {
    store(token, row, sums.x);
    store(token, row + ACROSS, sums.y);
    store(token, row + 2u * ACROSS, sums.z);
    store(token, row + 3u * ACROSS, sums.w);
}

fn store(token: u32, row: u32, sum: f32) {
    if token < params.tokens && row < params.rows {
        let at = token * params.stride + params.first + row;
        y[at] = params.scale * sum + select(0.0, y[at], params.adds == 1u);
    }
}
