// The best of the candidates that a workgroup reads.
import package::kernel::{GROUP, candidate_at, params};
import package::lib::ranking::{Candidate, better};

var<workgroup> candidates: array<Candidate, GROUP>;

// Returns the best one among every `params.groups`-th block of GROUP candidates; the invocation with `local` 0 has it.
fn best_of_group(group: u32, local: u32) -> Candidate {
    let start = min(group * GROUP + local, params.len - 1u);
    var best = candidate_at(start);
    for (var i = start; i < params.len; i += params.groups * GROUP) {
        best = better(best, candidate_at(i));
    }
    candidates[local] = best;
    for (var half = GROUP / 2u; half > 0u; half >>= 1u) {
        workgroupBarrier();
        if local < half {
            candidates[local] = better(candidates[local], candidates[local + half]);
        }
    }
    return candidates[0];
}
