// The index that a random number draws, as `draw` of sampling.rs does, among the ranked candidates; -1 where it may be
// another one. A workgroup computes the weights, and its first invocation goes through them.
import package::steps::probability::weight;
import package::lib::nan::is_nan;

struct Params {
    // Candidates, at most RANKED.
    count: u32,
    // Whether the limits leave out all others.
    is_all: u32,
    // The sums of the weights of all elements, by parts; unused where the candidates are all.
    groups: u32,
    temperature: f32,
    top_p: f32,
    min_p: f32,
    // Of the probabilities.
    fraction: f32,
    // The place of the index.
    at: u32,
}
@group(0) @binding(0) var<uniform> params: Params;
// Pairs (value, index), the best one first.
@group(0) @binding(1) var<storage, read> ranked: array<f32>;
@group(0) @binding(2) var<storage, read> sums: array<f32>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;

const RANKED = 64u;

var<workgroup> weights: array<f32, RANKED>;

@compute @workgroup_size(RANKED)
fn main(@builtin(local_invocation_index) local: u32) {
    weights[local] = weight(ranked[2u * local], ranked[0], params.temperature);
    workgroupBarrier();
    if local == 0u {
        y[params.at] = drawn();
    }
}

fn drawn() -> f32 {
    if is_nan(ranked[0]) {
        return -1.0;
    }
    var kept = 0u;
    var total = 0.0;
    while kept < params.count && weights[kept] > 0.0 && weights[kept] >= params.min_p {
        total += weights[kept];
        kept++;
    }
    // Those after one that is left out are left out, too.
    let is_all = params.is_all != 0u || kept < params.count;
    if !is_all {
        total = 0.0;
        for (var i = 0u; i < params.groups; i++) {
            total += sums[i];
        }
    }
    if params.top_p < 1.0 {
        let enough = params.top_p * total;
        var nucleus = 0u;
        total = 0.0;
        while nucleus < kept && (nucleus == 0u || total < enough) {
            total += weights[nucleus];
            nucleus++;
        }
        if !is_all && total < enough {
            return -1.0;
        }
        kept = nucleus;
    }
    var rest = params.fraction * total;
    for (var i = 0u; i < kept; i++) {
        rest -= weights[i];
        if rest < 0.0 {
            return ranked[2u * i + 1u];
        }
    }
    // Rounding leaves a rest among all candidates.
    let is_decided = is_all || params.top_p < 1.0;
    return select(-1.0, ranked[1], is_decided);
}
