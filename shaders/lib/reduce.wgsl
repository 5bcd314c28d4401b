// Invocations of a workgroup. Software adapters have four instead, one for each lane of their vectors:
// a barrier costs them a switch of contexts for every four invocations.
override GROUP = 256u;

const SUM = 0u;
const MAX = 1u;
const MIN = 2u;

fn combine(kind: u32, a: real, b: real) -> real {
    switch kind {
        case MAX: { return maximum(a, b); }
        case MIN: { return minimum(a, b); }
        default: { return a + b; }
    }
}

// All four values of a vector folded, in each of them.
fn fold_lanes(kind: u32, v: vec4f) -> vec4f {
    let pairs = combine(kind, v, v.zwxy);
    return combine(kind, pairs, pairs.yxwz);
}

// The places among `len` values of vector i's four.
fn inside(i: u32, len: u32) -> vec4<bool> {
    return 4u * i + vec4u(0u, 1u, 2u, 3u) < vec4u(len);
}

// A workgroup's share of the vectors that `len` values are, from the first to the one after the last.
fn vectors_of(group: u32) -> vec2u {
    let vectors = (params.len + 3u) / 4u;
    let each = (vectors + params.groups - 1u) / params.groups;
    return min(vec2u(group * each, (group + 1u) * each), vec2u(vectors));
}

// Terms that an invocation adds up before their sum goes to that of others, which bounds the
// rounding error.
const TERMS = 64u;

// An invocation's part of the sum of a kernel's `term`s in such a share.
fn sum_of_terms(share: vec2u, local: u32) -> vec4f {
    var total = vec4f();
    for (var block = share.x + local; block < share.y; block += TERMS * GROUP) {
        var part = vec4f();
        for (var i = block; i < min(block + TERMS * GROUP, share.y); i += GROUP) {
            part += select(vec4f(), term(i), inside(i, params.len));
        }
        total += part;
    }
    return total;
}

var<workgroup> scratch: array<real, GROUP>;

// Folds one value of each of the workgroup's GROUP invocations; all of them get the result.
fn workgroup_reduce(kind: u32, value: real, local: u32) -> real {
    scratch[local] = value;
    for (var half = GROUP / 2u; half > 0u; half >>= 1u) {
        workgroupBarrier();
        if local < half {
            scratch[local] = combine(kind, scratch[local], scratch[local + half]);
        }
    }
    workgroupBarrier();
    let result = scratch[0];
    workgroupBarrier(); // Nobody may write the next value before all have read this one.
    return result;
}
