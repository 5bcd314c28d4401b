// The best of each chunk of elements, ranked: a workgroup sorts a chunk and leaves pairs (value, index) of the best ones.
// Dispatches repeat on the pairs until they are those of one chunk.
import package::lib::ranking::{Candidate, is_better};

struct Params {
    len: u32,
    // Whether the elements are pairs.
    pairs: u32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;

const GROUP = 256u;
const CHUNK = 1024u;
const RANKED = 64u;

// After every index.
const NONE = 3e9;

var<workgroup> candidates: array<Candidate, CHUNK>;

fn candidate_at(i: u32) -> Candidate {
    if i >= params.len {
        return Candidate(-3.4028234663852886e38, NONE);
    }
    if params.pairs != 0u {
        return Candidate(x[2u * i], x[2u * i + 1u]);
    }
    return Candidate(x[i], f32(i));
}

@compute @workgroup_size(GROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) local: u32) {
    for (var i = local; i < CHUNK; i += GROUP) {
        candidates[i] = candidate_at(group.x * CHUNK + i);
    }
    // Bitonic sort: runs of `size` become ordered, every other one in reverse.
    for (var size = 2u; size <= CHUNK; size *= 2u) {
        for (var stride = size / 2u; stride > 0u; stride /= 2u) {
            workgroupBarrier();
            for (var i = local; i < CHUNK / 2u; i += GROUP) {
                let first = 2u * stride * (i / stride) + i % stride;
                let a = candidates[first];
                let b = candidates[first + stride];
                let is_reverse = (first & size) != 0u;
                if is_better(b, a) != is_reverse {
                    candidates[first] = b;
                    candidates[first + stride] = a;
                }
            }
        }
    }
    workgroupBarrier();
    if local < RANKED {
        let at = 2u * (group.x * RANKED + local);
        y[at] = candidates[local].value;
        y[at + 1u] = candidates[local].index;
    }
}
