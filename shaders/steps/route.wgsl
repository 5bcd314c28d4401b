// The choice of experts: the largest logits of each row, in order, the first of equal ones first, with weights by softmax.
// A workgroup has a row.
import package::lib::grid::workgroup_index;
import package::lib::reduce::{SUM, workgroup_reduce};

struct Params {
    rows: u32,
    experts: u32,
    // The experts that are chosen, and whether their weights add up to 1.
    used: u32,
    normalises: u32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> logits: array<f32>;
// The numbers of a row's experts, and then their weights.
@group(0) @binding(2) var<storage, read_write> routes: array<f32>;

const GROUP = 64u;

var<workgroup> values: array<f32, GROUP>;
var<workgroup> indices: array<u32, GROUP>;

// Whether a logit comes before another one. An index beyond all experts stands for none.
fn is_before(value: f32, index: u32, other: f32, other_index: u32) -> bool {
    let is_larger = value > other || (value == other && index < other_index);
    return index < params.experts && (is_larger || other_index >= params.experts);
}

@compute @workgroup_size(GROUP)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) local: u32,
) {
    let row = workgroup_index(group, groups);
    if row >= params.rows {
        return;
    }
    let start = row * params.experts;
    let to = row * 2u * params.used;
    var value = 0.0;
    var index = 0u;
    var largest = 0.0;
    var total = 0.0;
    for (var number = 0u; number < params.used; number++) {
        var best = 0.0;
        var at = params.experts;
        for (var i = local; i < params.experts; i += GROUP) {
            let logit = logits[start + i];
            let is_left = number == 0u || is_before(value, index, logit, i);
            if is_left && is_before(logit, i, best, at) {
                best = logit;
                at = i;
            }
        }
        values[local] = best;
        indices[local] = at;
        for (var half = GROUP / 2u; half > 0u; half >>= 1u) {
            workgroupBarrier();
            let other = local + half;
            if local < half && is_before(values[other], indices[other], values[local], indices[local]) {
                values[local] = values[other];
                indices[local] = indices[other];
            }
        }
        workgroupBarrier();
        value = values[0];
        // Where logits are no numbers, there may be none.
        index = min(indices[0], params.experts - 1u);
        workgroupBarrier();
        largest = select(largest, value, number == 0u);
        let weight = exp(value - largest);
        total += weight;
        if local == 0u {
            routes[to + number] = f32(index);
            routes[to + params.used + number] = weight;
        }
    }
    if params.normalises == 0u {
        var sum = 0.0;
        for (var i = local; i < params.experts; i += GROUP) {
            sum += exp(logits[start + i] - largest);
        }
        total = workgroup_reduce(SUM, sum, local);
    }
    if local == 0u {
        for (var number = 0u; number < params.used; number++) {
            routes[to + params.used + number] /= total;
        }
    }
}
