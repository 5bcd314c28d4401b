//! The shape and options of a rotary position embedding.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::ops::shape::{MAX_EXACT_INDEX, check_len, check_limit, number};
// Every JavaScript engine has these functions; libm's take 2% of a WebAssembly module.
#[cfg(target_arch = "wasm32")]
use js_sys::Math as math;
#[cfg(not(target_arch = "wasm32"))]
use libm as math;

/// The shape and options of a rotary position embedding. The input has `tokens × heads × head_len` elements,
/// row-major, as the queries or the keys of attention have.
///
/// The first `rotated` elements of each head are pairs: the first half beside the second one, as in GPT-NeoX and most
/// models in Hugging Face's format, or neighbours, as in Llama's own format. Pair `i` of a token at position `p` is
/// rotated by `p · base^(−2i / rotated)`, divided by the pair's factor if there are factors. Angles are computed in
/// `f64`.
///
/// ```
/// # #[cfg(not(target_arch = "wasm32"))] {
/// use relampago::{GpuDevice, Rope};
///
/// let device = GpuDevice::new()?;
/// let x = [1.0, 0.0, 1.0, 0.0];
/// let mut y = [0.0; 4];
/// // One head of two elements, for the tokens at the positions 0 and 1.
/// device.rope(&x, &mut y, Rope::new(2, 1, 2))?;
/// assert_eq!(y, [1.0, 0.0, 1f32.cos(), 1f32.sin()]);
/// # }
/// # Ok::<(), relampago::Error>(())
/// ```
#[doc(alias = "rotary embedding")]
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Rope {
    /// The number of tokens.
    pub tokens: usize,
    /// The number of heads of a token.
    pub heads: usize,
    /// The number of elements of a head.
    pub head_len: usize,
    /// The number of elements of a head that are rotated, an even one; the others are copied.
    pub rotated: usize,
    /// Whether pairs are neighbours.
    pub interleaved: bool,
    /// The base of the frequencies, at least 1.
    pub base: f32,
    /// The position of the first token. The last one is below 2²⁴.
    pub first: usize,
    /// Divisors of the frequencies, one for each pair, as models for long contexts have.
    pub factors: Option<Arc<[f32]>>,
}

/// Returns the angle between neighbouring positions for a pair of `rotated` elements, in radians (Su et al.,
/// "`RoFormer`", 2021).
pub(crate) fn frequency(base: f64, rotated: usize, pair: usize) -> f64 {
    math::pow(base, -((2 * pair) as f64) / rotated as f64)
}

/// Returns the cosine and the sine of an angle in radians.
pub(crate) fn cosine_and_sine(angle: f64) -> [f64; 2] {
    [math::cos(angle), math::sin(angle)]
}

impl Rope {
    /// Creates a rotation of whole heads by halves, with base 10,000 and without factors, for tokens from position 0 on.
    pub fn new(tokens: usize, heads: usize, head_len: usize) -> Self {
        Self {
            tokens,
            heads,
            head_len,
            rotated: head_len,
            interleaved: false,
            base: 10_000.0,
            first: 0,
            factors: None,
        }
    }

    /// Returns the rotation of the first `rotated` elements of each head.
    #[must_use]
    pub fn with_rotated(self, rotated: usize) -> Self {
        Self { rotated, ..self }
    }

    /// Returns the rotation of neighbours.
    #[must_use]
    pub fn interleaved(self) -> Self {
        Self {
            interleaved: true,
            ..self
        }
    }

    /// Returns the rotation with this base.
    #[must_use]
    pub fn with_base(self, base: f32) -> Self {
        Self { base, ..self }
    }

    /// Returns the rotation for tokens from this position on.
    #[must_use]
    pub fn with_first(self, first: usize) -> Self {
        Self { first, ..self }
    }

    /// Returns the rotation with frequencies that are divided by these factors.
    #[must_use]
    pub fn with_factors(self, factors: &[f32]) -> Self {
        Self {
            factors: Some(factors.into()),
            ..self
        }
    }

    /// The number of pairs of a head.
    pub(crate) fn pairs(&self) -> usize {
        self.rotated / 2
    }

    /// Returns the angle between neighbouring positions for each pair, in radians.
    pub(crate) fn frequencies(&self) -> Vec<f64> {
        let divided = |pair: usize| {
            let factor = self.factors.as_ref().map_or(1.0, |factors| factors[pair]);
            frequency(f64::from(self.base), self.rotated, pair) / f64::from(factor)
        };
        (0..self.pairs()).map(divided).collect()
    }

    /// Returns the cosine and the sine for each pair of a token.
    pub(crate) fn angles<'a>(
        &self,
        token: usize,
        frequencies: &'a [f64],
    ) -> impl Iterator<Item = [f32; 2]> + use<'a> {
        let position = (self.first + token) as f64;
        frequencies
            .iter()
            .map(move |frequency| cosine_and_sine(position * frequency).map(|part| part as f32))
    }

    /// Checks the options.
    pub(crate) fn check(&self) -> Result<()> {
        if self.rotated > self.head_len || !self.rotated.is_multiple_of(2) {
            let requirement = format!("an even number up to `head_len` ({})", self.head_len);
            let rotated = self.rotated.to_string();
            return Err(Error::invalid("rotated", rotated, requirement));
        }
        let normal = |value: f32| (f32::MIN_POSITIVE..=f32::MAX).contains(&value);
        if !(1.0..=f32::MAX).contains(&self.base) {
            let requirement = "a finite number of at least 1";
            return Err(Error::invalid("base", number(self.base), requirement));
        }
        if let Some(factors) = &self.factors {
            check_len("factors", self.pairs(), factors.len())?;
            if let Some(&wrong) = factors.iter().find(|&&factor| !normal(factor)) {
                let requirement = "positive finite numbers of at least 1.2e-38";
                return Err(Error::invalid("factors", number(wrong), requirement));
            }
        }
        check_limit("the first of the positions", self.first, MAX_EXACT_INDEX)?;
        check_limit("the number of tokens", self.tokens, MAX_EXACT_INDEX)?;
        let end = self.first + self.tokens;
        check_limit("the number of positions", end, MAX_EXACT_INDEX)
    }
}
