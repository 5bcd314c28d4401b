// How the matmul kernels read and write matrices: by vectors with the feature `vectors`, where k and n are multiples
// of 4, else by scalars. `quarter` and `vector` count depths and columns by four. Rows and columns past
// the edge read the last one, whose sums are not stored; depths past the edge read zero, not
// another value that might be infinite.
//
// With the features `im2col` and `pointwise` B is the matrix of the windows that a convolution layer reads, which is
// nowhere in memory: by scalars, and of windows of one value by vectors.
import package::kernel::{DOWN, GROUP, ROWS, SPAN, a, a_slabs, b, c, params};
import package::lib::hooks::after;
import package::lib::reduce::inside;

// What matrices consist of.
@if(vectors) alias Cell = vec4f;
@else alias Cell = f32;

@if(vectors)
fn load_a(row: u32, quarter: u32) -> vec4f {
    let across = params.k / 4u;
    let at = min(row, params.m - 1u) * across + min(quarter, across - 1u);
    return select(vec4f(), a[at], quarter < across);
}

// What is known of four columns before their values are read.
@if(vectors) alias Columns = u32;
@if(!vectors && !im2col) alias Columns = vec4u;

@if(vectors && !pointwise)
fn columns_of(vector: u32) -> u32 {
    return vector;
}

@if(!vectors && !im2col)
fn columns_of(vector: u32) -> vec4u {
    return min(four_columns(vector), vec4u(params.n - 1u));
}

@if(vectors && !pointwise)
fn load_b(depth: u32, vector: u32) -> vec4f {
    let across = params.n / 4u;
    let at = min(depth, params.k - 1u) * across + min(vector, across - 1u);
    return select(vec4f(), b[at], depth < params.k);
}

// Where depth and vector are known to lie within B; of single values only the vector is.
@if(vectors && !pointwise)
fn load_b_within(depth: u32, vector: u32) -> vec4f {
    return b[depth * (params.n / 4u) + vector];
}

@if(!vectors && !im2col)
fn load_b_within(depth: u32, cols: vec4u) -> vec4f {
    return load_b(depth, cols);
}

@if(vectors && !pointwise)
fn store(row: u32, vector: u32, values: vec4f) {
    let across = params.n / 4u;
    if row < params.m && vector < across {
        let i = row * across + vector;
        c[i] = after(i, values);
    }
}

// A slab of A, of which an invocation reads two vectors, lies as [row][depth / 4], four depths each.
@if(vectors)
fn load_share(row: u32, depth: u32, local: u32, second: u32) -> vec4f {
    return load_a(row + local / 4u + GROUP / 4u * second, depth / 4u + local % 4u);
}

@if(vectors)
fn slab_place(local: u32, second: u32) -> u32 {
    return local + GROUP * second;
}

// Four rows, DOWN apart, of a quarter of a slab's depths.
@if(vectors)
fn slab_block(slab: u32, y: u32, quarter: u32, half: u32) -> mat4x4f {
    let i = slab + 4u * y + quarter + 16u * DOWN * half;
    let step = 4u * DOWN;
    return mat4x4f(a_slabs[i], a_slabs[i + step], a_slabs[i + 2u * step], a_slabs[i + 3u * step]);
}

// By single values invocations side by side read depths side by side, of four rows each, which lie as
// [depth][row / 4].
@if(!vectors)
fn load_share(row: u32, depth: u32, local: u32, second: u32) -> vec4f {
    let d = depth + local % 16u;
    let four = (local + GROUP * second) / 16u;
    let first = row + 4u * DOWN * (four / DOWN) + four % DOWN;
    let rows = min(first + vec4u(0u, DOWN, 2u * DOWN, 3u * DOWN), vec4u(params.m - 1u));
    let at = rows * params.k + min(d, params.k - 1u);
    return select(vec4f(), vec4f(a[at.x], a[at.y], a[at.z], a[at.w]), d < params.k);
}

@if(!vectors)
fn slab_place(local: u32, second: u32) -> u32 {
    return slab_at(local % 16u, (local + GROUP * second) / 16u);
}

// The exclusive or keeps vectors of depths side by side from the same banks of the memory.
fn slab_at(depth: u32, four: u32) -> u32 {
    return depth * (ROWS / 4u) + (four ^ (depth % 8u));
}

@if(!vectors)
fn slab_block(slab: u32, y: u32, quarter: u32, half: u32) -> mat4x4f {
    let depth = 4u * quarter;
    let four = y + DOWN * half;
    return transpose(mat4x4f(
        a_slabs[slab + slab_at(depth, four)],
        a_slabs[slab + slab_at(depth + 1u, four)],
        a_slabs[slab + slab_at(depth + 2u, four)],
        a_slabs[slab + slab_at(depth + 3u, four)],
    ));
}

fn four_depths(quarter: u32) -> vec4u {
    return 4u * quarter + vec4u(0u, 1u, 2u, 3u);
}

// Single values of a vector are SPAN columns apart, so that as many invocations side by side, a vector
// each, read and write columns side by side.
fn four_columns(vector: u32) -> vec4u {
    return 4u * vector - 3u * (vector % SPAN) + vec4u(0u, SPAN, 2u * SPAN, 3u * SPAN);
}

@if(!vectors)
fn load_a(row: u32, quarter: u32) -> vec4f {
    let inside = four_depths(quarter) < vec4u(params.k);
    let at = min(row, params.m - 1u) * params.k + min(four_depths(quarter), vec4u(params.k - 1u));
    return select(vec4f(), vec4f(a[at.x], a[at.y], a[at.z], a[at.w]), inside);
}

@if(!vectors && !im2col)
fn load_b(depth: u32, cols: vec4u) -> vec4f {
    let at = min(depth, params.k - 1u) * params.n + cols;
    return select(vec4f(), vec4f(b[at.x], b[at.y], b[at.z], b[at.w]), depth < params.k);
}

@if(!vectors && !im2col)
fn store(row: u32, vector: u32, values: vec4f) {
    let cols = four_columns(vector);
    put(row, cols, row * params.n + cols, values);
}

// Stores those values of a row whose columns there are.
@if(!vectors)
fn put(row: u32, cols: vec4u, at: vec4u, values: vec4f) {
    if row >= params.m {
        return;
    }
    if cols.x < params.n { c[at.x] = after(at.x, values.x); }
    if cols.y < params.n { c[at.y] = after(at.y, values.y); }
    if cols.z < params.n { c[at.z] = after(at.z, values.z); }
    if cols.w < params.n { c[at.w] = after(at.w, values.w); }
}

// A convolution layer of one group is the product of its weights, a row a filter, and a matrix of windows, a column
// a place of the result, the batch's images one after the other. That matrix is nowhere in memory.
@if(im2col || pointwise)
struct Layer {
    input: vec2u,
    kernel: vec2u,
    output: vec2u,
    stride: vec2u,
    dilation: vec2u,
    before: vec2u,
}
@else alias Layer = vec4u;

// Of four places of the result: the rows and columns at which their windows begin, and where these are in the
// first channels of their images.
@if(im2col)
struct Columns {
    rows: vec4u,
    cols: vec4u,
    first: vec4u,
}

// Rows and columns before the input wrap around to some beyond its end.
@if(im2col)
fn columns_of(vector: u32) -> Columns {
    let layer = params.layer;
    let plane = layer.output.x * layer.output.y;
    let places = min(four_columns(vector), vec4u(params.n - 1u));
    let within = places % plane;
    let rows = within / layer.output.y * layer.stride.x - layer.before.x;
    let cols = within % layer.output.y * layer.stride.y - layer.before.y;
    let channels = places / plane * (params.k / (layer.kernel.x * layer.kernel.y));
    return Columns(rows, cols, (channels * layer.input.x + rows) * layer.input.y + cols);
}

// The quotient of numbers below 2¹⁹ by reciprocal: an error of 2⁻²¹ of it does not reach from the middle between
// multiples of 1 / d to the next integer. Integers take processors ten times as long to divide.
fn quotient(n: u32, d: u32) -> u32 {
    return u32((f32(n) + 0.5) * (1.0 / f32(d)));
}

@if(im2col)
fn load_b(depth: u32, four: Columns) -> vec4f {
    let layer = params.layer;
    let taps = layer.kernel.x * layer.kernel.y;
    let plane = layer.input.x * layer.input.y;
    let channel = quotient(depth, taps);
    let tap = depth - channel * taps;
    let i = quotient(tap, layer.kernel.y);
    let j = tap - i * layer.kernel.y;
    let down = i * layer.dilation.x;
    let right = j * layer.dilation.y;
    let height = select(0u, layer.input.x, depth < params.k);
    let inside = (four.rows + down < vec4u(height)) & (four.cols + right < vec4u(layer.input.y));
    let at = four.first + channel * plane + down * layer.input.y + right;
    let safe = select(vec4u(), at, inside);
    return select(vec4f(), vec4f(b[safe.x], b[safe.y], b[safe.z], b[safe.w]), inside);
}

@if(im2col)
fn store(row: u32, vector: u32, values: vec4f) {
    let plane = params.layer.output.x * params.layer.output.y;
    let places = four_columns(vector);
    put(row, places, (places / plane * (params.m - 1u) + row) * plane + places, values);
}

// So is one by windows of one value, of planes made of vectors; a vector lies in one image.
@if(pointwise)
fn plane_vectors() -> u32 {
    return params.layer.output.x * params.layer.output.y / 4u;
}

@if(pointwise)
fn columns_of(vector: u32) -> u32 {
    let v = min(vector, params.n / 4u - 1u);
    return v / plane_vectors() * (params.k * plane_vectors()) + v % plane_vectors();
}

@if(pointwise)
fn load_b(depth: u32, first: u32) -> vec4f {
    let at = first + min(depth, params.k - 1u) * plane_vectors();
    return select(vec4f(), b[at], depth < params.k);
}

@if(pointwise)
fn store(row: u32, vector: u32, values: vec4f) {
    if row < params.m && vector < params.n / 4u {
        let i = vector + (vector / plane_vectors() * (params.m - 1u) + row) * plane_vectors();
        c[i] = after(i, values);
    }
}

// Four depths of a single column. Past the edge they are zeros as those of A are, which times an
// infinite last one would be NaN.
@if(vectors)
fn load_column(quarter: u32) -> vec4f {
    return b[quarter];
}

@if(!vectors)
fn load_column(quarter: u32) -> vec4f {
    let at = min(four_depths(quarter), vec4u(params.k - 1u));
    return select(vec4f(), vec4f(b[at.x], b[at.y], b[at.z], b[at.w]), inside(quarter, params.k));
}

fn row_product(sum: vec4f, a: vec4f, b: mat4x4f) -> vec4f {
    return sum + a.x * b[0] + a.y * b[1] + a.z * b[2] + a.w * b[3];
}

// A block more of A, its rows the matrix's columns, times one of B.
fn add_product(sum: mat4x4f, a: mat4x4f, b: mat4x4f) -> mat4x4f {
    return mat4x4f(
        row_product(sum[0], a[0], b),
        row_product(sum[1], a[1], b),
        row_product(sum[2], a[2], b),
        row_product(sum[3], a[3], b),
    );
}

// Two rows of two blocks.
struct Sums {
    first: mat4x4f,
    right: mat4x4f,
    below: mat4x4f,
    last: mat4x4f,
}
