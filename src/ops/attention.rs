//! The shape and options of attention.

use std::ops::Range;

use crate::error::{Error, Result};
use crate::ops::shape::{check_limit, number};

/// The largest number of elements of a head: an invocation of the GPU's kernel has no more accumulators.
const MAX_HEAD: usize = 256;

/// The shape and options of scaled dot-product attention: for each token and head, the mean of the values at all
/// positions, weighted by the softmax of the scores `query · key · scale`.
///
/// Queries and the result have `tokens × heads × head_len` elements, keys and values `positions × kv_heads × head_len`,
/// all row-major, as matmuls with the weights of a transformer return them. A group of `heads / kv_heads` heads
/// shares keys and values (grouped-query attention; multi-query where `kv_heads` is 1).
///
/// A key or a value that is NaN or infinite has no effect on tokens that do not see its position.
///
/// ```
/// # #[cfg(not(target_arch = "wasm32"))] {
/// use relampago::{Attention, GpuDevice};
///
/// let device = GpuDevice::new()?;
/// let (x, values) = ([0.0; 4], [1.0, 2.0, 3.0, 6.0]);
/// let mut mixed = [0.0; 4];
/// // Two tokens with one head of two elements. All scores are 0.
/// let causal = Attention::new(2, 1, 2).causal(0);
/// device.attention(&x, &x, &values, &mut mixed, causal)?;
/// assert_eq!(mixed, [1.0, 2.0, 2.0, 4.0]);
/// # }
/// # Ok::<(), relampago::Error>(())
/// ```
#[doc(alias = "scaled_dot_product_attention")]
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Attention {
    /// The number of tokens; each has a query for each head.
    pub tokens: usize,
    /// The number of heads, a multiple of `kv_heads`.
    pub heads: usize,
    /// The number of heads of keys and values, at least 1.
    pub kv_heads: usize,
    /// The number of elements of a head, at most 256.
    pub head_len: usize,
    /// The number of positions that have keys and values.
    pub positions: usize,
    /// The position of the first token if attention is causal: a token sees the positions up to its own. The other
    /// tokens follow, and all of them are among `positions`. `None` if every token sees all positions.
    pub causal: Option<usize>,
    /// The number of positions that a token sees, up to and including its own; causal attention only.
    pub window: Option<usize>,
    /// The bound `c` of scores, which become `c · tanh(score / c)`.
    pub soft_cap: Option<f32>,
    /// The factor of scores.
    pub scale: f32,
}

impl Attention {
    /// Creates an attention of tokens to each other: every token sees all tokens, each head has its own keys and
    /// values, and the scale is `1 / √head_len`.
    pub fn new(tokens: usize, heads: usize, head_len: usize) -> Self {
        Self {
            tokens,
            heads,
            kv_heads: heads,
            head_len,
            positions: tokens,
            causal: None,
            window: None,
            soft_cap: None,
            scale: (head_len.max(1) as f32).sqrt().recip(),
        }
    }

    /// Returns the attention to this number of positions: those of another sequence, or of a cache.
    #[must_use]
    pub fn with_positions(self, positions: usize) -> Self {
        Self { positions, ..self }
    }

    /// Returns the attention with this number of heads of keys and values.
    #[must_use]
    pub fn with_kv_heads(self, kv_heads: usize) -> Self {
        Self { kv_heads, ..self }
    }

    /// Returns the causal attention of tokens from this position on.
    #[must_use]
    pub fn causal(self, first: usize) -> Self {
        Self {
            causal: Some(first),
            ..self
        }
    }

    /// Returns the attention to the last `window` positions.
    #[must_use]
    pub fn with_window(self, window: usize) -> Self {
        Self {
            window: Some(window),
            ..self
        }
    }

    /// Returns the attention with bounded scores.
    #[must_use]
    pub fn with_soft_cap(self, soft_cap: f32) -> Self {
        Self {
            soft_cap: Some(soft_cap),
            ..self
        }
    }

    /// Returns the attention with this factor of scores.
    #[must_use]
    pub fn with_scale(self, scale: f32) -> Self {
        Self { scale, ..self }
    }

    /// Returns the positions that a token sees.
    pub fn visible(&self, token: usize) -> Range<usize> {
        let end = self.causal.map_or(self.positions, |first| {
            first.saturating_add(token).saturating_add(1)
        });
        end.saturating_sub(self.window.unwrap_or(end))..end
    }

    /// Checks the options.
    pub(crate) fn check(&self) -> Result<()> {
        check_limit("the length of a head", self.head_len, MAX_HEAD)?;
        let count = |what, value: usize, requirement: String| {
            Err(Error::invalid(what, value.to_string(), requirement))
        };
        if self.kv_heads == 0 || !self.heads.is_multiple_of(self.kv_heads) {
            let requirement = format!("a divisor of `heads` ({})", self.heads);
            return count("kv_heads", self.kv_heads, requirement);
        }
        if self.tokens > 0 && self.positions == 0 {
            return Err(Error::Empty { op: "attention" });
        }
        if let Some(first) = self.causal
            && first.saturating_add(self.tokens) > self.positions
        {
            let requirement = format!("at least {first} + {}, the end of the tokens", self.tokens);
            return count("positions", self.positions, requirement);
        }
        if let Some(window) = self.window
            && (window == 0 || self.causal.is_none())
        {
            return count(
                "window",
                window,
                "at least 1, and absent unless causal".to_owned(),
            );
        }
        self.check_scores()
    }

    fn check_scores(&self) -> Result<()> {
        let normal = f32::MIN_POSITIVE..=f32::MAX;
        if let Some(cap) = self.soft_cap
            && !normal.contains(&cap)
        {
            let requirement = "a positive finite number of at least 1.2e-38";
            return Err(Error::invalid("soft_cap", number(cap), requirement));
        }
        if !self.scale.is_finite() {
            return Err(Error::invalid(
                "scale",
                number(self.scale),
                "a finite number",
            ));
        }
        Ok(())
    }
}
