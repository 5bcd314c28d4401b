//! Reductions along an axis: rows that are transposed, and vectors of columns.

use super::{noise, on_each};
use crate::ops::{AxisFold, Op, ReduceAxis};
use crate::reference::evaluate;
use crate::simd::{Cpu, InstructionSet, execute};

/// Values with many equal elements, zeros of both signs, infinities and NaN.
fn values(len: usize) -> Vec<f32> {
    let special = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 0.0, -0.0];
    let mut x: Vec<f32> = noise(len, 5).iter().map(|x| (x * 6.0).round()).collect();
    for (i, value) in x.iter_mut().skip(3).step_by(29).enumerate() {
        *value = special[i % special.len()];
    }
    x
}

fn check(isa: InstructionSet, op: &Op, x: &[f32], len: usize) {
    let mut y = vec![-1.0; len];
    execute(Cpu::new(isa, Some(1)), op, &[x], &mut y).unwrap();
    for (at, (&y, expected)) in y.iter().zip(evaluate(op, &[x])).enumerate() {
        let accepted = expected.accepts(y, op.ulp());
        assert!(accepted, "{isa} {op:?} at {at}: {y}, {expected:?}");
    }
}

#[test]
fn axes_of_every_shape() {
    let shapes = [
        [1, 1, 1],
        [70, 10, 1],
        [131, 32, 1],
        [3, 33, 1],
        [5, 200, 1],
        [1, 1000, 10],
        [2, 77, 3],
        [1, 3, 255],
        [2, 5, 256],
        [1, 4, 600],
        [3, 9, 130],
    ];
    on_each(|isa| {
        for [outer, len, inner] in shapes {
            let x = values(outer * len * inner);
            for fold in AxisFold::ALL {
                let options = ReduceAxis::new(fold, outer, len, inner);
                check(isa, &Op::ReduceAxis { options }, &x, outer * inner);
            }
        }
    });
}

#[test]
fn indices_of_special_rows() {
    let (nan, infinite) = (f32::NAN, f32::INFINITY);
    let rows = [
        [-infinite, -infinite, -infinite],
        [infinite, infinite, 1.0],
        [1.0, nan, nan],
        [nan, 2.0, infinite],
        [-0.0, 0.0, 0.0],
        [1.0, 3.0, 3.0],
    ];
    let x: Vec<f32> = rows.iter().flatten().copied().collect();
    on_each(|isa| {
        for (rows, cols) in [(6, 3), (3, 6), (9, 2)] {
            check(isa, &Op::ArgmaxRows { rows, cols }, &x, rows);
            for fold in [AxisFold::Argmax, AxisFold::Argmin] {
                let options = ReduceAxis::new(fold, rows, cols, 1);
                check(isa, &Op::ReduceAxis { options }, &x, rows);
            }
        }
    });
}

#[test]
fn sums_of_no_elements_are_zero() {
    on_each(|isa| {
        for inner in [1, 5] {
            let options = ReduceAxis::new(AxisFold::Sum, 3, 0, inner);
            check(isa, &Op::ReduceAxis { options }, &[], 3 * inner);
        }
    });
}
