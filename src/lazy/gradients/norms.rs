//! Gradients of layer and root mean square normalisation.

use crate::lazy::value::Value;

/// A norm along an axis.
#[derive(Clone, Copy)]
pub(super) struct Norm {
    pub(super) axis: usize,
    pub(super) epsilon: f32,
    /// Whether the mean is subtracted.
    pub(super) is_centred: bool,
}

/// Returns the gradient of an input: the elements, the gain or the bias.
pub(super) fn gradient<'t>(inputs: &[Value<'t>], g: Value<'t>, norm: Norm, at: usize) -> Value<'t> {
    let (x, shape) = (inputs[0], inputs[0].shape());
    let others: Vec<usize> = (0..shape.len()).filter(|&axis| axis != norm.axis).collect();
    if at == 2 {
        return g.sum(&others, false);
    }
    let mut distance = x;
    if norm.is_centred {
        distance = x - x.mean(norm.axis);
    }
    let scale = (distance.square().mean(norm.axis) + norm.epsilon).rsqrt();
    let normal = distance * scale;
    if at == 1 {
        return (g * normal).sum(&others, false);
    }
    // The gain has the axis, and broadcasts along all after it.
    let mut wide = vec![1; shape.len() - norm.axis];
    wide[0] = shape[norm.axis];
    let g = g * inputs[1].reshape(&wide);
    let mut rest = g - normal * (g * normal).mean(norm.axis);
    if norm.is_centred {
        rest = rest - g.mean(norm.axis);
    }
    rest * scale
}
