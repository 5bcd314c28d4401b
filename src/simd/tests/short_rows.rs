//! Rows that are shorter than some vectors, any number of them.

use super::{noise, on_each};
use crate::ops::Op;
use crate::reference::evaluate;
use crate::simd::{Cpu, InstructionSet, execute};

/// Rows of values of usual size, and such whose results are NaN or nearly zero.
fn rows_of(rows: usize, cols: usize) -> Vec<f32> {
    let mut x = noise(rows * cols, 7);
    let special = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -3e38, 100.0];
    for (row, value) in x.chunks_exact_mut(cols).skip(2).step_by(3).zip(special) {
        row[cols / 2] = value;
    }
    if let Some(last) = x.chunks_exact_mut(cols).nth(20) {
        last.fill(f32::NEG_INFINITY);
    }
    x
}

fn run(isa: InstructionSet, op: &Op, inputs: &[&[f32]], len: usize) -> Vec<f32> {
    let mut y = vec![-1.0; len];
    execute(Cpu::new(isa, Some(1)), op, inputs, &mut y).unwrap();
    y
}

/// Checks an operation, given for any number of rows, with what else it reads.
fn check(isa: InstructionSet, op: &dyn Fn(usize) -> Op, cols: usize, more: &[&[f32]]) {
    for rows in [1, 3, 16, 37] {
        let (op, x) = (op(rows), rows_of(rows, cols));
        let inputs: Vec<&[f32]> = std::iter::once(&x[..])
            .chain(more.iter().copied())
            .collect();
        let y = run(isa, &op, &inputs, x.len());
        for (at, (&y, expected)) in y.iter().zip(evaluate(&op, &inputs)).enumerate() {
            let accepted = expected.accepts(y, op.ulp());
            assert!(accepted, "{isa} {op:?} at {at}: {y}, {expected:?}");
        }
    }
}

const LENGTHS: [usize; 12] = [1, 2, 3, 4, 5, 7, 8, 16, 33, 127, 128, 129];

#[test]
fn softmax_of_short_rows() {
    on_each(|isa| {
        for cols in LENGTHS {
            check(isa, &|rows| Op::SoftmaxRows { rows, cols }, cols, &[]);
            check(isa, &|rows| Op::LogSoftmaxRows { rows, cols }, cols, &[]);
        }
    });
}

#[test]
fn norms_of_short_rows() {
    on_each(|isa| {
        for cols in LENGTHS {
            let (gain, bias) = (&noise(cols, 8)[..], &noise(cols, 9)[..]);
            for epsilon in [1e-5, 0.5] {
                let layer = |rows| Op::LayerNorm {
                    rows,
                    cols,
                    epsilon,
                };
                check(isa, &layer, cols, &[gain, bias]);
                let rms = |rows| Op::RmsNorm {
                    rows,
                    cols,
                    epsilon,
                };
                check(isa, &rms, cols, &[gain]);
            }
        }
    });
}
