//! The elementary functions against `f64`, at a sample of all `f32` values.

use super::on_each;
use crate::ops::Op;
use crate::simd::{InstructionSet, execute};

/// Every so many bit patterns are tried; a prime, so that all mantissas take part.
const STRIDE: usize = 4_099;

/// Values that go through an operation at a time.
const BLOCK: usize = 1 << 16;

/// The worst error of `op` over all bit patterns at the stride, in units of `f32::EPSILON` of
/// the true result times `condition(x)`, and where it is.
fn worst_error(
    isa: InstructionSet,
    op: &Op,
    truth: fn(f64) -> f64,
    condition: fn(f64) -> f64,
) -> (f64, f32) {
    let mut patterns = (0..=u32::MAX).step_by(STRIDE).peekable();
    let (mut x, mut y) = (Vec::new(), vec![0.0; BLOCK]);
    let mut worst = (0.0, 0.0);
    while patterns.peek().is_some() {
        x.clear();
        x.extend(patterns.by_ref().take(BLOCK).map(f32::from_bits));
        let y = &mut y[..x.len()];
        execute(isa, op, &[&x], y).unwrap();
        for (&x, &y) in x.iter().zip(&*y) {
            let error = error(y, truth(f64::from(x)));
            let condition = condition(f64::from(x));
            if error > worst.0 * condition || error.is_nan() {
                worst = (error / condition, x);
            }
        }
    }
    worst
}

/// The distance in units of `f32::EPSILON` of the expected result; none where that, rounded,
/// is met, or where both are below the smallest normal number.
fn error(actual: f32, expected: f64) -> f64 {
    let rounded = expected as f32;
    let tiny = f64::from(f32::MIN_POSITIVE);
    let flushed = expected.abs() < tiny && f64::from(actual).abs() <= 1.02 * tiny;
    if actual == rounded || (actual.is_nan() && rounded.is_nan()) || flushed {
        return 0.0;
    }
    (f64::from(actual) - expected).abs() / (f64::from(f32::EPSILON) * expected.abs())
}

fn check(op: &Op, truth: fn(f64) -> f64, condition: fn(f64) -> f64, bound: f64) {
    on_each(|isa| {
        let (error, x) = worst_error(isa, op, truth, condition);
        println!("{} {isa}: {error:.2} at {x:e}", op.name());
        assert!(error <= bound, "{} {isa}: {error} at {x:e}", op.name());
    });
}

fn one(_: f64) -> f64 {
    1.0
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

fn gelu_tanh_argument(x: f64) -> f64 {
    (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044_715 * x * x * x)
}

/// A factor times a sigmoid, with the limit 0 at −∞.
fn times(x: f64, sigmoid: f64) -> f64 {
    if sigmoid == 0.0 { 0.0 } else { x * sigmoid }
}

#[test]
fn exp() {
    check(&Op::Exp {}, libm::exp, one, 1.0);
}

#[test]
fn log() {
    check(&Op::Log {}, libm::log, one, 1.0);
}

#[test]
fn tanh() {
    check(&Op::Tanh {}, libm::tanh, one, 2.5);
}

#[test]
fn logistic() {
    check(&Op::Sigmoid {}, sigmoid, one, 2.5);
}

#[test]
fn elu() {
    let truth = |x: f64| if x > 0.0 { x } else { libm::expm1(x) };
    check(&Op::Elu { alpha: 1.0 }, truth, one, 2.0);
}

#[test]
fn swish() {
    check(&Op::Swish {}, |x| times(x, sigmoid(x)), one, 3.0);
}

#[test]
fn gelu() {
    let truth = |x: f64| times(x, 0.5 * libm::erfc(-x * std::f64::consts::FRAC_1_SQRT_2));
    check(&Op::Gelu {}, truth, one, 5.0);
}

#[test]
fn gelu_tanh() {
    let truth = |x: f64| times(x, sigmoid(2.0 * gelu_tanh_argument(x)));
    let condition = |x: f64| 1.0 + 2.0 * gelu_tanh_argument(x).abs();
    check(&Op::GeluTanh {}, truth, condition, 3.0);
}
