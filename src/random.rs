//! Random numbers that are the same on every platform and back-end.
//!
//! [`Philox`] is the generator Philox4x32-10 of J. Salmon et al., "Parallel random numbers: as easy as
//! 1, 2, 3" (SC 2011). It has no state: each element follows from the seed and its index, so parts of
//! a sequence can be computed in any order. It is not for cryptography.

/// A sequence of random numbers; any part of it can be computed by itself.
///
/// ```
/// use relampago::random::Philox;
///
/// let random = Philox::new(7);
/// let mut all = [0.0; 8];
/// random.normal(0, &mut all);
/// let mut last = [0.0; 3];
/// random.normal(5, &mut last);
/// assert_eq!(all[5..], last);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Philox {
    key: [u32; 2],
}

/// The multipliers of a round, and the numbers that are added to the key after it.
const MULTIPLIERS: [u64; 2] = [0xd251_1f53, 0xcd9e_8d57];
const INCREMENTS: [u32; 2] = [0x9e37_79b9, 0xbb67_ae85];
const ROUNDS: usize = 10;

impl Philox {
    /// Returns the sequence of a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            key: [seed as u32, (seed >> 32) as u32],
        }
    }

    /// Returns the four numbers at a counter, whose lowest 32 bits come first.
    #[must_use]
    pub fn block(&self, counter: u128) -> [u32; 4] {
        let mut words = [0, 32, 64, 96].map(|shift| (counter >> shift) as u32);
        let mut key = self.key;
        for _ in 0..ROUNDS {
            words = round(words, key);
            key = [0, 1].map(|i| key[i].wrapping_add(INCREMENTS[i]));
        }
        words
    }

    /// Writes the elements of the uniform distribution on [0, 1) from index `first` on: multiples of
    /// 2⁻²⁴.
    pub fn uniform(&self, first: u64, out: &mut [f32]) {
        self.fill(first, out, |words| words.map(fraction));
    }

    /// Writes the elements of the normal distribution of mean 0 and variance 1 from index `first` on,
    /// by the transformation of Box and Muller. Their magnitude is at most 6.67.
    pub fn normal(&self, first: u64, out: &mut [f32]) {
        self.fill(first, out, |[a, b, c, d]| {
            let ([a, b], [c, d]) = (two_normals(a, b), two_normals(c, d));
            [a, b, c, d]
        });
    }

    /// Writes the elements from index `first` on; a block gives four of them.
    fn fill(self, first: u64, out: &mut [f32], elements: impl Fn([u32; 4]) -> [f32; 4]) {
        // Elements may start within a block, and indices may exceed those of u64.
        let (mut counter, mut skipped) = (u128::from(first / 4), (first % 4) as usize);
        let mut rest = out;
        while !rest.is_empty() {
            let values = elements(self.block(counter));
            let count = rest.len().min(4 - skipped);
            let (here, later) = rest.split_at_mut(count);
            here.copy_from_slice(&values[skipped..skipped + count]);
            (counter, skipped, rest) = (counter + 1, 0, later);
        }
    }
}

fn round([a, b, c, d]: [u32; 4], key: [u32; 2]) -> [u32; 4] {
    let [ab, cd] = [MULTIPLIERS[0] * u64::from(a), MULTIPLIERS[1] * u64::from(c)];
    let high = |product: u64| (product >> 32) as u32;
    [
        high(cd) ^ b ^ key[0],
        cd as u32,
        high(ab) ^ d ^ key[1],
        ab as u32,
    ]
}

/// Returns the 24 highest bits as a fraction.
fn fraction(word: u32) -> f32 {
    (word >> 8) as f32 / (1 << 24) as f32
}

// The functions below use nothing but operations that IEEE 754 rounds alike everywhere: those of
// a platform's mathematical library differ in their last digits.

const WORDS: f64 = 4_294_967_296.0;

/// Returns two independent elements of the normal distribution.
fn two_normals(a: u32, b: u32) -> [f32; 2] {
    // Above 0, of which there is no logarithm.
    let radius = (-2.0 * ln((f64::from(a) + 1.0) / WORDS)).sqrt();
    turned(b).map(|component| (radius * component) as f32)
}

/// Returns the natural logarithm of a positive number that is not denormal.
fn ln(x: f64) -> f64 {
    const FRACTION: u64 = (1 << 52) - 1;
    let exponent = (x.to_bits() >> 52) as i32 - 1023;
    let fraction = f64::from_bits((x.to_bits() & FRACTION) | 1.0_f64.to_bits());
    // From √½ to √2.
    let (fraction, exponent) = if fraction > std::f64::consts::SQRT_2 {
        (fraction / 2.0, exponent + 1)
    } else {
        (fraction, exponent)
    };
    // ln x = 2 artanh s, a series in s² ≤ 0.0295, whose 12th term is below 2⁻⁵⁸.
    let s = (fraction - 1.0) / (fraction + 1.0);
    let mut series = 0.0;
    for term in (0..12).rev() {
        series = series * (s * s) + 1.0 / f64::from(2 * term + 1);
    }
    2.0 * s * series + f64::from(exponent) * std::f64::consts::LN_2
}

/// Returns the cosine and the sine of `word / 2³²` turns.
fn turned(word: u32) -> [f64; 2] {
    // The nearest quarter of a turn, and at most an eighth from it.
    let quarters = word.wrapping_add(1 << 29) >> 30;
    let rest = f64::from(word.wrapping_sub(quarters << 30).cast_signed());
    let angle = rest / WORDS * std::f64::consts::TAU;
    let (mut sine, mut cosine) = (0.0, 0.0);
    // Taylor's series: from (π/4)¹⁸ / 18! on, terms are below 2⁻⁵⁹.
    for term in (0..9).rev() {
        let [even, odd] = [2 * term + 1, 2 * term + 2].map(f64::from);
        let square = -(angle * angle);
        cosine = 1.0 + square / (even * odd) * cosine;
        sine = 1.0 + square / (odd * (odd + 1.0)) * sine;
    }
    sine *= angle;
    match quarters {
        0 => [cosine, sine],
        1 => [-sine, cosine],
        2 => [-cosine, -sine],
        _ => [sine, -cosine],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The known answers that the generator's authors published.
    #[test]
    fn blocks_have_the_published_values() {
        let pi = 0x0370_7344_1319_8a2e_85a3_08d3_243f_6a88;
        let known = [
            (0, 0, [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]),
            (
                u64::MAX,
                u128::MAX,
                [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd],
            ),
            (
                0x299f_31d0_a409_3822,
                pi,
                [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1],
            ),
        ];
        for (seed, counter, words) in known {
            assert_eq!(Philox::new(seed).block(counter), words, "{seed} {counter}");
        }
    }

    #[test]
    fn logarithms_and_angles_are_exact_to_a_few_digits_of_f64() {
        for i in 0..100_000_u32 {
            let word = i.wrapping_mul(2_654_435_761);
            let x = (f64::from(word) + 1.0) / WORDS;
            assert!(
                (ln(x) - x.ln()).abs() <= 4e-16 * (1.0 + x.ln().abs()),
                "{x}"
            );
            let angle = f64::from(word) / WORDS * std::f64::consts::TAU;
            let [cosine, sine] = turned(word);
            let error = (cosine - angle.cos()).abs() + (sine - angle.sin()).abs();
            assert!(error < 2e-15, "{word}: {error}");
        }
    }

    /// The mean and the next three central moments.
    fn moments(values: &[f32]) -> [f64; 4] {
        let count = values.len() as f64;
        let mean = values.iter().map(|&x| f64::from(x)).sum::<f64>() / count;
        let central = |power| {
            let terms = values.iter().map(|&x| (f64::from(x) - mean).powi(power));
            terms.sum::<f64>() / count
        };
        [mean, central(2), central(3), central(4)]
    }

    fn assert_moments(values: &[f32], expected: [f64; 4]) {
        // Five standard errors of the fourth moment, which has the largest one.
        let bound = 5.0 * 10.0 / (values.len() as f64).sqrt();
        for (found, expected) in moments(values).into_iter().zip(expected) {
            assert!(
                (found - expected).abs() < bound,
                "{found} is not {expected}"
            );
        }
    }

    #[test]
    fn distributions_have_their_moments() {
        let mut values = vec![0.0; 1 << 20];
        for seed in [0, 1, u64::MAX] {
            let random = Philox::new(seed);
            random.uniform(0, &mut values);
            assert!(values.iter().all(|x| (0.0..1.0).contains(x)));
            assert_moments(&values, [0.5, 1.0 / 12.0, 0.0, 1.0 / 80.0]);
            random.normal(0, &mut values);
            assert!(values.iter().all(|x| x.abs() < 6.67));
            assert_moments(&values, [0.0, 1.0, 0.0, 3.0]);
            let inside = values.iter().filter(|x| x.abs() < 1.0).count();
            assert!((inside as f64 / values.len() as f64 - 0.682_69).abs() < 0.0025);
        }
    }

    #[test]
    fn parts_are_those_of_the_whole() {
        let random = Philox::new(42);
        let mut all = [0.0; 64];
        random.uniform(0, &mut all);
        for first in 0..16 {
            for len in 0..16 {
                let mut part = vec![0.0; len];
                random.uniform(first as u64, &mut part);
                assert_eq!(part, all[first..first + len]);
            }
        }
        // Beyond the last index of u64.
        random.uniform(u64::MAX, &mut all);
    }

    /// The package's tests have the same four bit patterns, computed in Python from the definition.
    #[test]
    fn normals_are_the_same_everywhere() {
        let mut values = [0.0; 4];
        Philox::new(1).normal(0, &mut values);
        let known = [1_052_951_523, 3_197_612_476, 3_196_008_204, 3_212_869_053];
        assert_eq!(values.map(f32::to_bits), known);
    }
}
