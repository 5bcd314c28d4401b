//! Constants of the elementary functions of `relampago`. Its SIMD kernels, PTX kernels and shaders share them; for the
//! shaders, the build script writes them in WGSL.
//!
//! [`half`] converts 16-bit floating-point numbers in the same way for all of them. Polynomials are minimax fits by the
//! Remez exchange algorithm in 40 decimal digits, rounded to `f32` afterwards; the lowest power comes first.

pub mod half;

/// log₂ e.
pub const LOG2_E: f32 = std::f32::consts::LOG2_E;

/// The high part of ln 2 in Cody and Waite's two-constant reduction (Software Manual for the
/// Elementary Functions, 1980): 355/512, so that its product with an integer below 2¹⁵ is exact.
pub const LN2_HI: f32 = 0.693_359_4;

/// ln 2 − `LN2_HI`.
pub const LN2_LO: f32 = -2.121_944_4e-4;

/// `P` in eʳ = 1 + r + r² · P(r) for |r| ≤ ½ ln 2; the error is 1.4e-8 relative to eʳ − 1.
pub const EXP: [f32; 5] = [
    0.5,
    0.166_665_42,
    0.041_666_28,
    0.008_366_644,
    0.001_394_655_6,
];

/// `P` in eʳ = 1 + r + r² · P(r) for |r| ≤ ½ ln 2, with one coefficient less than [`EXP`]. The error
/// is 1.1e-7 relative to eʳ, which is enough for softmax.
pub const EXP_SHORT: [f32; 4] = [0.499_992_3, 0.166_671_15, 0.041_890_204, 0.008_312_518];

/// `P` in ln(1 + f) = f − f²/2 + f³ · P(f) for |f| ≤ ⅓; the error is 4.7e-9 relative to the
/// logarithm.
pub const LOG: [f32; 8] = [
    0.333_332_15,
    -0.249_997_97,
    0.200_104_06,
    -0.166_804_88,
    0.140_058_7,
    -0.121_842_61,
    0.139_844_36,
    -0.128_916_87,
];

/// `P` in artanh s = s + s³ · P(s²) for |s| ≤ ⅓; the error is 1.1e-10 relative to the result.
pub const ATANH: [f32; 5] = [
    0.333_333_37,
    0.199_994_44,
    0.143_082_98,
    0.107_153_706,
    0.121_447_79,
];

/// `P` in erf x = x · P(x²) for |x| ≤ 1; the error is 1.2e-9 relative to the result.
#[allow(clippy::approx_constant)] // The first one is fitted, and one bit below 2/√π.
pub const ERF: [f32; 7] = [
    1.128_379_1,
    -0.376_126_26,
    0.112_835_854,
    -0.026_853_811,
    0.005_188_327_7,
    -0.000_801_019_37,
    0.000_078_538_62,
];

/// π/2 in three parts. Products of the first two with integers below 2¹³ are exact.
pub const QUARTER_TURN: [f32; 3] = [1.570_312_5, 4.837_513e-4, 7.549_79e-8];

/// `P` in sin r = r + r³ · P(r²) for |r| ≤ π/4; the error is 3.8e-9 relative to the result.
pub const SINE: [f32; 3] = [-0.166_666_55, 0.008_332_16, -0.000_195_152_18];

/// `P` in cos r = 1 − r²/2 + r⁴ · P(r²) for |r| ≤ π/4; the error is 1.2e-10 relative to the result.
pub const COSINE: [f32; 3] = [0.041_666_646, -0.001_388_731_5, 0.000_024_433_082];

/// `P` in arctan t = t · P(t²) for 0 ≤ t ≤ 1; the error is 1.8e-8 relative to the result.
pub const ARCTANGENT: [f32; 9] = [
    1.0,
    -0.333_330_36,
    0.199_918_72,
    -0.141_977_98,
    0.106_183_71,
    -0.074_568_55,
    0.042_137_623,
    -0.015_731_249,
    0.002_766_283_5,
];

/// `c` in the argument u = 1 / (1 + c · t) of [`NORMAL_TAIL`].
pub const NORMAL_TAIL_ARGUMENT: f32 = 0.306;

/// `P` in Φ(−t) = e^(−t²/2) · u · P(u), u = 1 / (1 + c · t), for 0 ≤ t ≤ 14.5, where Φ is the
/// normal distribution function; the error is 1.4e-7 relative to Φ(−t).
pub const NORMAL_TAIL: [f32; 8] = [
    0.122_044_096,
    0.122_772_26,
    0.104_367_43,
    0.118_629_39,
    -0.033_036_172,
    0.179_385_2,
    -0.150_700_03,
    0.036_537_87,
];

/// 2 · √(2/π): twice the factor in the tanh formula of GELU (Hendrycks and Gimpel, 2016).
pub const GELU_TANH_SCALE: f32 = 1.595_769_2;

/// The weight of the cubic term in the tanh formula of GELU.
pub const GELU_TANH_CUBIC: f32 = 0.044_715;

/// The constants that shaders may import from `constants`.
pub const SHADER_CONSTANTS: &[(&str, &[f32])] = &[
    ("LOG2_E", &[LOG2_E]),
    ("LN2_HI", &[LN2_HI]),
    ("LN2_LO", &[LN2_LO]),
    ("EXP", &EXP),
    ("LOG", &LOG),
    ("ATANH", &ATANH),
    ("ERF", &ERF),
    ("QUARTER_TURN", &QUARTER_TURN),
    ("SINE", &SINE),
    ("COSINE", &COSINE),
    ("NORMAL_TAIL_ARGUMENT", &[NORMAL_TAIL_ARGUMENT]),
    ("NORMAL_TAIL", &NORMAL_TAIL),
    ("GELU_TANH_SCALE", &[GELU_TANH_SCALE]),
    ("GELU_TANH_CUBIC", &[GELU_TANH_CUBIC]),
];
