// Makes the logits of tokens that are not allowed lower than all others.
struct Params {
    len: u32,
}
@group(0) @binding(0) var<uniform> params: Params;
// Bit `token % 32` of word `token / 32` allows a token.
@group(0) @binding(1) var<storage, read> allowed: array<u32>;
@group(0) @binding(2) var<storage, read_write> logits: array<f32>;

// As in choice.rs.
const FORBIDDEN = -1e30;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
    let token = id.x;
    if token < params.len && ((allowed[token / 32u] >> (token % 32u)) & 1u) == 0u {
        logits[token] = FORBIDDEN;
    }
}
