// Indices of the largest elements of rows, a workgroup a row: each rank is the best element after the one of the rank
// before. A dispatch finds some ranks.
import package::lib::grid::workgroup_index;
import package::lib::hooks::after;
import package::lib::ranking::{Candidate, better, is_better};

struct Params {
    rows: u32,
    cols: u32,
    // Ranks of a row, and those of this dispatch.
    k: u32,
    first: u32,
    end: u32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;

// Fewer on software adapters.
override GROUP = 256u;

// Above all indices.
const NONE = 3e9;

var<workgroup> candidates: array<Candidate, GROUP>;

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
    let start = row * params.cols;
    var previous = Candidate(0.0, -1.0);
    if params.first > 0u {
        let index = y[row * params.k + params.first - 1u];
        previous = Candidate(x[start + u32(index)], index);
    }
    for (var rank = params.first; rank < params.end; rank++) {
        var best = Candidate(-3.4028234663852886e38, NONE);
        var found = false;
        for (var i = local; i < params.cols; i += GROUP) {
            let candidate = Candidate(x[start + i], f32(i));
            let is_left = rank == 0u || is_better(previous, candidate);
            if is_left && (!found || is_better(candidate, best)) {
                best = candidate;
                found = true;
            }
        }
        candidates[local] = best;
        for (var half = GROUP / 2u; half > 0u; half >>= 1u) {
            workgroupBarrier();
            if local < half {
                candidates[local] = chosen(candidates[local], candidates[local + half]);
            }
        }
        workgroupBarrier();
        previous = candidates[0];
        // Nobody may write the next candidate before all have read this one.
        workgroupBarrier();
        if local == 0u {
            let i = row * params.k + rank;
            y[i] = after(i, previous.index);
        }
    }
}

// The better of two candidates, either of which may be none.
fn chosen(a: Candidate, b: Candidate) -> Candidate {
    if a.index == NONE {
        return b;
    }
    if b.index == NONE {
        return a;
    }
    return better(a, b);
}
