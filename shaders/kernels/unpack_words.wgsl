// A row-major matrix of the weights that words hold, which lie as `matmul_words.wgsl` says. An
// invocation has a word: neighbours read words side by side, and write values side by side.
@if(f16) import package::lib::weights_f16::{PER_WORD, SCALES, number};
@if(q4_0) import package::lib::weights_q4_0::{PER_WORD, SCALES, number};
@if(q8_0) import package::lib::weights_q8_0::{PER_WORD, SCALES, number};
import package::lib::grid::workgroup_index;

struct Params {
    k: u32,
    n: u32,
    blocks: u32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> words: array<u32>;
@group(0) @binding(2) var<storage, read_write> b: array<f32>;

const WORDS = 32u / PER_WORD;

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) local: u32,
) {
    let index = workgroup_index(group, groups) * 256u + local;
    let col = index % params.n;
    let block = index / params.n / WORDS;
    let word_row = index / params.n % WORDS;
    if block >= params.blocks {
        return;
    }
    let first_col = col / 32u * 32u;
    let width = min(32u, params.n - first_col);
    let before = first_col * params.blocks * (SCALES + WORDS) + col - first_col;
    let scales = before + block * (SCALES + WORDS) * width;
    let word = words[scales + (SCALES + word_row) * width];
    let scale = select(1.0, bitcast<f32>(words[scales]), SCALES == 1u);
    for (var i = 0u; i < PER_WORD; i++) {
        let row = block * 32u + word_row * PER_WORD + i;
        // Zeros fill the last block, but the matrix has no rows for them.
        if row < params.k {
            b[row * params.n + col] = number(word, i) * scale;
        }
    }
}
