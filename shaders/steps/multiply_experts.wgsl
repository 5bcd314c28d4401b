// Products by the matrices of the experts that each row chose: an expert's matrix follows that of the one before. Some
// invocations share a row of weights, whose columns they divide among them.
import package::steps::blocks::{eight, group_of};
import package::lib::grid::workgroup_index;

struct Params {
    tokens: u32,
    // Columns of X and W, and the rows of an expert's matrix.
    k: u32,
    rows: u32,
    // The experts that a token chose.
    used: u32,
    // The rows of W that are here.
    part_first: u32,
    part_rows: u32,
    // The column of Y that the first row gives, and the columns of Y.
    first: u32,
    stride: u32,
    // Whether X has a row for each expert of a token, and the weighted sum of their products is added to Y. Else Y has
    // those of all experts one after the other.
    mixes: u32,
    group_len: u32,
    least: f32,
    // The factor of sums.
    scale: f32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<vec4f>;
@group(0) @binding(2) var<storage, read> routes: array<f32>;
@group(0) @binding(3) var<storage, read> words: array<u32>;
@group(0) @binding(4) var<storage, read> scales: array<vec2f>;
@group(0) @binding(5) var<storage, read_write> y: array<f32>;

const GROUP = 64u;
const LANES = 16u;
const ROWS = 4u;

var<workgroup> sums: array<f32, GROUP>;

// A lane's part of the product of a row of X and a row of W.
fn product(x_row: u32, w_row: u32, lane: u32) -> f32 {
    let eights = params.k / 8u;
    var sum = 0.0;
    for (var i = lane; i < eights; i += LANES) {
        let at = w_row * eights + i;
        let weights = eight(at);
        let group = group_of(at);
        let low = x[2u * (x_row * eights + i)];
        let high = x[2u * (x_row * eights + i) + 1u];
        sum += group.x * (dot(weights.low, low) + dot(weights.high, high));
        sum += group.y * dot(low + high, vec4f(1.0));
    }
    return sum;
}

@compute @workgroup_size(GROUP)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) local: u32,
) {
    let index = workgroup_index(group, groups);
    let mixes = params.mixes == 1u;
    // Each token, or each expert of it.
    let parts = select(params.used, 1u, mixes);
    let across = (params.rows + ROWS - 1u) / ROWS;
    let token = index / across / parts;
    if token >= params.tokens {
        return;
    }
    let lane = local % LANES;
    let row = index % across * ROWS + local / LANES;
    let own = index / across % parts;
    var sum = 0.0;
    var is_here = false;
    for (var i = own; i < select(own + 1u, params.used, mixes); i++) {
        let route = 2u * token * params.used + i;
        let w_row = u32(routes[route]) * params.rows + row;
        if row >= params.rows || w_row < params.part_first || w_row - params.part_first >= params.part_rows {
            continue;
        }
        is_here = true;
        let x_row = select(token, token * params.used + i, mixes);
        let weight = select(1.0, routes[route + params.used], mixes);
        sum += weight * product(x_row, w_row - params.part_first, lane);
    }
    sums[local] = sum;
    for (var half = LANES / 2u; half > 0u; half >>= 1u) {
        workgroupBarrier();
        if lane < half {
            sums[local] += sums[local + half];
        }
    }
    if lane > 0u || !is_here {
        return;
    }
    let to = token * params.stride + params.first + row;
    if mixes {
        y[to] += params.scale * sums[local];
    } else {
        y[to + own * params.rows] = sums[local];
    }
}
