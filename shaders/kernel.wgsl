// The kernel that is being composed, as the libraries know it: they import from here what a kernel has to declare
// to use them. The composer resolves `package::kernel` to the kernel itself, so nothing of this file becomes part of
// one; it is what lets tools read each library by itself.
import package::lib::convolve2d::Pixel;
import package::lib::matmul::{Cell, Layer};
import package::lib::ranking::Candidate;

// The parameters that libraries read. A kernel has those of the libraries that it uses, among others.
struct Params {
    // Elementwise operations: their parameters in the op table's order.
    a: f32,
    b: f32,
    // Reductions.
    len: u32,
    groups: u32,
    // Rows.
    cols: u32,
    chunk_len: u32,
    lowest: f32,
    as_log: u32,
    centred: u32,
    // Matrix products.
    m: u32,
    k: u32,
    n: u32,
    layer: Layer,
    // Convolutions.
    input_rows: u32,
    input_cols: u32,
    output_rows: u32,
    output_cols: u32,
    tiles_across: u32,
    // Weights in groups.
    group_len: u32,
    least: f32,
    // Caches of keys and values.
    capacity: u32,
    // Heads on their way to attention.
    heads: u32,
    kv_heads: u32,
    head_len: u32,
    pairs: u32,
    neighbours: u32,
    gains: u32,
    epsilon: f32,
    position: u32,
    query_angles: u32,
}
@group(0) @binding(0) var<uniform> params: Params;

// Invocations of a workgroup. Where it may be any power of two, it is an `override` that the host sets to fewer on
// software adapters (`src/gpu/context.rs`).
override GROUP = 256u;

// Matrix products.
@group(0) @binding(1) var<storage, read> a: array<Cell>;
@group(0) @binding(2) var<storage, read> b: array<Cell>;
@group(0) @binding(3) var<storage, read_write> c: array<Cell>;
// Columns between the values of a vector where matrices are read by single values.
const SPAN = 1u;
// Invocations below each other in a tile, and its rows.
const DOWN = 8u;
const ROWS = 32u;
var<workgroup> a_slabs: array<vec4f, 1024>;
// Rows of slabs, and slabs, in vectors of four.
const A_ROW = 10u;
const B_ROW = 34u;
const A_SLAB = 1280u;
const B_SLAB = 1088u;

// Reductions: the four terms that vector i stands for.
fn term(i: u32) -> vec4f {
    return vec4f();
}

// Rankings: the i-th candidate.
fn candidate_at(i: u32) -> Candidate {
    return Candidate();
}

// Rows: the first input at i, and where results go.
@group(0) @binding(4) var<storage, read> gain: array<f32>;
@group(0) @binding(5) var<storage, read> bias: array<f32>;
@group(0) @binding(6) var<storage, read_write> y: array<f32>;

fn before0(i: u32) -> f32 {
    return 0.0;
}

// Convolutions: the images, and the weights of the q-th four taps of a kernel's row.
@group(0) @binding(7) var<storage, read> input: array<Pixel>;
@group(0) @binding(8) var<storage, read_write> result: array<Pixel>;

fn weights_at(row: u32, q: u32) -> vec4f {
    return vec4f();
}

// Weights in groups, and their groups' scales and offsets.
@group(0) @binding(9) var<storage, read> words: array<u32>;
@group(0) @binding(10) var<storage, read> scales: array<u32>;

// Caches of keys and values.
@if(!f16 && !q8_0)
@group(0) @binding(11) var<storage, read_write> cached: array<vec4f>;
@if(f16 || q8_0)
@group(0) @binding(11) var<storage, read_write> cached: array<vec4u>;

// Heads on their way to attention.
@group(0) @binding(12) var<storage, read> query_gain: array<f32>;
@group(0) @binding(13) var<storage, read> key_gain: array<f32>;
@group(0) @binding(14) var<storage, read> angles: array<vec2f>;
@group(0) @binding(15) var<storage, read> x: array<f32>;
