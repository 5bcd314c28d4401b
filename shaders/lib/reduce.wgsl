const SUM = 0u;
const MAX = 1u;
const MIN = 2u;

fn combine(kind: u32, a: f32, b: f32) -> f32 {
    switch kind {
        case MAX: { return maximum(a, b); }
        case MIN: { return minimum(a, b); }
        default: { return a + b; }
    }
}

var<workgroup> scratch: array<f32, 256>;

// Folds one value of each of the 256 invocations; all of them get the result.
fn workgroup_reduce(kind: u32, value: f32, local: u32) -> f32 {
    scratch[local] = value;
    for (var half = 128u; half > 0u; half >>= 1u) {
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
