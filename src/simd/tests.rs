//! Unit tests of the instruction sets' primitives, the elementary functions and the kernels'
//! inner paths. The conformance suite tests every operation through its public entry.

#[cfg(feature = "llm-core")]
mod attention;
#[cfg(feature = "llm-core")]
mod ggml;
mod isa;
mod math;
mod ops;
mod reduce_axis;
mod short_rows;

use super::InstructionSet;
use super::isa::{Isa, Kernel, dispatch};

/// Runs a check on every instruction set that there is.
fn on_each(check: impl Fn(InstructionSet)) {
    for &isa in InstructionSet::available() {
        check(isa);
    }
}

/// Numbers in [−1, 1) that look random and are always the same.
fn noise(len: usize, seed: u32) -> Vec<f32> {
    let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(1);
    let mut next = || {
        // Numerical Recipes' linear congruential generator.
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..len).map(|_| next()).collect()
}

/// Every elementwise operation of the table has a function here, so that no result is left as it was.
#[test]
fn elementwise_operations_write_their_results() {
    for op in crate::ops::OPS.iter().flat_map(|row| row.samples) {
        if !op.is_elementwise() {
            continue;
        }
        let input = [0.5; 5];
        let mut out = [f32::NAN; 5];
        super::elementwise(
            crate::instruction_set::InstructionSet::Scalar,
            op,
            &vec![&input[..]; op.inputs().len()],
            &mut out,
        );
        assert!(out.iter().all(|y| !y.is_nan()), "{op:?}: {out:?}");
    }
}

#[test]
fn matmuls_of_wrong_lengths_are_errors() {
    let isa = crate::instruction_set::InstructionSet::Scalar;
    let cpu = super::Cpu { isa, threads: 1 };
    let shape = crate::ops::Matmul::new(2, 3, 2);
    for lengths in [[5, 6, 4], [6, 7, 4], [6, 6, 3], [6, 6, 0]] {
        let [a, b, mut c] = lengths.map(|len| vec![1.0; len]);
        let code = |result: crate::error::Result<()>| result.err().map(|error| error.code());
        let plain = super::matmul::matmul(isa, 1, &shape, &a, &b, &mut c);
        assert_eq!(code(plain), Some("LENGTH_MISMATCH"), "{lengths:?}");
        let added = super::multiply_add(cpu, &shape, &a, &b, &mut c);
        assert_eq!(code(added), Some("LENGTH_MISMATCH"), "{lengths:?}");
    }
}
