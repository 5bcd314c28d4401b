// Rows of gates and of the values that they let pass: the activation of the one times the other.
import package::composed::activation::gated;
import package::lib::grid::workgroup_index;

struct Params {
    len: u32,
    // Gates of a row, after which as many values follow.
    hidden: u32,
    // Whether the activation is GELU by its approximation with tanh; else it is SiLU.
    gelu: u32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;

const GROUP = 64u;

@compute @workgroup_size(GROUP)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) local: u32,
) {
    let i = workgroup_index(group, groups) * GROUP + local;
    if i >= params.len {
        return;
    }
    let at = i / params.hidden * 2u * params.hidden + i % params.hidden;
    y[i] = gated(x[at], x[at + params.hidden], params.gelu == 1u);
}
