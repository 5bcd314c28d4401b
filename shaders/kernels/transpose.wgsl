// y[c, r] = x[r, c], by 16 × 16 tiles so that reads and writes both run along rows.
import package::lib::grid::workgroup_index;
import package::lib::hooks::after;

struct Params {
    rows: u32,
    cols: u32,
    tiles_across: u32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;

// One column more than the tile, so that a column's values lie in different banks.
var<workgroup> tile: array<array<f32, 17>, 16>;

@compute @workgroup_size(16, 16)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_id) local: vec3u,
) {
    let index = workgroup_index(group, groups);
    let origin = 16u * vec2u(index % params.tiles_across, index / params.tiles_across);
    let source = origin + local.xy;
    if source.x < params.cols && source.y < params.rows {
        tile[local.y][local.x] = x[source.y * params.cols + source.x];
    }
    workgroupBarrier();
    let destination = origin.yx + local.xy;
    if destination.x < params.rows && destination.y < params.cols {
        let i = destination.y * params.rows + destination.x;
        y[i] = after(i, tile[local.x][local.y]);
    }
}
