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
