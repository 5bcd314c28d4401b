//! The instruction sets by name, and which of them are available.

use std::fmt;

/// A vector instruction set that kernels are compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum InstructionSet {
    /// AVX-512 F, BW, DQ and VL: 16 numbers at a time.
    Avx512,
    /// AVX2 with fused multiply-add: 8 numbers.
    Avx2,
    /// NEON of 64-bit ARM: 4 numbers.
    Neon,
    /// SSE2, the least that an x86-64 CPU has: 4 numbers.
    Sse2,
    /// WebAssembly's simd128 with relaxed SIMD, whose multiply-add may be fused: 4 numbers.
    RelaxedSimd128,
    /// WebAssembly's simd128: 4 numbers.
    Simd128,
    /// One number at a time.
    Scalar,
}

use InstructionSet::{Avx2, Avx512, Neon, RelaxedSimd128, Scalar, Simd128, Sse2};

impl InstructionSet {
    /// Returns the instruction sets that are available here, the best first.
    ///
    /// On native targets they are detected at run time, and the list ends with
    /// [`InstructionSet::Scalar`]. A WebAssembly module has only the one that it was built for.
    pub fn available() -> &'static [InstructionSet] {
        detect()
    }

    /// Returns the best instruction set that is available here.
    pub fn best() -> InstructionSet {
        Self::available().first().copied().unwrap_or(Scalar)
    }

    /// Returns this instruction set if available, otherwise the best.
    pub(super) fn or_best(self) -> InstructionSet {
        if Self::available().contains(&self) {
            self
        } else {
            Self::best()
        }
    }

    /// Returns the usual name, such as `"AVX2+FMA"`.
    pub fn name(self) -> &'static str {
        match self {
            Avx512 => "AVX-512",
            Avx2 => "AVX2+FMA",
            Neon => "NEON",
            Sse2 => "SSE2",
            RelaxedSimd128 => "relaxed SIMD128",
            Simd128 => "SIMD128",
            Scalar => "scalar",
        }
    }
}

impl fmt::Display for InstructionSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(target_arch = "x86_64")]
fn detect() -> &'static [InstructionSet] {
    // Every CPU with AVX2 converts f16, but a hypervisor may hide it.
    let avx2 = is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("fma")
        && is_x86_feature_detected!("f16c");
    let avx512 = is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl");
    match (avx2, avx512) {
        (true, true) => &[Avx512, Avx2, Sse2, Scalar],
        (true, false) => &[Avx2, Sse2, Scalar],
        (false, _) => &[Sse2, Scalar],
    }
}

#[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
fn detect() -> &'static [InstructionSet] {
    &[Neon, Scalar]
}

#[cfg(target_family = "wasm")]
fn detect() -> &'static [InstructionSet] {
    if cfg!(relampago_relaxed) {
        &[RelaxedSimd128]
    } else {
        &[Simd128]
    }
}

#[cfg(not(any(
    target_arch = "x86_64",
    all(target_arch = "aarch64", target_feature = "neon"),
    target_family = "wasm"
)))]
fn detect() -> &'static [InstructionSet] {
    &[Scalar]
}
