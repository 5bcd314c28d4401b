// Reductions of the middle axis of outer × len × inner elements: an invocation or a workgroup for each result.
import package::lib::grid::workgroup_index;
import package::lib::hooks::after;
import package::lib::ranking::{Candidate, better};

struct Params {
    results: u32,
    len: u32,
    inner: u32,
    // Whether a workgroup computes one result.
    joint: u32,
    // 0: sums, 1: extremes, 2: their indices.
    kind: u32,
    // 1, or −1 for the smallest.
    sign: f32,
    divisor: f32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;

// Results of a workgroup whose invocations compute whole ones, as the host counts them.
const RESULTS = 256u;
// Elements that are added up one after the other: sums of many blocks lose less than long ones.
const BLOCK = 64u;
// Fewer on software adapters.
override GROUP = 256u;

var<workgroup> candidates: array<Candidate, GROUP>;

fn combined(a: Candidate, b: Candidate) -> Candidate {
    if params.kind == 0u {
        return Candidate(a.value + b.value, 0.0);
    }
    return better(a, b);
}

// Combines every `lanes`-th element of a result from `first` on.
fn along(result: u32, first: u32, lanes: u32) -> Candidate {
    let start = result / params.inner * params.len * params.inner + result % params.inner;
    var total = Candidate(0.0, 0.0);
    // Any element ranks as high as itself.
    if params.kind != 0u {
        let known = min(first, params.len - 1u);
        total = Candidate(params.sign * x[start + known * params.inner], f32(known));
    }
    for (var block = first; block < params.len; block += lanes * BLOCK) {
        var part = Candidate(params.sign * x[start + block * params.inner], f32(block));
        let end = min(block + lanes * BLOCK, params.len);
        for (var step = block + lanes; step < end; step += lanes) {
            part = combined(part, Candidate(params.sign * x[start + step * params.inner], f32(step)));
        }
        total = combined(total, part);
    }
    return total;
}

fn store(result: u32, best: Candidate) {
    let value = select(params.sign * best.value / params.divisor, best.index, params.kind == 2u);
    y[result] = after(result, value);
}

@compute @workgroup_size(GROUP)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) local: u32,
) {
    let place = workgroup_index(group, groups);
    if params.joint == 0u {
        let start = place * RESULTS;
        for (var i = start + local; i < min(start + RESULTS, params.results); i += GROUP) {
            store(i, along(i, 0u, 1u));
        }
        return;
    }
    let result = min(place, params.results - 1u);
    candidates[local] = along(result, local, GROUP);
    for (var half = GROUP / 2u; half > 0u; half >>= 1u) {
        workgroupBarrier();
        if local < half {
            candidates[local] = combined(candidates[local], candidates[local + half]);
        }
    }
    if local == 0u && place < params.results {
        store(result, candidates[0]);
    }
}
