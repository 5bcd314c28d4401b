// Activations of gates.

// Returns the activation of a gate times the value that it lets pass. The activation is SiLU, or GELU by its approximation
// with tanh.
fn gated(gate: f32, value: f32, is_gelu: bool) -> f32 {
    // (1 + tanh(u)) / 2 is the logistic function of 2u, and 2 sqrt(2 / pi) = 1.5957691.
    let cubic = 1.5957691 * (gate + 0.044715 * gate * gate * gate);
    let exponent = -select(gate, cubic, is_gelu);
    // Beyond 80 the quotient is as good as zero, and the exponential stays finite.
    return gate / (1.0 + exp(min(exponent, 80.0))) * value;
}
