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
