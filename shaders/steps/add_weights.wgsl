// The sums of probabilities as fractions of the likeliest one, for each workgroup, without those that limits leave out.
import package::steps::probability::weight;
import package::lib::reduce::{SUM, workgroup_reduce};

struct Params {
    len: u32,
    groups: u32,
    temperature: f32,
    min_p: f32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> logits: array<f32>;
// Pairs (value, index), the best one first.
@group(0) @binding(2) var<storage, read> ranked: array<f32>;
@group(0) @binding(3) var<storage, read_write> sums: array<f32>;

const GROUP = 64u;

@compute @workgroup_size(GROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) local: u32) {
    var sum = 0.0;
    for (var i = group.x * GROUP + local; i < params.len; i += params.groups * GROUP) {
        let own = weight(logits[i], ranked[0], params.temperature);
        sum += select(0.0, own, own >= params.min_p);
    }
    sum = workgroup_reduce(SUM, sum, local);
    if local == 0u {
        sums[group.x] = sum;
    }
}
