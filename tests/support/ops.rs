//! The operations that cases and graphs are made of.

use relampago::{CustomOp, Op};
use std::sync::LazyLock;

pub fn unary_ops() -> Vec<Op> {
    vec![
        Op::Relu,
        Op::LeakyRelu {
            negative_slope: 0.01,
        },
        Op::LeakyRelu {
            negative_slope: -2.0,
        },
        Op::Elu { alpha: 1.0 },
        Op::Elu { alpha: 0.3 },
        Op::Sigmoid,
        Op::Tanh,
        Op::Swish,
        Op::Gelu,
        Op::GeluTanh,
        Op::Clip {
            min: -1.5,
            max: 2.5,
        },
        Op::Clip {
            min: f32::NEG_INFINITY,
            max: 0.0,
        },
        Op::Exp,
        Op::Log,
        Op::Sqrt,
        Op::Abs,
        Op::Neg,
        Op::Scale { factor: 2.5 },
    ]
}

pub fn binary_ops() -> Vec<Op> {
    vec![
        Op::VecAdd,
        Op::Sub,
        Op::Mul,
        Op::Div,
        Op::Minimum,
        Op::Maximum,
    ]
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

pub fn reductions() -> Vec<Op> {
    vec![Op::Sum, Op::Max, Op::Min, Op::Mean, Op::Argmax]
}

pub(super) fn has_identity(op: &Op) -> bool {
    matches!(op, Op::Sum | Op::Dot)
}
