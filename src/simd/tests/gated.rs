//! Gated activations beside the same in `f64`.

use super::{noise, on_each};
use crate::ops::Op;
use crate::reference::evaluate;
use crate::simd::{Cpu, Gate, gated};

#[test]
fn gated_activations_are_within_the_bounds_of_their_functions() {
    for (gate, op) in [(Gate::Silu, Op::Swish), (Gate::GeluTanh, Op::GeluTanh)] {
        for len in [1, 7, 16, 1000, 300_000] {
            let x: Vec<f32> = noise(len, 1).iter().map(|x| 20.0 * x).collect();
            let up = noise(len, 2);
            let expected = evaluate(&op, &[&x]);
            on_each(|isa| {
                let mut y = vec![f32::NAN; len];
                gated(Cpu { isa, threads: 2 }, gate, &x, &up, &mut y);
                for ((y, expected), up) in y.iter().zip(&expected).zip(&up) {
                    let (exact, up) = (expected.value * f64::from(*up), f64::from(up.abs()));
                    // The product is rounded once more.
                    let ulp = f64::from(f32::EPSILON) * expected.magnitude * up;
                    let bound = (op.ulp() + 1.0) * ulp;
                    let difference = (f64::from(*y) - exact).abs();
                    assert!(difference <= bound + 1e-37, "{isa} {gate:?}: {y}, {exact}");
                }
            });
        }
    }
}
