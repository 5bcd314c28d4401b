// Y = s · X · Wᵀ for many rows of X, rounded to f16, by matrices of subgroups: a workgroup of eight subgroups of 32
// computes a tile of 64 rows and 64 columns, a subgroup 32 by 16 of it in two matrices of 16 by 16. Slabs of 64 columns
// of X and W lie in the workgroup's memory; the next ones are loaded while these are multiplied. No index leaves its
// array: X and W have whole slabs, W and Y whole tiles, and missing rows of X are those of the last one.
@if(!floats) import package::steps::blocks::{group_of, sixteen_of};
import package::lib::grid::workgroup_index;
import package::lib::matrices::{Product, keep_a, keep_b, load_left, load_right_columns, multiply_add};

enable f16;
enable wgpu_cooperative_matrix;

struct Params {
    // As in multiply_blocks.wgsl. The columns of X and the rows of W are multiples of 64, `first` and `stride` of four. Y
    // has room for whole tiles.
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
@if(floats)
@group(0) @binding(2) var<storage, read> words: array<vec4f>;
@if(bytes)
@group(0) @binding(2) var<storage, read> words: array<vec4u>;
@if(nibbles)
@group(0) @binding(2) var<storage, read> words: array<vec2u>;
@group(0) @binding(3) var<storage, read> scales: array<vec2f>;
@group(0) @binding(4) var<storage, read_write> y: array<f32>;

const TILE = 64u;
// Vectors from a row of a slab to the next: two more than there are values for, so that rows begin in different banks.
const A_ROW = 18u;
const B_ROW = 18u;
const A_SLAB = TILE * A_ROW;
const B_SLAB = TILE * B_ROW;
// Sixteen columns of a row of a slab.
const SIXTEENS = 4u;
// X is divided by it, so that numbers up to four million have an f16.
const RANGE = 64.0;

// Sixteen weights as they lie in memory.
@if(floats)
alias Words = mat4x4f;
@if(bytes)
alias Words = vec4u;
@if(nibbles)
alias Words = vec2u;

@if(floats)
fn words_of(i: u32) -> Words {
    return mat4x4f(words[4u * i], words[4u * i + 1u], words[4u * i + 2u], words[4u * i + 3u]);
}

@if(!floats)
fn words_of(i: u32) -> Words {
    return words[i];
}

fn x_of(i: u32) -> mat4x4f {
    return mat4x4f(x[4u * i], x[4u * i + 1u], x[4u * i + 2u], x[4u * i + 3u]);
}

@if(floats)
fn weights_of(loaded: Words, scale: vec2f) -> mat4x4f {
    return loaded;
}

@if(!floats)
fn weights_of(loaded: Words, scale: vec2f) -> mat4x4f {
    let offset = vec4f(scale.y);
    return scale.x * sixteen_of(loaded) + mat4x4f(offset, offset, offset, offset);
}

@if(floats)
fn scale_of(i: u32) -> vec2f {
    return vec2f();
}

// The scale and the offset of the i-th sixteen weights.
@if(!floats)
fn scale_of(i: u32) -> vec2f {
    return group_of(2u * i);
}

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) local: u32,
) {
    // Workgroups that run at the same time share rows of W.
    let index = workgroup_index(group, groups);
    let down = (params.tokens + TILE - 1u) / TILE;
    let first_token = index % down * TILE;
    let first_row = index / down * TILE;
    if first_row >= params.rows {
        return;
    }
    // An invocation loads sixteen columns of a row of X and of a row of W.
    let line = local / SIXTEENS;
    let own = local % SIXTEENS;
    let sixteens = params.k / 16u;
    let x_row = min(first_token + line, params.tokens - 1u) * sixteens + own;
    let w_row = (first_row + line) * sixteens + own;
    let to = line * A_ROW + 4u * own;
    let subgroup = local / 32u;
    let top = subgroup / 4u * 32u;
    let left = subgroup % 4u * 16u;
    var sums_0 = Product();
    var sums_1 = Product();
    var x_share = x_of(x_row);
    var w_share = words_of(w_row);
    var scale = scale_of(w_row);
    for (var slab = SIXTEENS; slab <= sixteens; slab += SIXTEENS) {
        let weights = weights_of(w_share, scale);
        keep_a(to, vec4<f16>(x_share[0] / RANGE));
        keep_a(to + 1u, vec4<f16>(x_share[1] / RANGE));
        keep_a(to + 2u, vec4<f16>(x_share[2] / RANGE));
        keep_a(to + 3u, vec4<f16>(x_share[3] / RANGE));
        keep_b(to, vec4<f16>(weights[0]));
        keep_b(to + 1u, vec4<f16>(weights[1]));
        keep_b(to + 2u, vec4<f16>(weights[2]));
        keep_b(to + 3u, vec4<f16>(weights[3]));
        workgroupBarrier();
        // The last slab once more where there is no next one.
        let next = min(slab, sixteens - SIXTEENS);
        x_share = x_of(x_row + next);
        w_share = words_of(w_row + next);
        scale = scale_of(w_row + next);
        for (var i = 0u; i < 4u * SIXTEENS; i += 4u) {
            let w = load_right_columns(left * B_ROW + i);
            sums_0 = multiply_add(load_left(top * A_ROW + i), w, sums_0);
            sums_1 = multiply_add(load_left((top + 16u) * A_ROW + i), w, sums_1);
        }
        workgroupBarrier();
    }
    let stride = params.stride;
    let at = (first_token + top) * stride + params.first + first_row + left;
    store(at, stride, sums_0);
    store(at + 16u * stride, stride, sums_1);
}

// Stores a matrix of sums in Y, whose rows are `stride` apart.
fn store(at: u32, stride: u32, sums: Product) {
    var result = sums * (RANGE * params.scale);
    if params.adds == 1u {
        result = result + coopLoadT<Product>(&y[at], stride);
    }
    coopStoreT(result, &y[at], stride);
}
