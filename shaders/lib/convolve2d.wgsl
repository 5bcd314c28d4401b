// How a convolution reads its input and writes its result: by vectors of four columns where the
// rows of both are made of them, else by scalars.
alias vectors_pixel = vec4f;
alias scalars_pixel = f32;

fn vectors_at(row: u32, v: u32) -> vec4f {
    let across = params.input_cols / 4u;
    let at = min(row, params.input_rows - 1u) * across + min(v, across - 1u);
    return select(vec4f(), input[at], row < params.input_rows && v < across);
}

fn vectors_put(row: u32, v: u32, values: vec4f) {
    let across = params.output_cols / 4u;
    if row < params.output_rows && v < across {
        let i = row * across + v;
        result[i] = after(i, values);
    }
}

fn scalars_at(row: u32, v: u32) -> vec4f {
    // A vector to the left of the input has wrapped around, and its columns do so too.
    let cols = 4u * v + vec4u(0u, 1u, 2u, 3u);
    let at = min(row, params.input_rows - 1u) * params.input_cols
        + min(cols, vec4u(params.input_cols - 1u));
    let values = vec4f(input[at.x], input[at.y], input[at.z], input[at.w]);
    let inside = cols < vec4u(params.input_cols) & vec4<bool>(row < params.input_rows);
    return select(vec4f(), values, inside);
}

fn scalars_put(row: u32, v: u32, values: vec4f) {
    let col = 4u * v;
    let at = row * params.output_cols + col;
    if row >= params.output_rows {
        return;
    }
    if col < params.output_cols { result[at] = after(at, values.x); }
    if col + 1u < params.output_cols { result[at + 1u] = after(at + 1u, values.y); }
    if col + 2u < params.output_cols { result[at + 2u] = after(at + 2u, values.z); }
    if col + 3u < params.output_cols { result[at + 3u] = after(at + 3u, values.w); }
}
