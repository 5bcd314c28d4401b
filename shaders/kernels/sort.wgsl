// A step of a bitonic sort of the indices of rows (Batcher, 1968), whose comparisons all ascend: elements that a row
// lacks for a power of two would stay behind its end.
import package::lib::grid::workgroup_index;
import package::lib::nan::is_nan;

struct Params {
    len: u32,
    cols: u32,
    // The elements that are in order after this stage.
    block: u32,
    // The distance of partners; 0 for those at the same distance from both ends of a block.
    distance: u32,
    // Whether the indices are those of the elements as they stand.
    first: u32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read> order: array<f32>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;

// Elements of a workgroup, as the host counts them.
const CHUNK = 1024u;
// Fewer on software adapters.
override GROUP = 256u;

// Whether index a of the row at start comes before index b: NaN last, and equal elements as they stand.
fn is_before(start: u32, a: f32, b: f32) -> bool {
    let left = x[start + u32(a)];
    let right = x[start + u32(b)];
    let left_nan = is_nan(left);
    let right_nan = is_nan(right);
    let tied = (left_nan && right_nan) || (!left_nan && !right_nan && left == right);
    let less = (!left_nan && right_nan) || (!left_nan && !right_nan && left < right);
    return less || (tied && a < b);
}

fn index_at(start: u32, col: u32) -> f32 {
    if params.first != 0u {
        return f32(col);
    }
    return order[start + col];
}

fn element(i: u32) -> f32 {
    let col = i % params.cols;
    let start = i - col;
    var partner = col ^ params.distance;
    if params.distance == 0u {
        partner = col - col % params.block + params.block - 1u - col % params.block;
    }
    let own = index_at(start, col);
    if partner >= params.cols || partner == col {
        return own;
    }
    let other = index_at(start, partner);
    return select(other, own, is_before(start, own, other) == (col < partner));
}

@compute @workgroup_size(GROUP)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) local: u32,
) {
    let start = workgroup_index(group, groups) * CHUNK;
    for (var i = start + local; i < min(start + CHUNK, params.len); i += GROUP) {
        y[i] = element(i);
    }
}
