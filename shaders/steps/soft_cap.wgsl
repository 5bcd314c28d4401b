// Bounded scores and logits.

// Returns cap · tanh(x / cap). An error of 2⁻²³ of the cap is left.
fn soft_capped(x: f32, cap: f32) -> f32 {
    let doubled = 2.0 * x / cap;
    // Beyond 80 the quotient is as good as zero, and the exponential stays finite. A NaN is not beyond.
    let bounded = select(doubled, 80.0, doubled > 80.0);
    return cap - 2.0 * cap / (1.0 + exp(bounded));
}
