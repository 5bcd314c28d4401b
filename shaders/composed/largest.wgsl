// The index of the first largest element, or of the first NaN. The first dispatch leaves a pair (value, index) for each
// workgroup; the second, of one workgroup, reads these pairs and leaves the index.
import package::lib::ranking::{Candidate, better};

struct Params {
    len: u32,
    groups: u32,
    // Whether the elements are pairs.
    pairs: u32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;

const GROUP = 64u;

var<workgroup> candidates: array<Candidate, GROUP>;

fn load(i: u32) -> Candidate {
    if params.pairs != 0u {
        return Candidate(x[2u * i], x[2u * i + 1u]);
    }
    return Candidate(x[i], f32(i));
}

@compute @workgroup_size(GROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) local: u32) {
    let start = min(group.x * GROUP + local, params.len - 1u);
    var best = load(start);
    for (var i = start; i < params.len; i += params.groups * GROUP) {
        best = better(best, load(i));
    }
    candidates[local] = best;
    for (var half = GROUP / 2u; half > 0u; half >>= 1u) {
        workgroupBarrier();
        if local < half {
            candidates[local] = better(candidates[local], candidates[local + half]);
        }
    }
    if local == 0u {
        best = candidates[0];
        if params.pairs != 0u {
            y[0] = best.index;
        } else {
            y[2u * group.x] = best.value;
            y[2u * group.x + 1u] = best.index;
        }
    }
}
