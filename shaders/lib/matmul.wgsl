// How the matmul kernels read and write matrices: by vectors where k and n are multiples of 4,
// else by scalars. `quarter` and `vector` count depths and columns by four. Rows and columns past
// the edge read the last one, whose sums are not stored; depths past the edge read zero, not
// another value that might be infinite.
alias vectors_cell = vec4f;
alias scalars_cell = f32;

fn vectors_a(row: u32, quarter: u32) -> vec4f {
    let across = params.k / 4u;
    let at = min(row, params.m - 1u) * across + min(quarter, across - 1u);
    return select(vec4f(), a[at], quarter < across);
}

fn vectors_b(depth: u32, vector: u32) -> vec4f {
    let across = params.n / 4u;
    let at = min(depth, params.k - 1u) * across + min(vector, across - 1u);
    return select(vec4f(), b[at], depth < params.k);
}

// Where depth and vector are known to lie within B; of single values only the vector is.
fn vectors_b_within(depth: u32, vector: u32) -> vec4f {
    return b[depth * (params.n / 4u) + vector];
}

fn scalars_b_within(depth: u32, vector: u32) -> vec4f {
    return scalars_b(depth, vector);
}

fn vectors_store(row: u32, vector: u32, values: vec4f) {
    let across = params.n / 4u;
    if row < params.m && vector < across {
        let i = row * across + vector;
        c[i] = after(i, values);
    }
}

fn clamped(start: u32, last: u32) -> vec4u {
    return min(vec4u(start, start + 1u, start + 2u, start + 3u), vec4u(last));
}

fn scalars_a(row: u32, quarter: u32) -> vec4f {
    let depth = 4u * quarter;
    let at = min(row, params.m - 1u) * params.k + clamped(depth, params.k - 1u);
    let inside = vec4u(depth) + vec4u(0u, 1u, 2u, 3u) < vec4u(params.k);
    return select(vec4f(), vec4f(a[at.x], a[at.y], a[at.z], a[at.w]), inside);
}

fn scalars_b(depth: u32, vector: u32) -> vec4f {
    let at = min(depth, params.k - 1u) * params.n + clamped(4u * vector, params.n - 1u);
    return select(vec4f(), vec4f(b[at.x], b[at.y], b[at.z], b[at.w]), depth < params.k);
}

fn scalars_store(row: u32, vector: u32, values: vec4f) {
    let col = 4u * vector;
    let at = row * params.n + col;
    if row >= params.m {
        return;
    }
    if col < params.n { c[at] = after(at, values.x); }
    if col + 1u < params.n { c[at + 1u] = after(at + 1u, values.y); }
    if col + 2u < params.n { c[at + 2u] = after(at + 2u, values.z); }
    if col + 3u < params.n { c[at + 3u] = after(at + 3u, values.w); }
}

// Four depths of a single column. Past the edge they are zeros as those of A are, which times an
// infinite last one would be NaN.
fn vectors_column(quarter: u32) -> vec4f {
    return b[quarter];
}

fn scalars_column(quarter: u32) -> vec4f {
    let at = clamped(4u * quarter, params.k - 1u);
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
