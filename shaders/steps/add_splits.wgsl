// Adds up what the splits of a head's positions leave (attend.wgsl). A workgroup computes a head; an invocation adds one
// vector of some of the splits.
import package::lib::grid::workgroup_index;

struct Params {
    heads: u32,
    // Vectors of a head.
    vectors: u32,
    // Splits of a head. Some may have no positions.
    splits: u32,
    // The heads of the rows before.
    before: u32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> parts: array<vec4f>;
@group(0) @binding(2) var<storage, read_write> mixed: array<vec4f>;

const GROUP = 256u;
const MOST_SPLITS = 64u;
// The largest score of a split without positions.
const LOWEST = -3e38;

// The largest score of each split, and the sum of its weights.
var<workgroup> weighed: array<vec2f, MOST_SPLITS>;
var<workgroup> sums: array<vec4f, GROUP>;

@compute @workgroup_size(GROUP)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) local: u32,
) {
    let head = workgroup_index(group, groups);
    if head >= params.heads {
        return;
    }
    let vectors = params.vectors;
    let first = head * params.splits;
    if local < params.splits {
        weighed[local] = parts[(first + local) * (vectors + 1u) + vectors].xy;
    }
    workgroupBarrier();
    var highest = LOWEST;
    for (var i = 0u; i < params.splits; i++) {
        highest = max(highest, weighed[i].x);
    }
    var total = 0.0;
    for (var i = 0u; i < params.splits; i++) {
        total += exp(weighed[i].x - highest) * weighed[i].y;
    }
    let sharing = GROUP / vectors;
    let share = local / vectors;
    var sum = vec4f();
    if share < sharing {
        for (var i = share; i < params.splits; i += sharing) {
            sum += exp(weighed[i].x - highest) * parts[(first + i) * (vectors + 1u) + local % vectors];
        }
    }
    sums[local] = sum;
    workgroupBarrier();
    if local < vectors {
        for (var i = 1u; i < sharing; i++) {
            sum += sums[i * vectors + local];
        }
        mixed[(params.before + head) * vectors + local] = sum / total;
    }
}
