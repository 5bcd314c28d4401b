// Probabilities of tokens.

// Below all logits but those of forbidden tokens.
const FORBIDDEN = -1e29;

// Returns a token's probability as a fraction of the likeliest one's.
fn weight(logit: f32, largest: f32, temperature: f32) -> f32 {
    if logit < FORBIDDEN {
        return 0.0;
    }
    return exp((logit - largest) / temperature);
}
