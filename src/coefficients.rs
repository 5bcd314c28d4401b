//! Constants of the elementary functions, shared by the SIMD kernels and the shaders.
//!
//! `build.rs` includes this file and writes the same constants in WGSL, so there is nothing
//! here but constants. Polynomials are minimax fits by the Remez exchange algorithm in 40
//! decimal digits, rounded to `f32` afterwards; the lowest power comes first.

/// log₂ e.
pub(crate) const LOG2_E: f32 = std::f32::consts::LOG2_E;

/// The high part of ln 2 in Cody and Waite's two-constant reduction (Software Manual for the
/// Elementary Functions, 1980): 355/512, so that its product with an integer below 2¹⁵ is exact.
pub(crate) const LN2_HI: f32 = 0.693_359_4;

/// ln 2 − `LN2_HI`.
pub(crate) const LN2_LO: f32 = -2.121_944_4e-4;

/// `P` in eʳ = 1 + r + r² · P(r) for |r| ≤ ½ ln 2; the error is 1.4e-8 relative to eʳ − 1.
pub(crate) const EXP: [f32; 5] = [
    0.5,
    0.166_665_42,
    0.041_666_28,
    0.008_366_644,
    0.001_394_655_6,
];

/// `P` in ln(1 + f) = f − f²/2 + f³ · P(f) for |f| ≤ ⅓; the error is 4.7e-9 relative to the
/// logarithm.
pub(crate) const LOG: [f32; 8] = [
    0.333_332_15,
    -0.249_997_97,
    0.200_104_06,
    -0.166_804_88,
    0.140_058_7,
    -0.121_842_61,
    0.139_844_36,
    -0.128_916_87,
];

/// `c` in the argument u = 1 / (1 + c · t) of [`NORMAL_TAIL`].
pub(crate) const NORMAL_TAIL_ARGUMENT: f32 = 0.35;

/// `P` in Φ(−t) = e^(−t²/2) · u · P(u), u = 1 / (1 + c · t), for 0 ≤ t ≤ 14.5, where Φ is the
/// normal distribution function; the error is 3.2e-8 relative to Φ(−t).
pub(crate) const NORMAL_TAIL: [f32; 9] = [
    0.139_621_3,
    0.139_863_52,
    0.119_821_26,
    0.105_552_614,
    -0.023_212_63,
    0.159_320_1,
    -0.255_839_35,
    0.144_031_09,
    -0.029_157_92,
];

/// 2 · √(2/π): twice the factor in the tanh formula of GELU (Hendrycks and Gimpel, 2016).
pub(crate) const GELU_TANH_SCALE: f32 = 1.595_769_2;

/// The weight of the cubic term in the tanh formula of GELU.
pub(crate) const GELU_TANH_CUBIC: f32 = 0.044_715;
