// Sum, maximum or minimum: each workgroup folds its share of all vectors into one value. A second
// dispatch of one workgroup folds those; `divisor` makes a mean of a sum there.
alias real = vec4f;
alias word = vec4u;
alias integer = vec4i;
alias truth = vec4<bool>;

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

fn before0(i: u32) -> vec4f {
    return x[i];
}

fn term(i: u32) -> vec4f {
    return before0(i);
}

fn extremum(share: vec2u, local: u32) -> vec4f {
    let identity = vec4f(params.identity);
    var folded = identity;
    for (var i = share.x + local; i < share.y; i += GROUP) {
        folded = combine(params.kind, folded, select(identity, before0(i), inside(i, params.len)));
    }
    return folded;
}

@compute @workgroup_size(GROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) local: u32) {
    let share = vectors_of(group.x);
    var folded: vec4f;
    if params.kind == SUM {
        folded = sum_of_terms(share, local);
    } else {
        folded = extremum(share, local);
    }
    folded = fold_lanes(params.kind, workgroup_reduce(params.kind, folded, local));
    if local == 0u {
        y[group.x] = after(group.x, folded / params.divisor).x;
    }
}
