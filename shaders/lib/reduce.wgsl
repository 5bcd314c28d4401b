// Folds of many values into one.
import package::kernel::{GROUP, params, term};
import package::lib::nan::{maximum, minimum};
import package::lib::real::real;

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

// The vectors that an invocation folds of those that `len` values are: every `step`-th from the first
// on, and none from `end` on.
struct Walk {
    first: u32,
    step: u32,
    end: u32,
}

// Workgroups that are many read neighbouring blocks, which suits the memory of hardware; those of
// software adapters, a part of the whole each, which suits caches.
fn walk_of(group: u32, local: u32) -> Walk {
    let vectors = (params.len + 3u) / 4u;
    if GROUP > 4u {
        return Walk(group * GROUP + local, params.groups * GROUP, vectors);
    }
    let each = (vectors + params.groups - 1u) / params.groups;
    return Walk(group * each + local, GROUP, min((group + 1u) * each, vectors));
}

// Terms that an invocation adds up before their sum goes to that of others, which bounds the
// rounding error.
const TERMS = 64u;

// How often an invocation takes four vectors that are whole, one step after the other. What is asked at
// each step, software adapters ask for each invocation.
fn rounds_of(walk: Walk, len: u32) -> u32 {
    return (max(len / 4u, walk.first) - walk.first + walk.step - 1u) / (4u * walk.step);
}

// An invocation's part of the sum of a kernel's `term`s, four vectors at a time.
fn sum_of_terms(walk: Walk) -> vec4f {
    let len = min(4u * walk.end, params.len);
    let step = walk.step;
    var total = vec4f();
    var i = walk.first;
    let end = i + 4u * step * rounds_of(walk, len);
    while i < end {
        let stop = min(i + 4u * TERMS * step, end);
        var part = vec4f();
        for (; i < stop; i += 4u * step) {
            part += (term(i) + term(i + step)) + (term(i + 2u * step) + term(i + 3u * step));
        }
        total += part;
    }
    for (; i < walk.end; i += step) {
        total += counted(i, len);
    }
    return total;
}

// The terms of vector i that are among the first `len`.
fn counted(i: u32, len: u32) -> vec4f {
    return select(vec4f(), term(i), inside(i, len));
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
