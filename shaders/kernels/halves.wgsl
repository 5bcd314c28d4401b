// A row-major matrix rounded to binary16, four columns a vector, with zeros in the rows and
// columns past its own. `across` is the result's row in vectors. WGSL leaves open what numbers
// beyond binary16 become; here they are infinite.
import package::lib::grid::workgroup_index;

struct Params {
    rows: u32,
    cols: u32,
    across: u32,
    vectors: u32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<vec2u>;

// From here on the nearest binary16 is infinite; that is 0x7c00.
const BEYOND = 65520.0;

fn half_or_zero(row: u32, col: u32) -> f32 {
    if row >= params.rows || col >= params.cols {
        return 0.0;
    }
    return x[row * params.cols + col];
}

fn pair(a: f32, b: f32) -> u32 {
    let magnitudes = abs(vec2f(a, b));
    let signs = (bitcast<vec2u>(vec2f(a, b)) >> vec2u(16u)) & vec2u(0x8000u);
    let infinite = signs | vec2u(0x7c00u);
    // NaN as well, which no comparison is sure to see.
    let quiet = signs | vec2u(0x7e00u);
    let packed = pack2x16float(min(magnitudes, vec2f(65504.0)));
    let finite = vec2u(packed & 0xffffu, packed >> 16u) | signs;
    let halves = select(select(finite, infinite, magnitudes >= vec2f(BEYOND)), quiet, is_nan_pair(vec2f(a, b)));
    return halves.x | (halves.y << 16u);
}

fn is_nan_pair(x: vec2f) -> vec2<bool> {
    return (bitcast<vec2u>(x) & vec2u(0x7fffffffu)) > vec2u(0x7f800000u);
}

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) local: u32,
) {
    let i = workgroup_index(group, groups) * 256u + local;
    if i >= params.vectors {
        return;
    }
    let row = i / params.across;
    let col = 4u * (i % params.across);
    y[i] = vec2u(
        pair(half_or_zero(row, col), half_or_zero(row, col + 1u)),
        pair(half_or_zero(row, col + 2u), half_or_zero(row, col + 3u)),
    );
}
