//! Functions of one number against their oracles and the op table's bounds: at a sample of all
//! `f32` values, or at every one of them where `RELAMPAGO_EXHAUSTIVE` is set.

use crate::ops::{OPS, Op};
use crate::reference::evaluate;
use crate::simd::{Cpu, InstructionSet, execute};

/// The distance between tested bit patterns. It is a prime, so that all mantissas occur.
const STRIDE: usize = 4_099;

/// The number of values that go through an operation at a time.
const BLOCK: usize = 1 << 14;

fn stride() -> usize {
    let exhaustive = std::env::var_os("RELAMPAGO_EXHAUSTIVE").is_some();
    if exhaustive { 1 } else { STRIDE }
}

/// The largest error of `op` on any instruction set, in ULP, and where it is.
fn worst_error(op: &Op) -> (f64, f32) {
    // Threads are for those who try every value, and WebAssembly has none.
    let threads = match stride() {
        1 => std::thread::available_parallelism().map_or(1, Into::into),
        _ => 1,
    };
    if threads == 1 {
        return worst_error_from(0, threads, op);
    }
    std::thread::scope(|scope| {
        let part = |thread| scope.spawn(move || worst_error_from(thread, threads, op));
        let parts: Vec<_> = (0..threads).map(part).collect();
        let worst = parts.into_iter().map(|part| part.join().unwrap());
        worst.fold((0.0, 0.0), |a, b| if b.0 > a.0 { b } else { a })
    })
}

/// [`worst_error`] at every `parts`-th of the values that are tried.
fn worst_error_from(first: usize, parts: usize, op: &Op) -> (f64, f32) {
    let bits = (0..=u32::MAX).skip(first * stride());
    let mut patterns = bits.step_by(parts * stride()).map(f32::from_bits);
    let mut worst = (0.0, 0.0);
    loop {
        let x: Vec<f32> = patterns.by_ref().take(BLOCK).collect();
        if x.is_empty() {
            return worst;
        }
        let expected = evaluate(op, &[&x]);
        for &isa in InstructionSet::available() {
            let mut y = vec![0.0; x.len()];
            execute(Cpu::new(isa, Some(1)), op, &[&x], &mut y).unwrap();
            for ((&x, &y), expected) in x.iter().zip(&y).zip(&expected) {
                let error = expected.error(y);
                if error > worst.0 {
                    worst = (error, x);
                }
            }
        }
    }
}

#[test]
fn functions_of_one_number_are_within_their_bounds() {
    let functions = OPS.iter().flat_map(|row| row.samples);
    let functions = functions.filter(|op| op.is_elementwise() && op.inputs().len() == 1);
    let mut complaints = Vec::new();
    for op in functions {
        let (error, at) = worst_error(op);
        println!("{op:?}: {error:.2} of {} ULP, at {at:e}", op.ulp());
        if error > op.ulp() {
            complaints.push(format!("{op:?}: {error} ULP at {at:e}"));
        }
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

/// Bit patterns of every kind, and the same number of values of ordinary size.
fn numbers(seed: u32, len: usize) -> Vec<f32> {
    let number = |i: u32| {
        let bits = i.wrapping_add(seed).wrapping_mul(2_654_435_761);
        let fraction = bits as f32 / u32::MAX as f32;
        match i % 4 {
            0 => 20.0 * fraction - 10.0,
            1 => 1.0 + 0.5 * (fraction - 0.5),
            2 => 300.0 * (fraction - 0.5),
            _ => f32::from_bits(bits ^ bits >> 15),
        }
    };
    (0..len as u32).map(number).collect()
}

#[test]
fn functions_of_two_numbers_are_within_their_bounds() {
    let functions = OPS.iter().flat_map(|row| row.samples);
    for op in functions.filter(|op| op.is_elementwise() && op.inputs().len() == 2) {
        let (a, b) = (numbers(1, 1 << 18), numbers(77_773, (1 << 18) + 1));
        let inputs = [&a[..], &b[1..]];
        let expected = evaluate(op, &inputs);
        for &isa in InstructionSet::available() {
            let mut y = vec![0.0; a.len()];
            execute(Cpu::new(isa, Some(1)), op, &inputs, &mut y).unwrap();
            let errors = expected.iter().zip(&y).map(|(want, &y)| want.error(y));
            let (at, error) = errors
                .enumerate()
                .max_by(|a, b| a.1.total_cmp(&b.1))
                .unwrap();
            println!("{op:?} on {isa}: {error:.2} of {} ULP", op.ulp());
            let operands = (inputs[0][at], inputs[1][at]);
            assert!(
                error <= op.ulp(),
                "{op:?} on {isa}: {error} ULP at {operands:?}"
            );
        }
    }
}
