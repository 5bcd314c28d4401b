//! Matmuls with weights of a cache.

use crate::error::{Error, Result};
use crate::ops::CachedMatmul;
use crate::simd::matmul::{Packed, multiply_words};
use crate::simd::threads::Cpu;
use crate::tensor::quantized::QuantizedWeights;

/// Computes a matmul with packed or quantized weights. The lengths were validated.
///
/// # Errors
/// `Foreign` for weights of another back-end, `OutOfMemory`.
pub(in crate::simd) fn multiply_cached(
    cpu: Cpu,
    call: &CachedMatmul,
    a: &[f32],
    c: &mut [f32],
) -> Result<()> {
    let [m, _, _] = call.shape();
    if let Some(packed) = call.weights::<Packed>() {
        return packed.multiply(cpu, a, c, m);
    }
    let (what, owner) = ("weights", "back-end");
    let words = call.weights::<QuantizedWeights>();
    multiply_words(cpu, words.ok_or(Error::Foreign { what, owner })?, a, c, m)
}
