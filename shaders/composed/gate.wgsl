// A gate's activation times the values that it lets pass.
import package::lib::grid::workgroup_index;

struct Params {
    len: u32,
    // Whether the activation is GELU by its approximation with tanh; else it is SiLU.
    gelu: u32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> up: array<f32>;
@group(0) @binding(2) var<storage, read_write> gate: array<f32>;

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
    let x = gate[i];
    // (1 + tanh(u)) / 2 is the logistic function of 2u, and 2 sqrt(2 / pi) = 1.5957691.
    let cubic = 1.5957691 * (x + 0.044715 * x * x * x);
    let exponent = -select(x, cubic, params.gelu == 1u);
    // Beyond 80 the quotient is as good as zero, and the exponential stays finite.
    gate[i] = x / (1.0 + exp(min(exponent, 80.0))) * up[i];
}
