// C = A · W, where W lies in groups of 32 columns (the last may be smaller), and these in blocks of
// 32 rows: a row of scales where there are some, then rows of words with PER_WORD numbers of a
// column each. A workgroup computes 4 rows of C by a group of columns; its eight layers of
// invocations take every eighth block, PART of them at a time to bound the rounding error, and are
// added up at the end.
@if(f16) import package::lib::weights_f16::{PER_WORD, SCALES, number};
@if(q4_0) import package::lib::weights_q4_0::{PER_WORD, SCALES, number};
@if(q8_0) import package::lib::weights_q8_0::{PER_WORD, SCALES, number};
import package::lib::grid::workgroup_index;

struct Params {
    m: u32,
    k: u32,
    n: u32,
    blocks: u32,
    tiles_across: u32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> a: array<f32>;
@group(0) @binding(2) var<storage, read> words: array<u32>;
@group(0) @binding(3) var<storage, read_write> c: array<f32>;

const WORDS = 32u / PER_WORD;
const LAYERS = 8u;
const PART = 32u;

var<workgroup> layers: array<array<vec4f, 32>, 8>;

// The scale of a block's numbers. Sums multiply each number by it, which is exact, and not their results, which may be
// too large before.
fn scale_of(first: u32) -> f32 {
    if SCALES == 1u {
        return bitcast<f32>(words[first]);
    }
    return 1.0;
}

// Products of four rows of A, which start at `rows`, and a column of a block, whose words start
// at `first` and lie `width` apart.
fn block_sum(block: u32, first: u32, width: u32, rows: vec4u) -> vec4f {
    var sum = vec4f();
    let scale = scale_of(first);
    for (var w = 0u; w < WORDS; w++) {
        let word = words[first + (SCALES + w) * width];
        for (var i = 0u; i < PER_WORD; i++) {
            let p = block * 32u + w * PER_WORD + i;
            // Zeros fill the last block, but A has no values for them.
            if p < params.k {
                let q = rows + p;
                sum += (scale * number(word, i)) * vec4f(a[q.x], a[q.y], a[q.z], a[q.w]);
            }
        }
    }
    return sum;
}

// The product of the only row of A and a column of a block that ends within the row.
fn row_sum(block: u32, first: u32, width: u32) -> f32 {
    var sum = 0.0;
    let scale = scale_of(first);
    for (var w = 0u; w < WORDS; w++) {
        let word = words[first + (SCALES + w) * width];
        for (var i = 0u; i < PER_WORD; i++) {
            sum += (scale * number(word, i)) * a[block * 32u + w * PER_WORD + i];
        }
    }
    return sum;
}

fn store(row: u32, col: u32, value: f32) {
    if row < params.m {
        c[row * params.n + col] = value;
    }
}

@compute @workgroup_size(32, 8)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_id) local: vec3u,
) {
    let tile = workgroup_index(group, groups);
    let row = (tile / params.tiles_across) * 4u;
    let first_col = (tile % params.tiles_across) * 32u;
    let col = first_col + local.x;
    // Past the edge, the last row stands in; its sums are not stored.
    let rows = min(vec4u(row) + vec4u(0u, 1u, 2u, 3u), vec4u(params.m - 1u)) * params.k;
    var sum = vec4f();
    if col < params.n {
        let width = min(32u, params.n - first_col);
        let first = first_col * params.blocks * (SCALES + WORDS) + local.x;
        for (var start = local.y; start < params.blocks; start += LAYERS * PART) {
            var part = vec4f();
            let end = min(start + LAYERS * PART, params.blocks);
            for (var block = start; block < end; block += LAYERS) {
                let of_block = first + block * (SCALES + WORDS) * width;
                if params.m == 1u && block * 32u + 32u <= params.k {
                    part.x += row_sum(block, of_block, width);
                } else {
                    part += block_sum(block, of_block, width, rows);
                }
            }
            sum += part;
        }
    }
    layers[local.y][local.x] = sum;
    workgroupBarrier();
    if local.y == 0u && col < params.n {
        var all = sum;
        for (var layer = 1u; layer < LAYERS; layer++) {
            all += layers[layer][local.x];
        }
        store(row, col, all.x);
        store(row + 1u, col, all.y);
        store(row + 2u, col, all.z);
        store(row + 3u, col, all.w);
    }
}
