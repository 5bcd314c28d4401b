// Sum, maximum or minimum: each workgroup folds a part of all vectors into one value. A second
// dispatch of one workgroup folds those; `divisor` makes a mean of a sum there.
import package::lib::hooks::after;
import package::lib::reduce::{MAX, MIN, Walk, combine, fold_lanes, inside, rounds_of, sum_of_terms, walk_of};
import package::lib::reduce::workgroup_reduce;

struct Params {
    len: u32,
    groups: u32,
    kind: u32,
    identity: f32,
    divisor: f32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<vec4f>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;

// Fewer on software adapters.
override GROUP = 256u;

fn before0(i: u32) -> vec4f {
    return x[i];
}

fn term(i: u32) -> vec4f {
    return before0(i);
}

// A vector of the first `len` values; of those past them, what changes nothing.
fn candidates(i: u32, len: u32) -> vec4f {
    return select(vec4f(params.identity), before0(i), inside(i, len));
}

// An invocation's part of the maximum or minimum, four vectors at a time. The kind is a constant
// wherever this is called, or drivers would ask for it at each step.
fn extremum(kind: u32, walk: Walk) -> vec4f {
    let len = min(4u * walk.end, params.len);
    let step = walk.step;
    var folded = vec4f(params.identity);
    var i = walk.first;
    for (var rounds = rounds_of(walk, len); rounds > 0u; rounds--) {
        let ab = combine(kind, before0(i), before0(i + step));
        let cd = combine(kind, before0(i + 2u * step), before0(i + 3u * step));
        folded = combine(kind, folded, combine(kind, ab, cd));
        i += 4u * step;
    }
    for (; i < walk.end; i += step) {
        folded = combine(kind, folded, candidates(i, len));
    }
    return folded;
}

@compute @workgroup_size(GROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) local: u32) {
    let walk = walk_of(group.x, local);
    var folded: vec4f;
    switch params.kind {
        case MAX: { folded = extremum(MAX, walk); }
        case MIN: { folded = extremum(MIN, walk); }
        default: { folded = sum_of_terms(walk); }
    }
    folded = fold_lanes(params.kind, workgroup_reduce(params.kind, folded, local));
    if local == 0u {
        y[group.x] = after(group.x, folded / params.divisor).x;
    }
}
