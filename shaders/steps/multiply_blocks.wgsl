// Y = s · X · Wᵀ for few rows of X: some invocations share four rows of W, whose columns they divide among them. Each
// workgroup may normalise its row of X first, which takes less time than a kernel of its own.
import package::steps::activation::gated;
@if(!floats) import package::steps::blocks::{group_of, sixteen_of};
import package::lib::grid::workgroup_index;

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
    // Invocations that share rows of W: a power of two, from ROWS to GROUP.
    lanes: u32,
    // Rows of W that give gates, after which as many rows give what these let pass, or 0; and whether the activation is
    // GELU.
    gates: u32,
    gelu: u32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<vec4f>;
@group(0) @binding(2) var<storage, read> gain: array<vec4f>;
@if(floats)
@group(0) @binding(3) var<storage, read> words: array<vec4f>;
@if(bytes)
@group(0) @binding(3) var<storage, read> words: array<vec4u>;
@if(nibbles)
@group(0) @binding(3) var<storage, read> words: array<vec2u>;
@group(0) @binding(4) var<storage, read> scales: array<vec2f>;
@group(0) @binding(5) var<storage, read_write> y: array<f32>;

const GROUP = 128u;

const ROWS = 4u;

// Vectors of four columns that an invocation multiplies at a time: rows are of whole steps. Those of quantised weights
// lie in one group.
@if(floats)
const STEP = 2u;
@if(!floats)
const STEP = 4u;

var<workgroup> sums: array<vec4f, GROUP>;
var<workgroup> squares: array<f32, GROUP>;

// A vector of X, which is multiplied by the gain if there is a norm.
fn input(start: u32, i: u32) -> vec4f {
    let value = x[start + i];
    if params.normalises == 1u {
        return value * gain[i];
    }
    return value;
}

@if(floats)
fn inputs(start: u32, i: u32) -> mat2x4f {
    return mat2x4f(input(start, i), input(start, i + 1u));
}

@if(!floats)
fn inputs(start: u32, i: u32) -> mat4x4f {
    return mat4x4f(input(start, i), input(start, i + 1u), input(start, i + 2u), input(start, i + 3u));
}

@if(floats)
fn sum_of(inputs: mat2x4f) -> f32 {
    return 0.0;
}

@if(!floats)
fn sum_of(inputs: mat4x4f) -> f32 {
    return dot((inputs[0] + inputs[1]) + (inputs[2] + inputs[3]), vec4f(1.0));
}

// The product of inputs, whose sum is given, by the weights of a step.
@if(floats)
fn product(at: u32, inputs: mat2x4f, sum: f32) -> f32 {
    return dot(words[2u * at], inputs[0]) + dot(words[2u * at + 1u], inputs[1]);
}

@if(!floats)
fn product(at: u32, inputs: mat4x4f, sum: f32) -> f32 {
    let numbers = sixteen_of(words[at]);
    let scale = group_of(2u * at);
    let low = dot(numbers[0], inputs[0]) + dot(numbers[1], inputs[1]);
    let high = dot(numbers[2], inputs[2]) + dot(numbers[3], inputs[3]);
    return scale.x * (low + high) + scale.y * sum;
}

@compute @workgroup_size(GROUP)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) local: u32,
) {
    let index = workgroup_index(group, groups);
    let rows_at_once = GROUP / params.lanes * ROWS;
    let across = (params.rows + rows_at_once - 1u) / rows_at_once;
    let token = index / across;
    let lane = local % params.lanes;
    let row = index % across * rows_at_once + local / params.lanes * ROWS;
    let vectors = params.k / 4u;
    if token >= params.tokens {
        return;
    }
    let start = (params.skipped + token) * vectors;
    var square = 0.0;
    if params.normalises == 1u {
        for (var i = local; i < vectors; i += GROUP) {
            square += dot(x[start + i], x[start + i]);
        }
    }
    let steps = vectors / STEP;
    var rows = row + vec4u(0u, 1u, 2u, 3u);
    if params.gates > 0u {
        rows = row / 2u + vec4u(0u, 1u, params.gates, params.gates + 1u);
    }
    // Where there are fewer rows, the last one stands for those that are missing.
    let first = min(rows, vec4u(params.rows - 1u)) * steps;
    var sum = vec4f();
    for (var i = lane; i < steps; i += params.lanes) {
        let columns = inputs(start, STEP * i);
        let all = sum_of(columns);
        sum += vec4f(
            product(first.x + i, columns, all),
            product(first.y + i, columns, all),
            product(first.z + i, columns, all),
            product(first.w + i, columns, all),
        );
    }
    // Adds up the squares of all invocations, and the products of the lanes of each row.
    sums[local] = sum;
    squares[local] = square;
    for (var half = select(params.lanes, GROUP, params.normalises == 1u) / 2u; half > 0u; half >>= 1u) {
        workgroupBarrier();
        if local < half {
            squares[local] += squares[local + half];
        }
        if half < params.lanes && lane < half {
            sums[local] += sums[local + half];
        }
    }
    workgroupBarrier();
    var factor = params.scale;
    if params.normalises == 1u {
        factor /= sqrt(squares[0] / f32(params.k) + params.epsilon);
    }
    if params.gates > 0u {
        if lane < 2u && rows[lane] < params.gates {
            let pair = factor * sums[local - lane];
            let at = token * params.stride + params.first + rows[lane];
            y[at] = gated(pair[lane], pair[lane + 2u], params.gelu == 1u);
        }
        return;
    }
    if lane < ROWS && row + lane < params.rows {
        let at = token * params.stride + params.first + row + lane;
        y[at] = factor * sums[local - lane][lane] + select(0.0, y[at], params.adds == 1u);
    }
}
