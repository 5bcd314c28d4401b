// Rows of gates and of the values that they let pass: the activation of the one times the other. All are vectors of four.
import package::steps::activation::gated;
import package::lib::grid::workgroup_index;

struct Params {
    len: u32,
    // Vectors of a row's gates, after which as many of values follow.
    hidden: u32,
    // Whether the activation is GELU by its approximation with tanh; else it is SiLU.
    gelu: u32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<vec4f>;
@group(0) @binding(2) var<storage, read_write> y: array<vec4f>;

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
    let gates = x[at];
    let values = x[at + params.hidden];
    let gelu = params.gelu == 1u;
    y[i] = vec4f(
        gated(gates.x, values.x, gelu),
        gated(gates.y, values.y, gelu),
        gated(gates.z, values.z, gelu),
        gated(gates.w, values.w, gelu),
    );
}
