// Index of the first largest value, or of the first NaN. The first dispatch reads values and
// leaves a pair (value, index) a workgroup; the second reads `pairs` and leaves the index.
import package::lib::best::best_of_group;
import package::lib::hooks::after;
import package::lib::ranking::Candidate;

struct Params {
    len: u32,
    groups: u32,
    read_pairs: u32,
    write_pairs: u32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;

// Fewer on software adapters.
override GROUP = 256u;

fn before0(i: u32) -> f32 {
    return x[i];
}

fn candidate_at(i: u32) -> Candidate {
    if params.read_pairs != 0u {
        return Candidate(x[2u * i], x[2u * i + 1u]);
    }
    return Candidate(before0(i), f32(i));
}

@compute @workgroup_size(GROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) local: u32) {
    let best = best_of_group(group.x, local);
    if local == 0u {
        if params.write_pairs != 0u {
            y[2u * group.x] = best.value;
            y[2u * group.x + 1u] = best.index;
        } else {
            y[0] = after(0u, best.index);
        }
    }
}
