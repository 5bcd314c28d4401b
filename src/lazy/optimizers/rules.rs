//! The rules of steps. Each gets a parameter, its gradient and its moments, and returns the new parameter and moments.

use crate::lazy::value::Value;

/// Stochastic gradient descent, with the momentum of `PyTorch` and optax: `m = momentum · m + g`.
pub(super) fn sgd<'t>(
    own: &[Value<'t>],
    rate: Value<'t>,
    momentum: f32,
    is_nesterov: bool,
    decay: f32,
) -> Vec<Value<'t>> {
    let (p, mut g) = (own[0], own[1]);
    if decay != 0.0 {
        g = g + p * decay;
    }
    let Some(&former) = own.get(2) else {
        return vec![p - g * rate];
    };
    let m = former * momentum + g;
    let direction = if is_nesterov { g + m * momentum } else { m };
    vec![p - direction * rate, m]
}

/// Adam (Kingma and Ba, 2015), and `AdamW` (Loshchilov and Hutter, 2019), whose decay does not pass the moments.
pub(super) fn adam<'t>(
    own: &[Value<'t>],
    [rate, steps]: [Value<'t>; 2],
    [b1, b2]: [f32; 2],
    [epsilon, decay]: [f32; 2],
) -> Vec<Value<'t>> {
    let (p, g) = (own[0], own[1]);
    let m = own[2] * b1 + g * (1.0 - b1);
    let v = own[3] * b2 + g.square() * (1.0 - b2);
    let unbiased = |moment: Value<'t>, b: f32| moment / (1.0 - steps.exponential(b));
    let mut direction = unbiased(m, b1) / (unbiased(v, b2).sqrt() + epsilon);
    if decay != 0.0 {
        direction = direction + p * decay;
    }
    vec![p - direction * rate, m, v]
}

/// Lion (Chen et al., 2023).
pub(super) fn lion<'t>(
    own: &[Value<'t>],
    rate: Value<'t>,
    [b1, b2]: [f32; 2],
    decay: f32,
) -> Vec<Value<'t>> {
    let (p, g, former) = (own[0], own[1], own[2]);
    let mut direction = (former * b1 + g * (1.0 - b1)).sign();
    if decay != 0.0 {
        direction = direction + p * decay;
    }
    vec![p - direction * rate, former * b2 + g * (1.0 - b2)]
}

/// Scales gradients by `bound / norm` where their common norm exceeds a bound.
pub(super) fn clip<'t>(gradients: &[Value<'t>], bound: Value<'t>) -> Vec<Value<'t>> {
    let squares = gradients.iter().map(|g| {
        let axes: Vec<usize> = (0..g.shape().len()).collect();
        g.square().sum(&axes, false)
    });
    let total = squares.reduce(|a, b| a + b);
    let scale = total.map(|total| bound / total.sqrt().maximum(bound));
    let scaled = |&g: &Value<'t>| scale.map_or(g, |scale| g * scale);
    gradients.iter().map(scaled).collect()
}
