// Y = s · X · Wᵀ for few rows of X: sixteen invocations share the eights of a row of W. Each workgroup may normalise its
// row of X first, which takes less time than a kernel of its own.
import package::composed::blocks::{eight, group_of};
import package::lib::grid::workgroup_index;
import package::lib::reduce::{SUM, workgroup_reduce};

struct Params {
    // Rows of X and Y, columns of X and W, rows of W.
    tokens: u32,
    k: u32,
    rows: u32,
    // The column of Y that the first row of W gives, and the columns of Y.
    first: u32,
    stride: u32,
    // Whether to add to what Y holds.
    adds: u32,
    // Weights in a group, and the least integer of four bits.
    group_len: u32,
    least: f32,
    // The factor s.
    scale: f32,
    // Whether to divide rows of X by their root mean square and multiply them by a gain, and the rows before the
    // first one.
    normalises: u32,
    epsilon: f32,
    skipped: u32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<vec4f>;
@group(0) @binding(2) var<storage, read> gain: array<vec4f>;
@group(0) @binding(3) var<storage, read> words: array<u32>;
@group(0) @binding(4) var<storage, read> scales: array<u32>;
@group(0) @binding(5) var<storage, read_write> y: array<f32>;

const GROUP = 64u;

const LANES = 16u;
const ROWS = 4u;

var<workgroup> sums: array<f32, GROUP>;

@compute @workgroup_size(GROUP)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) local: u32,
) {
    let index = workgroup_index(group, groups);
    let across = (params.rows + ROWS - 1u) / ROWS;
    let token = index / across;
    let row = index % across * ROWS + local / LANES;
    let eights = params.k / 8u;
    if token >= params.tokens {
        return;
    }
    let start = 2u * (params.skipped + token) * eights;
    var factor = 1.0;
    if params.normalises == 1u {
        var squares = 0.0;
        for (var i = local; i < 2u * eights; i += GROUP) {
            squares += dot(x[start + i], x[start + i]);
        }
        factor = 1.0 / sqrt(workgroup_reduce(SUM, squares, local) / f32(params.k) + params.epsilon);
    }
    var sum = 0.0;
    if row < params.rows {
        for (var i = local % LANES; i < eights; i += LANES) {
            let weights = eight(row * eights + i);
            var low = x[start + 2u * i];
            var high = x[start + 2u * i + 1u];
            if params.normalises == 1u {
                low *= gain[2u * i];
                high *= gain[2u * i + 1u];
            }
            let scale = group_of(row * eights + i);
            sum += scale.x * (dot(weights.low, low) + dot(weights.high, high));
            sum += scale.y * dot(low + high, vec4f(1.0));
        }
    }
    sums[local] = sum;
    for (var half = LANES / 2u; half > 0u; half >>= 1u) {
        workgroupBarrier();
        if local % LANES < half {
            sums[local] += sums[local + half];
        }
    }
    if local % LANES == 0u && row < params.rows {
        let at = token * params.stride + params.first + row;
        y[at] = params.scale * factor * sums[local] + select(0.0, y[at], params.adds == 1u);
    }
}
