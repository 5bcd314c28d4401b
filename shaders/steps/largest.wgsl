// The index of the first largest element, or of the first NaN. The first dispatch leaves a pair (value, index) for each
// workgroup; the second, of one workgroup, reads these pairs and leaves the index.
import package::lib::best::best_of_group;
import package::lib::ranking::Candidate;

struct Params {
    len: u32,
    groups: u32,
    // Whether the elements are pairs.
    pairs: u32,
    // The place of the index.
    at: u32,
    // The elements before the first one.
    before: u32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;

const GROUP = 64u;

fn candidate_at(i: u32) -> Candidate {
    if params.pairs != 0u {
        return Candidate(x[2u * i], x[2u * i + 1u]);
    }
    return Candidate(x[params.before + i], f32(i));
}

@compute @workgroup_size(GROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) local: u32) {
    let best = best_of_group(group.x, local);
    if local == 0u {
        if params.pairs != 0u {
            y[params.at] = best.index;
        } else {
            y[2u * group.x] = best.value;
            y[2u * group.x + 1u] = best.index;
        }
    }
}
