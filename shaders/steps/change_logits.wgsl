// Adds biases to logits, and subtracts penalties for tokens that have occurred: an invocation a change, and then one for
// each token that was chosen since the changes were listed.
struct Params {
    len: u32,
    changes: u32,
    // Tokens chosen since.
    chosen: u32,
    // As in choice.rs.
    repetition: f32,
    presence: f32,
    frequency: f32,
}
@group(0) @binding(0) var<uniform> params: Params;
// A token, its bias, and how many times it occurred, for each change.
@group(0) @binding(1) var<storage, read> changes: array<f32>;
@group(0) @binding(2) var<storage, read> chosen: array<f32>;
@group(0) @binding(3) var<storage, read_write> logits: array<f32>;

// Returns how often a token is among those chosen since, from the one at `start` to before `end`.
fn occurrences(token: f32, start: u32, end: u32) -> f32 {
    var count = 0.0;
    for (var i = start; i < end; i++) {
        count += f32(chosen[i] == token);
    }
    return count;
}

fn is_listed(token: f32) -> bool {
    for (var i = 0u; i < params.changes; i++) {
        if changes[3u * i] == token {
            return true;
        }
    }
    return false;
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
    let i = id.x;
    var token: f32;
    var bias = 0.0;
    var count = 0.0;
    if i < params.changes {
        token = changes[3u * i];
        bias = changes[3u * i + 1u];
        count = changes[3u * i + 2u] + occurrences(token, 0u, params.chosen);
    } else if i < params.changes + params.chosen {
        let place = i - params.changes;
        token = chosen[place];
        // Its change, or the first one of its kind, counts it.
        if occurrences(token, 0u, place) > 0.0 || is_listed(token) {
            return;
        }
        count = occurrences(token, place, params.chosen);
    } else {
        return;
    }
    if token < 0.0 || token >= f32(params.len) {
        return;
    }
    var logit = logits[u32(token)] + bias;
    if count > 0.0 {
        logit *= select(params.repetition, 1.0 / params.repetition, logit > 0.0);
        logit -= params.presence + params.frequency * count;
    }
    logits[u32(token)] = logit;
}
