// A step of Stockham's Fourier transform by radix 2 of rows of complex numbers: an invocation combines two of them.
import constants::{COSINE, SINE};
import package::lib::grid::workgroup_index;

struct Params {
    // Pairs of all rows, and of one.
    pairs: u32,
    half: u32,
    // The number of transforms that the steps before have joined.
    step: u32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<vec2f>;
@group(0) @binding(2) var<storage, read_write> y: array<vec2f>;

// Pairs of a workgroup, as the host counts them.
const CHUNK = 1024u;
// Fewer on software adapters.
override GROUP = 256u;

// e^(−πi·k/half) for k below half: the angle is at most an eighth of a turn, by symmetry.
fn root(k: u32) -> vec2f {
    let quarter = params.half / 2u;
    let is_second = 2u * k >= params.half && params.half > 1u;
    let within = select(k, k - quarter, is_second);
    let is_steep = 2u * within > quarter;
    let near = select(within, quarter - within, is_steep);
    let r = 3.1415927 * (f32(near) / f32(params.half));
    let z = r * r;
    let sine = r + r * z * ((SINE[2] * z + SINE[1]) * z + SINE[0]);
    let cosine = 1.0 - 0.5 * z + z * z * ((COSINE[2] * z + COSINE[1]) * z + COSINE[0]);
    let first = select(vec2f(cosine, -sine), vec2f(sine, -cosine), is_steep);
    return select(first, vec2f(first.y, -first.x), is_second);
}

fn combine(i: u32) {
    let row = i / params.half * params.half * 2u;
    let pair = i % params.half;
    let within = pair % params.step;
    let k = pair - within;
    let a = x[row + pair];
    let b = x[row + pair + params.half];
    let w = root(k);
    let d = a - b;
    let to = row + 2u * k + within;
    y[to] = a + b;
    y[to + params.step] = vec2f(d.x * w.x - d.y * w.y, d.x * w.y + d.y * w.x);
}

@compute @workgroup_size(GROUP)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) local: u32,
) {
    let start = workgroup_index(group, groups) * CHUNK;
    for (var i = start + local; i < min(start + CHUNK, params.pairs); i += GROUP) {
        combine(i);
    }
}
