// Each workgroup, of GROUP invocations, folds a tile of a row-major matrix into one value.
import package::lib::grid::workgroup_index;

struct Params {
    rows: u32,
    cols: u32,
    tiles_across: u32,
    tiles: u32,
    tile_rows: u32,
    tile_cols: u32,
    identity: f32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;

// The host declares what suits the adapter.
const GROUP = 256u;

var<workgroup> scratch: array<f32, GROUP>;

// Functions of the user's own take their places (`src/gpu/tiles.rs`).
fn combine(a: f32, b: f32) -> f32 {
    return a + b;
}

fn mapped(x: f32) -> f32 {
    return x;
}

@compute @workgroup_size(GROUP)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) local: u32,
) {
    let tile = workgroup_index(group, groups);
    let top = tile / params.tiles_across * params.tile_rows;
    let left = tile % params.tiles_across * params.tile_cols;
    var value = params.identity;
    for (var i = local; i < params.tile_rows * params.tile_cols; i += GROUP) {
        let row = top + i / params.tile_cols;
        let col = left + i % params.tile_cols;
        if row < params.rows && col < params.cols {
            value = combine(value, mapped(x[row * params.cols + col]));
        }
    }
    scratch[local] = value;
    for (var half = GROUP / 2u; half > 0u; half >>= 1u) {
        workgroupBarrier();
        if local < half {
            scratch[local] = combine(scratch[local], scratch[local + half]);
        }
    }
    // The last row of workgroups may have more than there are tiles.
    if local == 0u && tile < params.tiles {
        y[tile] = scratch[0];
    }
}
