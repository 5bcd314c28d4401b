//! The operations that cases and graphs are made of.

use relampago::ops::OPS;
use relampago::{CustomOp, Op};
use std::sync::LazyLock;

/// The operations of the table that take inputs of any length, with the parameters to test.
pub fn sample_ops() -> impl Iterator<Item = Op> {
    OPS.iter().flat_map(|row| row.samples).cloned()
}

/// The elementwise operations of one input.
pub fn unary_ops() -> Vec<Op> {
    elementwise_ops(1)
}

/// The elementwise operations of two inputs.
pub fn binary_ops() -> Vec<Op> {
    elementwise_ops(2)
}

fn elementwise_ops(inputs: usize) -> Vec<Op> {
    let wanted = |op: &Op| op.is_elementwise() && op.inputs().len() == inputs;
    sample_ops().filter(wanted).collect()
}

/// The reductions of one input.
pub fn reductions() -> Vec<Op> {
    let wanted = |op: &Op| op.is_scalar() && op.inputs().len() == 1;
    sample_ops().filter(wanted).collect()
}

/// Operations of a user's own, continuous and with a rounding at most, of one to three inputs.
pub fn custom_ops() -> &'static [CustomOp; 3] {
    static OPS: LazyLock<[CustomOp; 3]> = LazyLock::new(|| {
        let steeper = CustomOp::new(
            "steeper",
            &["x"],
            &["factor"],
            "if x < 0.0 { return x * factor; } return x;",
            |[x], [factor]| if x < 0.0 { x * factor } else { x },
        );
        let raised = CustomOp::new(
            "raised",
            &["a", "b"],
            &["low", "factor"],
            "maximum(a * factor, maximum(b, low))",
            |[a, b], [low, factor]| largest(a * factor, largest(b, low)),
        );
        let between = CustomOp::new(
            "between",
            &["x", "low", "high"],
            &[],
            "minimum(maximum(x, low), high)",
            |[x, low, high], []| -largest(-largest(x, low), -high),
        );
        [steeper, raised, between].map(|op| op.expect("three functions"))
    });
    &OPS
}

/// The larger number, or NaN where either is.
fn largest(a: f32, b: f32) -> f32 {
    if a > b || a.is_nan() { a } else { b }
}

pub(super) fn has_identity(op: &Op) -> bool {
    matches!(op, Op::Sum | Op::Dot)
}
